//! The explanation in full, for `--verbose`.

use ghostgpu_explain::{
    Advice, Catalogue, Explanation, Finding, Kind, Last, PartName, Ranks, Reasoned, Stage, Wording,
    release_text, say,
};

use super::Answer;
use super::figures::{common, in_words};
use super::picture::{mark, picture};
use crate::style::{Colour, Style};
use ghostgpu_text::{Sheet, Table, grouped, human};

pub fn full_text(answer: &Answer, style: Style) -> String {
    let mut sheet = style.sheet();
    let (explanation, catalogue) = (answer.explanation, answer.catalogue);
    let finding = &explanation.finding;
    let label = |id: &str| say!(catalogue, id);
    heading(&mut sheet, finding, catalogue);
    sheet.section(
        &label("label-where"),
        where_it_failed(explanation, catalogue),
    );
    card(&mut sheet, explanation, catalogue);
    figures(&mut sheet, finding, catalogue);
    ranks(&mut sheet, explanation, catalogue);
    situation(&mut sheet, &explanation.situations, catalogue);
    match answer.rehearsed {
        Some(rehearsed) => rehearsed.write(&mut sheet, catalogue),
        None => advice(&mut sheet, &explanation.advice, catalogue),
    }
    let unhelpful: Vec<String> = explanation
        .does_not_help
        .iter()
        .filter(|each| {
            !answer
                .rehearsed
                .is_some_and(|rehearsed| rehearsed.contradicts(each))
        })
        .map(|each| say!(catalogue, "useless-line", what = each.what, why = each.why))
        .collect();
    sheet.list(&label("label-does-not-help"), &unhelpful);
    others(&mut sheet, answer);
    style.paint_label(&label("label-ran-out"), Colour::Bad, &sheet.render())
}

/// What ran out, in words.
pub fn title(finding: &Finding, catalogue: &Catalogue) -> String {
    let library = finding.figures.text_named("library");
    let title = match (finding.kind, library) {
        (Kind::OtherAllocator, Some(library)) => {
            say!(catalogue, "kind-of-library", library = library)
        }
        (Kind::OtherHost, Some(library)) => {
            say!(catalogue, "kind-of-library-host", library = library)
        }
        (kind, _) => kind.title(catalogue),
    };
    match finding.kind.is_uncertain() {
        true => say!(catalogue, "kind-uncertain", title = title),
        false => title,
    }
}

fn heading(sheet: &mut Sheet, finding: &Finding, catalogue: &Catalogue) {
    sheet.paragraph(
        &say!(catalogue, "label-ran-out"),
        &title(finding, catalogue),
    );
    let line = grouped(finding.line);
    let mut line = match finding.times {
        1 => say!(catalogue, "message-line", line = line),
        times => say!(
            catalogue,
            "message-line-times",
            line = line,
            times = grouped(times)
        ),
    };
    if let Some(wording) = finding.wording {
        let wording = wording_in_words(wording, catalogue);
        line = say!(catalogue, "message-wording", line = line, wording = wording);
    }
    let label = say!(catalogue, "label-message");
    sheet.paragraph(&label, &format!("{line}\n{}", finding.text));
}

/// `PyTorch 2.2 or newer`, in the reader's language.
fn wording_in_words(wording: Wording, catalogue: &Catalogue) -> String {
    let (program, first) = ("PyTorch", release_text(wording.first));
    let words = match wording.last {
        Last::Release(last) => say!(
            catalogue,
            "wording-until",
            program = program,
            first = first,
            last = release_text(last)
        ),
        Last::Open => say!(catalogue, "wording-from", program = program, first = first),
        Last::Same => say!(catalogue, "wording-one", program = program, first = first),
    };
    match wording.setting {
        None => words,
        Some(setting) => format!("{words}{} {setting}", say!(catalogue, "list-comma")),
    }
}

