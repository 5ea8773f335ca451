//! The explanation in full, for `--verbose`.

use ghostgpu_explain::{Advice, Explanation, Finding, Kind, PartName, Ranks, Reasoned, Stage};

use super::Answer;
use super::figures::{common, in_words};
use super::picture::{mark, picture};
use crate::look::{Colour, Look};
use ghostgpu_text::{Sheet, Table, grouped, human};

pub fn full_text(answer: &Answer, look: Look) -> String {
    let mut sheet = look.sheet();
    let explanation = answer.explanation;
    let finding = &explanation.finding;
    heading(&mut sheet, finding);
    sheet.section("where", where_it_failed(explanation));
    card(&mut sheet, explanation);
    figures(&mut sheet, finding);
    ranks(&mut sheet, explanation);
    situation(&mut sheet, &explanation.situations);
    match answer.rehearsed {
        Some(rehearsed) => rehearsed.write(&mut sheet),
        None => advice(&mut sheet, "what to do", &explanation.advice),
    }
    let unhelpful: Vec<String> = explanation
        .does_not_help
        .iter()
        .filter(|each| {
            !answer
                .rehearsed
                .is_some_and(|rehearsed| rehearsed.contradicts(each))
        })
        .map(|each| format!("{}: {}", each.what, each.why))
        .collect();
    sheet.list("does not help", &unhelpful);
    others(&mut sheet, answer);
    look.paint_label("ran out", Colour::Bad, &sheet.render())
}

/// What ran out, in words.
pub fn title(finding: &Finding) -> String {
    let uncertain = match finding.kind.is_uncertain() {
        true => " (it can have other causes)",
        false => "",
    };
    format!("{}{uncertain}", finding.kind.title())
}

fn heading(sheet: &mut Sheet, finding: &Finding) {
    sheet.paragraph("ran out", &title(finding));
    let times = match finding.times {
        1 => String::new(),
        times => format!(", {} times", grouped(times)),
    };
    let wording = finding
        .wording
        .map(|wording| format!("; the wording of {wording}"));
    sheet.paragraph(
        "message",
        &format!(
            "line {}{times}{}\n{}",
            grouped(finding.line),
            wording.unwrap_or_default(),
            finding.text
        ),
    );
}

/// The line that failed with its code, and how far the training had come.
pub fn where_it_failed(explanation: &Explanation) -> Vec<String> {
    let finding = &explanation.finding;
    let mut lines = Vec::new();
    let stage = explanation.stage.map(|stage| match stage {
        Stage::LoadingTheModel => " (putting the model on the card)",
        Stage::Optimizer => " (optimizer step)",
        Stage::Backward => " (backward)",
        Stage::Evaluation => " (evaluation)",
        Stage::Training => " (training)",
    });
    let frame = finding.traceback.as_ref().and_then(|found| found.place());
    if let Some(frame) = frame {
        let function = match frame.function.is_empty() {
            true => String::new(),
            false => format!(" in {}", frame.function),
        };
        lines.push(format!(
            "{}:{}{function}{}",
            frame.file,
            frame.line,
            stage.unwrap_or_default()
        ));
        if !frame.code.is_empty() {
            lines.push(format!("    {}", frame.code));
        }
    }
    if let Some(progress) = &finding.progress {
        let step = progress.step.map(|step| match progress.of_steps {
            Some(of) => format!("{} of {}", grouped(step), grouped(of)),
            None => grouped(step),
        });
        let counted = match progress.label.as_str() {
            "" => "step".to_owned(),
            label => format!("`{label}`"),
        };
        let step = step.map(|step| format!("after {counted} {step}"));
        let epoch = progress.epoch.map(|epoch| format!("epoch {epoch}"));
        let words: Vec<String> = step.into_iter().chain(epoch).collect();
        lines.push(words.join(", "));
    }
    lines
}

fn card(sheet: &mut Sheet, explanation: &Explanation) {
    let account = &explanation.account;
    let figures = &explanation.finding.figures;
    let drawn = picture(account, figures.requested);
    if drawn.is_empty() {
        return;
    }
    let device = figures
        .device
        .map_or("the card".to_owned(), |device| format!("GPU {device}"));
    let total = account.total.unwrap_or_default();
    let heading = format!("{device}, {total}");
    sheet.section("card", std::iter::once(heading).chain(drawn));
    let mut table = Table::new(&["", "", ">", ">"]);
    for part in &account.parts {
        let percent = part.size.bytes.saturating_mul(1000) / total.bytes.max(1);
        table.push(vec![
            mark(part.name).to_string(),
            part.name.words().to_owned(),
            part.size.to_string(),
            format!("{}.{} %", percent / 10, percent % 10),
        ]);
    }
    let rows: Vec<String> = table.render().lines().skip(1).map(str::to_owned).collect();
    sheet.section("", rows);
    let mut sums = Vec::new();
    if let (Some(reserved), Some(cached)) = (figures.reserved, account.part(PartName::Cached)) {
        sums.push(format!(
            "reserved by PyTorch {reserved}, of which {cached} cached (reserved - allocated)"
        ));
    }
    if let Some(allowed) = figures.allowed {
        sums.push(format!("allowed to this process {allowed}"));
    }
    if let Some(pools) = figures.private_pools {
        sums.push(format!(
            "of the allocated, {pools} in private pools (CUDA graphs)"
        ));
    }
    sheet.section("", sums);
    let verdict = match account.adds_up {
        Some(true) => "yes",
        Some(false) => "no",
        None => return,
    };
    let remarks = match account.remarks.as_slice() {
        [] => String::new(),
        remarks => format!(": {}", remarks.join(". ")),
    };
    sheet.paragraph("adds up", &format!("{verdict}{remarks}"));
}

