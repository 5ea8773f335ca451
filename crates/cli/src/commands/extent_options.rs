//! How much of a training is rehearsed.

use std::time::Duration;

use ghostgpu_rehearse::{Extent, Job};
use ghostgpu_text::parse_duration;

/// By default, everything that can matter to memory.
#[derive(Clone, Debug, clap::Args)]
pub struct ExtentOptions {
    /// Spend at most this much time on training steps: `90s`, `5m`
    ///
    /// A rehearsal covers the first steps, the largest and smallest batches, the last batch of an epoch,
    /// evaluation, a checkpoint and the steps after them, and ends when nothing new happens. Epochs are
    /// shortened.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration,
          default_value = Job::BUDGET_WORDS, conflicts_with_all = ["steps", "full"])]
    pub budget: Duration,

    /// Stop after this many optimizer steps instead
    #[arg(long, value_name = "N")]
    pub steps: Option<u64>,

    /// Run the whole script instead, without shortening anything
    #[arg(long, conflicts_with = "steps")]
    pub full: bool,
}

impl ExtentOptions {
    pub fn extent(&self) -> Extent {
        match self.steps {
            _ if self.full => Extent::Whole,
            Some(0) => Extent::Whole,
            Some(steps) => Extent::Steps(steps),
            None => Extent::Coverage {
                budget: self.budget,
            },
        }
    }

    /// As they are typed, where they are not the default.
    pub fn words(&self) -> Vec<String> {
        match self.extent() {
            Extent::Whole => vec!["--full".to_owned()],
            Extent::Steps(steps) => vec!["--steps".to_owned(), steps.to_string()],
            Extent::Coverage { budget } if budget != Job::BUDGET => {
                vec!["--budget".to_owned(), format!("{}s", budget.as_secs_f64())]
            }
            Extent::Coverage { .. } => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        options: ExtentOptions,
    }

    #[test]
    fn what_is_typed_again_means_the_same() {
        for (typed, words) in [
            ("", ""),
            ("--budget 60s", ""),
            ("--budget 2m", "--budget 120s"),
            ("--steps 5", "--steps 5"),
            ("--steps 0", "--full"),
            ("--full", "--full"),
        ] {
            let line = ["ghostgpu"].into_iter().chain(typed.split_whitespace());
            let options = Line::parse_from(line).options;
            assert_eq!(options.words().join(" "), words);
            let again = ["ghostgpu".to_owned()].into_iter().chain(options.words());
            assert_eq!(Line::parse_from(again).options.extent(), options.extent());
        }
    }
}