/// The line that failed with its code, and how far the training had come.
pub fn where_it_failed(explanation: &Explanation, catalogue: &Catalogue) -> Vec<String> {
    let finding = &explanation.finding;
    let mut lines = Vec::new();
    let stage = explanation.stage.map(|stage| match stage {
        Stage::LoadingTheModel => say!(catalogue, "stage-loading"),
        Stage::Optimizer => say!(catalogue, "stage-optimizer"),
        Stage::Backward => say!(catalogue, "stage-backward"),
        Stage::Evaluation => say!(catalogue, "stage-evaluation"),
        Stage::Training => say!(catalogue, "stage-training"),
        Stage::Inference => say!(catalogue, "stage-inference"),
    });
    let frame = finding.traceback.as_ref().and_then(|found| found.place());
    if let Some(frame) = frame {
        // A number that is an identifier gets no thousands separators.
        let line = frame.line.to_string();
        let place = match frame.function.is_empty() {
            true => say!(catalogue, "place-at", file = frame.file, line = line),
            false => say!(
                catalogue,
                "place-in",
                file = frame.file,
                line = line,
                function = frame.function
            ),
        };
        lines.push(match stage {
            Some(stage) => say!(catalogue, "place-stage", place = place, stage = stage),
            None => place,
        });
        if !frame.code.is_empty() {
            lines.push(format!("    {}", frame.code));
        }
    }
    if let Some(progress) = &finding.progress {
        let counted = match progress.label.as_str() {
            "" => say!(catalogue, "counted-steps"),
            label => format!("`{label}`"),
        };
        let step = progress.step.map(|step| match progress.of_steps {
            Some(of) => say!(
                catalogue,
                "after-step-of",
                counted = counted,
                step = grouped(step),
                of = grouped(of)
            ),
            None => say!(
                catalogue,
                "after-step",
                counted = counted,
                step = grouped(step)
            ),
        });
        let epoch = progress.epoch;
        let epoch = epoch.map(|epoch| say!(catalogue, "in-epoch", epoch = epoch.to_string()));
        let words: Vec<String> = step.into_iter().chain(epoch).collect();
        lines.push(words.join(&listed(catalogue)));
    }
    lines
}

/// The separator between the items of a list.
pub fn listed(catalogue: &Catalogue) -> String {
    spaced(&say!(catalogue, "list-comma"))
}

/// A full-width sign already includes a space.
fn spaced(sign: &str) -> String {
    match sign.is_ascii() {
        true => format!("{sign} "),
        false => sign.to_owned(),
    }
}

fn card(sheet: &mut Sheet, explanation: &Explanation, catalogue: &Catalogue) {
    let account = &explanation.account;
    let figures = &explanation.finding.figures;
    let drawn = picture(account, figures.requested, catalogue);
    if drawn.is_empty() {
        return;
    }
    let device = device_name(figures.device, "the-card", catalogue);
    let total = account.total.unwrap_or_default();
    let heading = say!(catalogue, "card-heading", device = device, total = total);
    let label = say!(catalogue, "label-card");
    sheet.section(&label, std::iter::once(heading).chain(drawn));
    let mut table = Table::new(&["", "", ">", ">"]);
    for part in &account.parts {
        let percent = part.size.bytes.saturating_mul(1000) / total.bytes.max(1);
        table.push(vec![
            mark(part.name).to_string(),
            part.name.words(catalogue),
            part.size.to_string(),
            format!("{}.{} %", percent / 10, percent % 10),
        ]);
    }
    let rows: Vec<String> = table.render().lines().skip(1).map(str::to_owned).collect();
    sheet.section("", rows);
    let mut sums = Vec::new();
    if let (Some(reserved), Some(cached)) = (figures.reserved, account.part(PartName::Cached)) {
        sums.push(say!(
            catalogue,
            "reserved-of-which",
            reserved = reserved,
            cached = cached
        ));
    }
    if let Some(allowed) = figures.allowed {
        sums.push(say!(catalogue, "allowed-to-process", allowed = allowed));
    }
    if let Some(pools) = figures.private_pools {
        sums.push(say!(catalogue, "in-private-pools", pools = pools));
    }
    sheet.section("", sums);
    let verdict = match account.adds_up {
        Some(true) => say!(catalogue, "adds-up-yes"),
        Some(false) => say!(catalogue, "adds-up-no"),
        None => return,
    };
    let stop = spaced(&say!(catalogue, "list-stop"));
    let text = match account.remarks.as_slice() {
        [] => verdict,
        remarks => say!(
            catalogue,
            "adds-up-remarks",
            verdict = verdict,
            remarks = remarks.join(&stop)
        ),
    };
    sheet.paragraph(&say!(catalogue, "label-adds-up"), &text);
}