/// Figures of messages that account for no card.
fn figures(sheet: &mut Sheet, finding: &Finding) {
    let figures = &finding.figures;
    let has_picture = finding.kind.is_caching_allocator() && figures.total.is_some();
    let mut lines = Vec::new();
    if !has_picture {
        for (name, amount) in common(figures) {
            let is_on_chip = finding.kind == Kind::KernelSharedMemory;
            let bytes = match amount.off_by == 0 && (amount.bytes >= 1024 || is_on_chip) {
                true => format!(" ({} bytes)", grouped(amount.bytes)),
                false => String::new(),
            };
            lines.push(format!("{name} {amount}{bytes}"));
        }
    }
    lines.extend(figures.more.iter().map(in_words));
    sheet.section("figures", lines);
}

fn ranks(sheet: &mut Sheet, explanation: &Explanation) {
    let Some(ranks) = &explanation.ranks else {
        return;
    };
    const SHOWN: usize = 8;
    let mut table = Table::new(&["", ">line", ">asked for", ">allocated", ">free"]);
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
    let mut lines = vec![ranks_in_words(ranks)];
    lines.extend(table.render().lines().map(str::to_owned));
    if count > SHOWN {
        lines.push(format!("and {} more", count - SHOWN));
    }
    sheet.section("ranks", lines);
}

/// `2 failed, rank 3 first; their figures differ`.
pub fn ranks_in_words(ranks: &Ranks) -> String {
    let first = ranks.failed.first().map(|first| first.name.as_str());
    format!(
        "{} failed, {} first; {}",
        ranks.failed.len(),
        first.unwrap_or_default(),
        match ranks.differ {
            true => "their figures differ",
            false => "with the same figures",
        }
    )
}

fn situation(sheet: &mut Sheet, situations: &[Reasoned]) {
    for (index, reasoned) in situations.iter().enumerate() {
        let label = if index == 0 { "situation" } else { "fits too" };
        sheet.paragraph(label, reasoned.situation.words());
        sheet.list("", &reasoned.reasons);
    }
}

fn advice(sheet: &mut Sheet, label: &str, all: &[Advice]) {
    for (index, each) in all.iter().enumerate() {
        let label = if index == 0 { label } else { "" };
        sheet.paragraph(
            label,
            &format!(
                "{}. {} ({}): {}",
                index + 1,
                each.what,
                each.effect.words(),
                each.why
            ),
        );
        sheet.section("", [format!("     {}", each.command)]);
    }
}

fn others(sheet: &mut Sheet, answer: &Answer) {
    const SHOWN: usize = 6;
    let explanation = answer.explanation;
    let is_among_ranks =
        |other: &Finding| explanation.ranks.is_some() && other.kind == explanation.finding.kind;
    let others = explanation.others.iter();
    let others: Vec<&Finding> = others.filter(|other| !is_among_ranks(other)).collect();
    let mut lines: Vec<String> = others
        .iter()
        .take(SHOWN)
        .map(|other| {
            let short: String = other.text.chars().take(90).collect();
            let times = match other.times {
                1 => String::new(),
                times => format!(" ({} times)", grouped(times)),
            };
            format!("line {}{times}: {short}", grouped(other.line))
        })
        .collect();
    let more = others.len().saturating_sub(SHOWN) as u64 + answer.log.left_out;
    if more > 0 {
        lines.push(format!("and {} more", grouped(more)));
    }
    sheet.section("in the log", lines);
}

#[cfg(test)]
mod tests {
    use super::super::rehearsed::tests::{rehearsed, works};
    use super::super::rehearsed::{AsItIs, Fails, Rehearsed};
    use super::*;
    use crate::look::{Detail, PLAIN, assert_fits_one_screen};
    use ghostgpu_explain::Effect;
    use ghostgpu_explain::{Reader, explain};

    fn explained(log: &str) -> String {
        explained_with(log, None)
    }

    fn explained_with(log: &str, rehearsed: Option<&Rehearsed>) -> String {
        let mut reader = Reader::default();
        reader.push(log.as_bytes());
        let log = reader.finish();
        let explanation = explain(&log).expect("something is recognised");
        let answer = Answer {
            log: &log,
            explanation: &explanation,
            rehearsed,
        };
        let with = |detail| answer.text(Look { detail, ..PLAIN });
        assert_eq!(with(Detail::Quiet).lines().count(), 1);
        let screen = with(Detail::Screen);
        assert_fits_one_screen(&screen);
        format!("{screen}\n--verbose\n{}", with(Detail::Everything))
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
