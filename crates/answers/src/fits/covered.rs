//! Which parts of a training were rehearsed, and which were not reached.

use ghostgpu_session::{Covered, NotReached, TrainingPart};

use crate::fits::Answer;

/// How much is said about each part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Words {
    All,
    /// Without sizes.
    Few,
}

/// `9 steps, batches of 16×35 to 16×512, last batch of 8, evaluation, checkpoint, next epoch`.
pub fn covered(answer: &Answer) -> String {
    parts(answer, Words::All).join(", ")
}

/// The same on one line: without sizes if it is too long, and with as many parts as there is room for.
pub fn covered_in_one_line(answer: &Answer, width: usize) -> String {
    let all = covered(answer);
    match all.chars().count() <= width {
        true => all,
        false => in_one_line(&parts(answer, Words::Few), width),
    }
}

fn parts(answer: &Answer, words: Words) -> Vec<String> {
    let is_short = words == Words::Few;
    let detail = |part: TrainingPart| {
        let mut all = answer.covered.iter();
        all.find(|covered| covered.part == part)
            .map(|covered| covered.detail.as_str())
    };
    let batches = match (
        detail(TrainingPart::SmallestBatch),
        detail(TrainingPart::LargestBatch),
    ) {
        (Some(small), Some(large)) if small != large => Some(format!("{small} to {large}")),
        (one, other) => other.or(one).map(str::to_owned),
    };
    let mut told: Vec<String> = Vec::new();
    let mut has_batches = false;
    for Covered { part, detail } in &answer.covered {
        let detail = if is_short && *part != TrainingPart::Steps {
            ""
        } else {
            detail
        };
        told.push(match part {
            TrainingPart::Steps => steps(detail),
            TrainingPart::LargestBatch | TrainingPart::SmallestBatch => {
                let is_left_out = has_batches || is_short;
                let Some(batches) = batches.as_deref().filter(|_| !is_left_out) else {
                    continue;
                };
                has_batches = true;
                with("batches of", batches)
            }
            TrainingPart::LastBatch => with("last batch of", detail),
            TrainingPart::Evaluation => with("evaluation", detail),
            TrainingPart::Checkpoint => with("checkpoint", detail),
            TrainingPart::NextEpoch => in_brackets("next epoch", detail),
            TrainingPart::EndOfScript => "end of the script".to_owned(),
        });
    }
    told
}

/// `evaluation and next epoch: the time budget of 60 s was spent`, for each reason.
pub fn not_reached(answer: &Answer) -> Vec<String> {
    let mut by_reason: Vec<(&str, Vec<&str>)> = Vec::new();
    for NotReached { part, because } in &answer.not_reached {
        let name = part.title();
        match by_reason.iter_mut().find(|(reason, _)| reason == because) {
            Some((_, names)) => names.push(name),
            None => by_reason.push((because, vec![name])),
        }
    }
    by_reason
        .into_iter()
        .map(|(because, names)| match because {
            "" => names.join(", "),
            because => format!("{}: {because}", names.join(", ")),
        })
        .collect()
}

/// As many parts as have room on one line.
fn in_one_line(parts: &[String], width: usize) -> String {
    const MORE: &str = ", …";
    let mut line = String::new();
    for (at, part) in parts.iter().enumerate() {
        let comma = if line.is_empty() { "" } else { ", " };
        let is_last = at + 1 == parts.len();
        let room = width - if is_last { 0 } else { MORE.chars().count() };
        let longer = line.chars().count() + comma.len() + part.chars().count();
        if longer > room && !line.is_empty() {
            line.push_str(MORE);
            return line;
        }
        line.push_str(comma);
        line.push_str(part);
    }
    ghostgpu_text::shortened(&line, width, width)
}

fn steps(count: &str) -> String {
    match count {
        "1" => "1 step".to_owned(),
        count => format!("{count} steps"),
    }
}

fn with(words: &str, detail: &str) -> String {
    match detail {
        // Without a detail, "batches of" becomes "batches".
        "" => words.trim_end_matches(" of").to_owned(),
        detail => format!("{words} {detail}"),
    }
}

fn in_brackets(words: &str, detail: &str) -> String {
    match detail {
        "" => words.to_owned(),
        detail => format!("{words} ({detail})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_told_in_the_order_in_which_they_were_seen() {
        let part = |part, detail: &str| Covered {
            part,
            detail: detail.to_owned(),
        };
        let mut answer = Answer {
            covered: vec![
                part(TrainingPart::Steps, "9"),
                part(TrainingPart::LargestBatch, "16×512"),
                part(TrainingPart::SmallestBatch, "16×35"),
                part(TrainingPart::LastBatch, "8"),
                part(TrainingPart::Evaluation, "at train.py:41"),
                part(TrainingPart::Checkpoint, "at train.py:60"),
                part(TrainingPart::NextEpoch, "5 steps"),
            ],
            ..Answer::default()
        };
        assert_eq!(
            covered(&answer),
            "9 steps, batches of 16×35 to 16×512, last batch of 8, evaluation at train.py:41, \
             checkpoint at train.py:60, next epoch (5 steps)"
        );
        assert_eq!(
            covered_in_one_line(&answer, 65),
            "9 steps, last batch, evaluation, checkpoint, next epoch"
        );
        assert_eq!(
            covered_in_one_line(&answer, 40),
            "9 steps, last batch, evaluation, …"
        );
        answer.covered = vec![
            part(TrainingPart::Steps, "1"),
            part(TrainingPart::LargestBatch, "600×3×64×64"),
            part(TrainingPart::SmallestBatch, "600×3×64×64"),
            part(TrainingPart::EndOfScript, ""),
        ];
        assert_eq!(
            covered_in_one_line(&answer, 65),
            "1 step, batches of 600×3×64×64, end of the script"
        );
    }

    #[test]
    fn what_was_not_reached_for_the_same_reason_is_told_together() {
        let part = |part, because: &str| NotReached {
            part,
            because: because.to_owned(),
        };
        let answer = Answer {
            not_reached: vec![
                part(
                    TrainingPart::Evaluation,
                    "the time budget of 60 s was spent",
                ),
                part(TrainingPart::Checkpoint, "no `torch.save` in 9 steps"),
                part(TrainingPart::NextEpoch, "the time budget of 60 s was spent"),
            ],
            ..Answer::default()
        };
        assert_eq!(
            not_reached(&answer),
            [
                "evaluation, next epoch: the time budget of 60 s was spent",
                "checkpoint: no `torch.save` in 9 steps"
            ]
        );
    }
}