/// `GPU 0`, or `otherwise` for a card without a number.
pub fn device_name(device: Option<u32>, otherwise: &str, catalogue: &Catalogue) -> String {
    match device {
        Some(device) => format!("GPU {device}"),
        None => say!(catalogue, otherwise),
    }
}

/// The figures of messages that do not describe a card's memory.
fn figures(sheet: &mut Sheet, finding: &Finding, catalogue: &Catalogue) {
    let figures = &finding.figures;
    let has_picture = finding.kind.is_caching_allocator() && figures.total.is_some();
    let mut lines = Vec::new();
    if !has_picture {
        for (name, amount) in common(figures, catalogue) {
            let is_on_chip = finding.kind == Kind::KernelSharedMemory;
            let is_exact = amount.off_by == 0 && (amount.bytes >= 1024 || is_on_chip);
            lines.push(match is_exact {
                true => say!(
                    catalogue,
                    "figure-bytes",
                    name = name,
                    value = amount,
                    bytes = grouped(amount.bytes)
                ),
                false => say!(catalogue, "figure", name = name, value = amount),
            });
        }
    }
    let more = figures.more.iter();
    lines.extend(more.map(|figure| in_words(figure, catalogue)));
    sheet.section(&say!(catalogue, "label-figures"), lines);
}

fn ranks(sheet: &mut Sheet, explanation: &Explanation, catalogue: &Catalogue) {
    let Some(ranks) = &explanation.ranks else {
        return;
    };
    const SHOWN: usize = 8;
    let heading = |id: &str| format!(">{}", say!(catalogue, id));
    let headings = [
        heading("column-line"),
        heading("column-asked"),
        heading("column-allocated"),
        heading("column-free"),
    ];
    let [line, asked, allocated, free] = &headings;
    let mut table = Table::new(&["", line, asked, allocated, free]);
    let figure = |bytes: Option<u64>| bytes.map(human).unwrap_or_default();
    for failure in ranks.failed.iter().take(SHOWN) {
        table.push(vec![
            failure.name.clone(),
            grouped(failure.line),
            figure(failure.requested_bytes),
            figure(failure.allocated_bytes),
            figure(failure.free_bytes),
        ]);
    }
    let count = ranks.failed.len();
    let mut lines = vec![ranks_in_words(ranks, catalogue)];
    lines.extend(table.render().lines().map(str::to_owned));
    if count > SHOWN {
        lines.push(say!(catalogue, "and-more", count = count - SHOWN));
    }
    sheet.section(&say!(catalogue, "label-ranks"), lines);
}

/// `2 failed, rank 3 first; their figures differ`.
pub fn ranks_in_words(ranks: &Ranks, catalogue: &Catalogue) -> String {
    let first = ranks.failed.first().map(|first| first.name.as_str());
    let id = match ranks.differ {
        true => "ranks-failed-differ",
        false => "ranks-failed-same",
    };
    say!(
        catalogue,
        id,
        count = ranks.failed.len(),
        first = first.unwrap_or_default()
    )
}

