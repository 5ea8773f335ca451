//! How far a training had got, from the last line that shows progress.

use serde::Serialize;

use crate::families::{cased_pattern, number};

/// Counters of a training.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Progress {
    pub step: Option<u64>,
    pub of_steps: Option<u64>,
    pub epoch: Option<u64>,
    /// What is counted, in the log's words.
    pub label: String,
}

/// A line with any of these is kept until the next one.
pub const NEEDLES: [&str; 10] = [
    "it/s", "s/it", "ba/s", "batch/s", "poch", "tep ", "tep:", "tep=", "ter ", "teration",
];

cased_pattern!(
    BAR,
    r"([^\s|][^|]{0,60}?)?:?\s*\d{1,3}%\|[^|]*\|\s*(\d+)/(\d+) \["
);
cased_pattern!(
    STEP,
    r"(?i)\b(?:global[_ ]?)?(?:steps?|iter(?:ation)?s?)['\x22]?\s?(?:[:=]|->)?\s{0,3}\[?(\d+)(?:\s?/\s?(\d+))?"
);
cased_pattern!(
    EPOCH,
    r"(?i)\bepochs?['\x22]?\s?(?:[:=]|->)?\s{0,3}\[?(\d+)\]?(?:\[\s?(\d+)\s?/\s?(\d+)\])?"
);

impl Progress {
    /// Reads a line; `None` if it shows no progress.
    pub fn read(line: &str) -> Option<Self> {
        let mut progress = Self::default();
        if let Some(found) = BAR.captures(line) {
            progress.step = number(&found, 2);
            progress.of_steps = number(&found, 3);
            let label = found.get(1).map_or("", |label| label.as_str());
            progress.label = label
                .trim()
                .trim_end_matches(':')
                .chars()
                .take(60)
                .collect();
        }
        if let Some(found) = EPOCH.captures(line) {
            progress.epoch = number(&found, 1);
            if progress.step.is_none() {
                progress.step = number(&found, 2);
                progress.of_steps = number(&found, 3);
            }
        }
        if progress.step.is_none()
            && let Some(found) = STEP.captures(line)
        {
            progress.step = number(&found, 1);
            progress.of_steps = number(&found, 2);
        }
        (progress.step.is_some() || progress.epoch.is_some()).then_some(progress)
    }

    /// Counts files being loaded or data being prepared, not training steps.
    pub fn is_loading(&self) -> bool {
        let label = self.label.to_lowercase();
        [
            "loading",
            "download",
            "fetching",
            "map",
            "tokeniz",
            "shard",
            "generating train",
        ]
        .iter()
        .any(|word| label.contains(word))
    }

    /// Counts evaluation batches.
    pub fn is_evaluation(&self) -> bool {
        let label = self.label.to_lowercase();
        ["eval", "valid", "test", "predict", "sampl"]
            .iter()
            .any(|word| label.contains(word))
    }

    /// At least one step succeeded.
    pub fn is_under_way(&self) -> bool {
        !self.is_loading()
            && (self.step.is_some_and(|step| step > 1) || self.epoch.is_some_and(|epoch| epoch > 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_many_trainers_are_read() {
        for (line, step, of_steps, epoch) in [
            (
                " 12%|█▏   | 12/100 [00:01<00:09,  9.8it/s]",
                Some(12),
                Some(100),
                None,
            ),
            (
                "Epoch 3:  45%|####  | 45/100 [00:01<00:09, 9it/s]",
                Some(45),
                Some(100),
                Some(3),
            ),
            (
                "Epoch: [0][415/1736]\t Loss 0.58",
                Some(415),
                Some(1736),
                Some(0),
            ),
            (
                "Iteration-> 674  , Iteration_time-> 0.12",
                Some(674),
                None,
                None,
            ),
            ("epoch->  2999", None, None, Some(2999)),
            ("step 320: loss 2.1", Some(320), None, None),
            ("{'loss': 1.2, 'epoch': 7}", None, None, Some(7)),
            ("iter 144: image-id:0254212", Some(144), None, None),
            ("Epoch 5/5", None, None, Some(5)),
        ] {
            let found = Progress::read(line).unwrap_or_default();
            assert_eq!(
                (found.step, found.of_steps, found.epoch),
                (step, of_steps, epoch),
                "{line}"
            );
        }
        assert_eq!(Progress::read("nothing here"), None);
    }

    #[test]
    fn loading_and_evaluating_are_told_from_training() {
        let read = |line| Progress::read(line).unwrap_or_default();
        assert!(
            read("Loading checkpoint shards:  33%|###   | 1/3 [00:01<00:02, 1s/it]").is_loading()
        );
        assert!(read("Evaluating:  33%|###   | 10/30 [00:01<00:02, 1s/it]").is_evaluation());
        assert!(!read("Training:  33%|###   | 10/30 [00:01<00:02, 1s/it]").is_evaluation());
    }
}
