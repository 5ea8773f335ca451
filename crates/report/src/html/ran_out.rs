//! The moment at which memory ran out: what was requested, by which line, and what held the card's memory then.

use ghostgpu_ledger::{Place, PlaceSum, RanOut, RefusedBecause};
use ghostgpu_recording::{Category, FrameOwner, Recording, Source};
use ghostgpu_session::{OomReport, StackFrame};
use ghostgpu_text::{grouped, human};

use super::counted::Counted;
use super::escape::Escaped;
use super::{push, stack};
use crate::text;

/// How many of the lines that held most are listed; the tables below have more.
const MOST_LINES: usize = 4;

/// The section as HTML; empty if memory did not run out.
pub(super) fn html(recording: &Recording, counted: &[Counted<'_>]) -> String {
    let answer = recording.about.answer.as_ref();
    let oom = answer.and_then(|answer| answer.oom.as_ref());
    let ran_out = first(counted);
    if oom.is_none() && ran_out.is_none() {
        return String::new();
    }
    let mut html = String::from("<div class=\"failed\"><p>");
    match (oom, &ran_out) {
        (Some(oom), _) => add_request(&mut html, oom),
        (None, Some((card, ran_out))) => {
            add_request_of_snapshot(&mut html, recording, *card, ran_out);
        }
        (None, None) => {}
    }
    if let Some((_, ran_out)) = &ran_out {
        add_rest(&mut html, ran_out, recording.about.source);
    }
    html.push_str("</p>");
    if let Some((_, ran_out)) = &ran_out {
        add_lines(&mut html, ran_out);
    }
    let frames = match (oom, &ran_out) {
        (Some(oom), _) if !oom.stack.is_empty() => stack::of_answer(&oom.stack),
        (_, Some((_, ran_out))) => {
            stack::of_frames(text::frames(&recording.names, ran_out.failure.stack))
        }
        _ => Vec::new(),
    };
    if !frames.is_empty() {
        push(
            &mut html,
            format_args!(
                "<details class=\"words\"><summary>Stack of the request</summary>{}</details>",
                stack::html(&frames)
            ),
        );
    }
    if let Some(message) = oom.map(|oom| &oom.message).filter(|text| !text.is_empty()) {
        push(
            &mut html,
            format_args!(
                "<details class=\"words\"><summary>PyTorch's own words</summary><p>{}</p></details>",
                Escaped(message)
            ),
        );
    }
    html.push_str("</div>");
    html
}

/// The failed request that the page describes: that of the first card that has one.
pub(super) fn first<'a>(counted: &'a [Counted<'_>]) -> Option<(u32, &'a RanOut)> {
    let mut failed = counted
        .iter()
        .filter_map(|one| Some((one.card.index, one.ran_out.as_ref()?)));
    failed.next()
}

/// Adds what a rehearsal knows about the request.
fn add_request(html: &mut String, oom: &OomReport) {
    let when = match oom.stage.as_str() {
        "setup" => "while setting up".to_owned(),
        "moving the model" => "while moving the model".to_owned(),
        stage => format!("in step {} ({stage})", oom.step.saturating_add(1)),
    };
    push(
        html,
        format_args!("<strong>Out of memory</strong> {}", Escaped(&when)),
    );
    if let Some(frame) = user_frame(&oom.stack) {
        push(
            html,
            format_args!(
                ", at <code>{}:{}</code>",
                Escaped(text::shown_file(&frame.file)),
                frame.line
            ),
        );
        if !matches!(frame.function.as_str(), "" | "<module>") {
            push(html, format_args!(" in {}", Escaped(&frame.function)));
        }
        if let Some(source) = &frame.source {
            push(
                html,
                format_args!(": <code>{}</code>", Escaped(source.trim())),
            );
        }
    }
    push(
        html,
        format_args!(". It asked for {}", data(oom.requested_bytes)),
    );
}

/// Adds what a snapshot knows about the request.
fn add_request_of_snapshot(html: &mut String, recording: &Recording, card: u32, ran_out: &RanOut) {
    push(
        html,
        format_args!(
            "<strong>The request that failed</strong> is event {} of device {card}",
            grouped(ran_out.event.into())
        ),
    );
    let frames = text::frames(&recording.names, ran_out.failure.stack);
    let line = frames.min_by_key(|frame| frame.owner);
    if let Some(frame) = line.filter(|frame| frame.owner != FrameOwner::Native) {
        push(
            html,
            format_args!(
                ", made at <code>{}:{}</code> in {}",
                Escaped(text::shown_file(&frame.file)),
                frame.line,
                Escaped(&frame.function)
            ),
        );
    }
    push(
        html,
        format_args!(". It asked for {}", data(ran_out.failure.requested_bytes)),
    );
}

/// Adds how much memory was left, and why it could not serve the request.
fn add_rest(html: &mut String, ran_out: &RanOut, source: Source) {
    if let Some(left) = ran_out.failure.driver_free_bytes {
        push(html, format_args!("; {} were left on the card", data(left)));
    }
    html.push('.');
    let because = ran_out.because();
    if because == Some(RefusedBecause::Limited) {
        html.push_str(
            " The card had room for it: a limit on PyTorch's memory \
             (<code>set_per_process_memory_fraction</code>) refused it.",
        );
    }
    let cached = ran_out.accounts.cached_bytes();
    if cached > 0 {
        push(
            html,
            format_args!(
                " PyTorch had {} cached in pieces between live blocks, none of them large enough.",
                data(cached)
            ),
        );
    }
    match because {
        Some(RefusedBecause::Fragmented) => html.push_str(
            " In one piece, what was unused would have been enough: the memory was fragmented \
             (<code>PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True</code> avoids most of that).",
        ),
        Some(RefusedBecause::Full) if cached > 0 => {
            html.push_str(" Even in one piece, what was unused would not have been enough.");
        }
        _ => {}
    }
    // A snapshot's page has no categories; a rehearsal's shows them next to the timeline.
    if source == Source::Rehearsal {
        html.push_str(" The charts below open at that moment.");
    }
}

fn add_lines(html: &mut String, ran_out: &RanOut) {
    // A single row for allocations of unknown origin would say nothing.
    let has_lines = ran_out
        .lines
        .iter()
        .any(|line| matches!(line.place, Place::Line(_)));
    if !has_lines {
        return;
    }
    html.push_str("<table class=\"lines\"><caption>Lines that held most then</caption><tbody>");
    for line in ran_out.lines.iter().take(MOST_LINES) {
        push(
            html,
            format_args!(
                "<tr><td class=\"number\">{}</td><td class=\"text\"><code>{}</code>{}</td></tr>",
                data(line.held.requested_bytes()),
                Escaped(text::shown_file(&line.label)),
                mostly(line)
            ),
        );
    }
    html.push_str("</tbody></table>");
}

/// `, mostly parameters`.
fn mostly(line: &PlaceSum) -> String {
    match line.held.requested.largest() {
        Some((Category::Unknown, _)) | None => String::new(),
        Some((category, _)) => format!(", mostly {}", category.title()),
    }
}

/// A size, with its bytes for programs.
fn data(bytes: u64) -> String {
    let words = human(bytes).replace(' ', "\u{a0}");
    format!("<data value=\"{bytes}\">{words}</data>")
}

/// The innermost line of the user's own code, else the innermost line; stacks are outermost first here.
fn user_frame(stack: &[StackFrame]) -> Option<&StackFrame> {
    let mut from_innermost = stack.iter().rev();
    from_innermost
        .find(|frame| frame.is_user_code)
        .or_else(|| stack.last())
}

#[cfg(test)]
mod tests {
    use ghostgpu_ledger::Groups;
    use ghostgpu_recording::made_up::{ByHand, Origin};
    use ghostgpu_recording::{Answer, Failure, Stage, Verdict};

    use super::*;

    fn said(recording: &Recording) -> String {
        let counted = Counted::all(recording, &Groups::of(recording));
        html(recording, &counted).replace('\u{a0}', " ")
    }

    /// A run of a small script, which held 3 MiB when its last request failed.
    fn failing(requested_bytes: u64, left_bytes: u64) -> Recording {
        failing_with(Category::Activation, requested_bytes, left_bytes)
    }

    fn failing_with(category: Category, requested_bytes: u64, left_bytes: u64) -> Recording {
        let mut by_hand = ByHand::new();
        by_hand.enter(Stage::Forward);
        by_hand.reserve(1 << 30, 4 << 20);
        let origin = Origin {
            lines: &["torch/linear.py:7", "train.py:20"],
            ..Origin::default()
        };
        by_hand.allocate_at(1 << 30, 3 << 20, category, origin);
        let event = by_hand.card().fail(Failure {
            requested_bytes,
            driver_free_bytes: Some(left_bytes),
            ..Failure::default()
        });
        by_hand.push(event);
        by_hand.recording
    }

    fn oom(message: &str) -> OomReport {
        let frame = |file: &str, source: Option<&str>, is_user_code| StackFrame {
            file: file.to_owned(),
            line: 7,
            function: "f".to_owned(),
            source: source.map(str::to_owned),
            is_user_code,
        };
        OomReport {
            device: 0,
            requested_bytes: 2048,
            message: message.to_owned(),
            step: 0,
            stage: "forward".to_owned(),
            stack: vec![
                frame("<i>.py", Some(" x = y "), true),
                frame("/v/site-packages/torch/f.py", None, false),
            ],
            is_fatal: true,
            moment: None,
        }
    }

    fn misfit(message: &str) -> Option<Answer> {
        Some(Answer {
            verdict: Verdict::DoesNotFit,
            fits: Some(false),
            oom: Some(oom(message)),
            ..Answer::default()
        })
    }

    #[test]
    fn a_failed_request_is_shown_with_its_line_and_escaped() {
        let mut recording = Recording::default();
        assert_eq!(said(&recording), "");
        recording.about.answer = misfit("<b>");
        let html = said(&recording);
        let line = "in step 1 (forward), at <code>&lt;i&gt;.py:7</code> in f: <code>x = y</code>";
        assert!(html.contains(line), "{html}");
        assert!(html.contains("<p>&lt;b&gt;</p>"));
        assert!(html.contains("<summary>1 frame of torch</summary>"));
    }

    #[test]
    fn what_held_the_card_is_that_of_the_run_that_failed() {
        let mut recording = ByHand::new().recording;
        recording.about.answer = misfit("");
        recording.keep_failed_run(failing(2 << 20, 512 << 10));
        let html = said(&recording);
        for words in [
            "<data value=\"524288\">512.00 KiB</data> were left on the card.",
            "<data value=\"1048576\">1.00 MiB</data> cached in pieces between live blocks",
            "Even in one piece, what was unused would not have been enough.",
            "<code>train.py:20 in main</code>, mostly activations kept for backward",
        ] {
            assert!(html.contains(words), "{words}\n{html}");
        }
    }

    #[test]
    fn fragmentation_is_named_where_it_is_the_reason() {
        let mut recording = failing(1 << 20, 512 << 10);
        recording.about.answer = misfit("");
        assert!(said(&recording).contains("expandable_segments:True"));
    }

    #[test]
    fn a_limit_is_named_where_the_card_had_room() {
        let mut recording = failing(1 << 20, 100 << 20);
        recording.about.source = Source::Snapshot;
        let html = said(&recording);
        assert!(html.contains("set_per_process_memory_fraction"), "{html}");
        assert!(!html.contains("expandable_segments"), "{html}");
    }

    #[test]
    fn a_request_that_the_script_got_over_is_not_where_it_ended() {
        let mut recording = failing(1 << 20, 0);
        recording.about.answer = Some(Answer {
            verdict: Verdict::Fits,
            fits: Some(true),
            recovered_ooms: vec![oom("")],
            ..Answer::default()
        });
        assert_eq!(said(&recording), "");
    }

    #[test]
    fn a_snapshot_names_the_event_of_the_failure() {
        let mut recording = failing_with(Category::Unknown, 1 << 30, 0);
        recording.about.source = Source::Snapshot;
        let html = said(&recording);
        assert!(html.contains("is event 2 of device 0"), "{html}");
        assert!(!html.contains("mostly"), "{html}");
    }
}