fn situation(sheet: &mut Sheet, situations: &[Reasoned], catalogue: &Catalogue) {
    for (index, reasoned) in situations.iter().enumerate() {
        let label = match index {
            0 => say!(catalogue, "label-situation"),
            _ => say!(catalogue, "label-fits-too"),
        };
        sheet.paragraph(&label, &reasoned.situation.words(catalogue));
        sheet.list("", &reasoned.reasons);
    }
}

fn advice(sheet: &mut Sheet, all: &[Advice], catalogue: &Catalogue) {
    for (index, each) in all.iter().enumerate() {
        let label = match index {
            0 => say!(catalogue, "label-what-to-do"),
            _ => String::new(),
        };
        let text = say!(
            catalogue,
            "advice-line",
            number = index + 1,
            what = each.what,
            effect = each.effect.words(catalogue),
            why = each.why
        );
        sheet.paragraph(&label, &text);
        sheet.section("", [format!("     {}", each.command)]);
    }
}

fn others(sheet: &mut Sheet, answer: &Answer) {
    const SHOWN: usize = 6;
    let (explanation, catalogue) = (answer.explanation, answer.catalogue);
    let is_among_ranks =
        |other: &Finding| explanation.ranks.is_some() && other.kind == explanation.finding.kind;
    let others = explanation.others.iter();
    let others: Vec<&Finding> = others.filter(|other| !is_among_ranks(other)).collect();
    let mut lines: Vec<String> = others
        .iter()
        .take(SHOWN)
        .map(|other| {
            let text: String = other.text.chars().take(90).collect();
            let line = grouped(other.line);
            let line = match other.times {
                1 => say!(catalogue, "message-line", line = line),
                times => say!(
                    catalogue,
                    "message-line-short-times",
                    line = line,
                    times = grouped(times)
                ),
            };
            say!(catalogue, "other-message", line = line, text = text)
        })
        .collect();
    let more = others.len().saturating_sub(SHOWN) as u64 + answer.log.left_out;
    if more > 0 {
        lines.push(say!(catalogue, "and-more", count = grouped(more)));
    }
    sheet.section(&say!(catalogue, "label-in-the-log"), lines);
}

#[cfg(test)]
mod tests {
    use super::super::rehearsed::tests::{rehearsed, works};
    use super::super::rehearsed::{AsItIs, Fails, Rehearsed};
    use super::*;
    use crate::style::{Detail, PLAIN, assert_fits_one_screen};
    use ghostgpu_explain::Effect;
    use ghostgpu_explain::{Language, Reader, explain};

    fn explained(log: &str) -> String {
        explained_with(log, None)
    }

    fn explained_with(log: &str, rehearsed: Option<&Rehearsed>) -> String {
        let mut reader = Reader::default();
        reader.push(log.as_bytes());
        let log = reader.finish();
        let explanation = explain(&log).expect("something is recognised");
        let answer = Answer {
            catalogue: Language::English.catalogue(),
            log: &log,
            explanation: &explanation,
            rehearsed,
        };
        let with = |detail| answer.text(Style { detail, ..PLAIN });
        assert_eq!(with(Detail::Quiet).lines().count(), 1);
        let screen = with(Detail::Screen);
        assert_fits_one_screen(&screen);
        format!("{screen}\n--verbose\n{}", with(Detail::Everything))
    }

    /// In Chinese, on one screen and in full; no line may be wider than a terminal.
    #[test]
    fn a_picture_that_is_drawn_by_a_chinese_reader() {
        let mut reader = Reader::default();
        reader.push(
            b"  File \"/opt/app/run.py\", line 8, in <module>
    image = pipe(prompt)
  File \"/usr/lib/python3/dist-packages/diffusers/pipelines/flux/pipeline_flux.py\", line 889, in __call__
    noise = self.transformer(latents)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 90.00 MiB. GPU 0 has a total capacity of \
14.74 GiB of which 12.12 MiB is free. Including non-PyTorch memory, this process has 14.73 GiB memory in \
use. Of the allocated memory 14.10 GiB is allocated by PyTorch, and 4.05 MiB is reserved by PyTorch but \
unallocated.",
        );
        let log = reader.finish();
        let catalogue = Language::Chinese.catalogue();
        let explanation =
            ghostgpu_explain::explain_on(&log, |_| None, catalogue).expect("recognised");
        let answer = Answer {
            catalogue,
            log: &log,
            explanation: &explanation,
            rehearsed: None,
        };
        let with = |detail| answer.text(Style { detail, ..PLAIN });
        let screen = with(Detail::Screen);
        for line in screen.lines() {
            assert!(ghostgpu_text::columns(line) <= 80, "{line}");
        }
        assert!(screen.lines().count() <= 24);
        insta::assert_snapshot!(format!("{screen}\n--verbose\n{}", with(Detail::Everything)));
    }

    /// With a catalogue of empty texts, all remaining letters come from the log, a command or a unit.
    #[test]
    fn labels_and_lines_come_from_the_catalogue() {
        let source: String = Language::English
            .source()
            .lines()
            .filter_map(|line| {
                let (name, _) = line.split_once(" = ")?;
                Some(format!("{name} = ·\n"))
            })
            .collect();
        let silent = ghostgpu_explain::Catalogue::of(Language::English, &source);
        let mut reader = Reader::default();
        reader.push(OUT_OF_MEMORY.as_bytes());
        let log = reader.finish();
        let explanation =
            ghostgpu_explain::explain_on(&log, |_| None, &silent).expect("recognised");
        let answer = Answer {
            catalogue: &silent,
            log: &log,
            explanation: &explanation,
            rehearsed: None,
        };
        for detail in [Detail::Quiet, Detail::Screen, Detail::Everything] {
            let style = Style {
                detail,
                width: 2000,
                ..PLAIN
            };
            let mut text = answer.text(style);
            let commands = explanation
                .advice
                .iter()
                .map(|advice| advice.command.as_str());
            let commands = commands.map(|command| command.split("   #").next().unwrap_or(command));
            let said = commands.chain([explanation.finding.text.as_str(), "loss.backward()"]);
            for word in said.chain(["GiB", "MiB", "KiB"]) {
                text = text.replace(word, "");
            }
            let is_said = text.contains(|character: char| character.is_ascii_alphabetic());
            assert!(!is_said, "{text}");
        }
    }

    #[test]
    fn a_fragmented_card() {
        insta::assert_snapshot!(explained(
            "Traceback (most recent call last):
  File \"train.py\", line 82, in main
    loss.backward()
torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total \
capacity of 23.65 GiB of which 1.66 GiB is free. Process 4711 has 1.02 GiB memory in use. Including \
non-PyTorch memory, this process has 20.81 GiB memory in use. Of the allocated memory 12.09 GiB is \
allocated by PyTorch, and 7.84 GiB is reserved by PyTorch but unallocated."
        ));
    }

    #[test]
    fn a_request_larger_than_the_card() {
        insta::assert_snapshot!(explained(
            "  File \"model.py\", line 12, in forward
    energy = torch.bmm(proj_query, proj_key)
RuntimeError: CUDA out of memory. Tried to allocate 268.21 GiB (GPU 4; 10.92 GiB total capacity; 1.80 \
GiB already allocated; 8.52 GiB free; 47.59 MiB cached)"
        ));
    }

    #[test]
    fn several_ranks_on_a_shared_card() {
        let rank = |rank: u32, asked: &str| {
            format!(
                "[rank{rank}]:   File \"train.py\", line 9, in train\n[rank{rank}]:     out = model(x)\n\
                 [rank{rank}]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked}. GPU \
                 {rank} has a total capacity of 79.15 GiB of which 0.50 GiB is free. Process 7 has 40.00 \
                 GiB memory in use. Including non-PyTorch memory, this process has 38.60 GiB memory in \
                 use. Of the allocated memory 37.00 GiB is allocated by PyTorch, and 1.00 GiB is \
                 reserved by PyTorch but unallocated.\n"
            )
        };
        insta::assert_snapshot!(explained(&(rank(3, "2.00 GiB") + &rank(0, "1.50 GiB"))));
    }

    #[test]
    fn a_machine_without_memory() {
        insta::assert_snapshot!(explained(
            "[2059991.491542] Out of memory: Killed process 25315 (python3) total-vm:53312244kB, \
             anon-rss:31451456kB, file-rss:74816kB, shmem-rss:12296kB, UID:0"
        ));
    }

    #[test]
    fn a_kernel_that_is_too_large_for_the_chip() {
        insta::assert_snapshot!(explained(
            "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 131072, \
             Hardware limit: 101376. Reducing block sizes or `num_stages` may help."
        ));
    }

    const OUT_OF_MEMORY: &str = "  File \"train.py\", line 82, in main
    loss.backward()
torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total \
capacity of 11.65 GiB of which 0.66 GiB is free. Including non-PyTorch memory, this process has 10.99 \
GiB memory in use. Of the allocated memory 10.09 GiB is allocated by PyTorch, and 0.44 GiB is reserved \
by PyTorch but unallocated.";

    #[test]
    fn what_was_rehearsed_is_told_best_first() {
        let mut rehearsed = rehearsed(AsItIs::DoesNotFit {
            place: "in step 1 (forward), at src/package/models/transformer.py:1234".to_owned(),
            needed_bytes: Some(14 << 30),
        });
        rehearsed.works = vec![
            works(
                "gradient checkpointing",
                Effect::Identical,
                Some("12 Block modules checkpointed"),
            ),
            works("expandable segments", Effect::Identical, None),
            works("a batch of 3", Effect::Training, None),
            works("bfloat16 autocast", Effect::Precision, None),
        ];
        rehearsed.works[1].command =
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python train.py --batch-size 64"
                .to_owned();
        for what in [
            "a bound for splitting",
            "max_split_size_mb:512",
            "fused AdamW",
            "shorter sequences",
        ] {
            rehearsed.fails.push(Fails {
                what: what.to_owned(),
                because: "out of memory in step 1 (backward)".to_owned(),
            });
        }
        insta::assert_snapshot!(explained_with(OUT_OF_MEMORY, Some(&rehearsed)));
    }

    #[test]
    fn a_plan_comes_before_other_advice() {
        let mut with_plan = rehearsed(AsItIs::DoesNotFit {
            place: "in step 1 (forward), at train.py:41".to_owned(),
            needed_bytes: Some(14 << 30),
        });
        with_plan.plan = Some(crate::plan::tests::found(true));
        with_plan.works = vec![
            works(
                "gradient checkpointing",
                Effect::Rounding,
                Some("12 Block modules checkpointed"),
            ),
            works("a batch of 3 instead of 8", Effect::Training, None),
        ];
        insta::assert_snapshot!(explained_with(OUT_OF_MEMORY, Some(&with_plan)));
        assert_eq!(with_plan.exit_code(), 0);
        with_plan.works.clear();
        with_plan.plan = Some(crate::plan::tests::nothing());
        let text = explained_with(OUT_OF_MEMORY, Some(&with_plan));
        assert!(text.contains("nothing that was rehearsed\n"), "{text}");
        assert_eq!(with_plan.exit_code(), 3);
    }

    #[test]
    fn rehearsals_without_success_say_so() {
        let nothing = rehearsed(AsItIs::DoesNotFit {
            place: "while moving the model".to_owned(),
            needed_bytes: None,
        });
        let text = explained_with(OUT_OF_MEMORY, Some(&nothing));
        assert!(
            text.contains("works          nothing that was rehearsed\n"),
            "{text}"
        );
    }
}
