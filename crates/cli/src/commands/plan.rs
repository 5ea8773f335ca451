//! `ghostgpu plan`: the tricks that make a job fit.

use std::path::PathBuf;

use ghostgpu_answers::plan::Typed;
use ghostgpu_plan::memory_plan::{Allowance, Allowed};
use ghostgpu_rehearse::Job;

use super::AnswerOptions;
use super::extent_options::ExtentOptions;
use super::rehearsal_options::RehearsalOptions;
use super::script_options::{BatchArgument, ScriptWords};
use crate::failure::Failure;
use crate::questions::plan::{Destinations, REHEARSALS, WhichTricks, answer};

/// Find the tricks that make a script fit on a virtual card
///
/// If the script does not fit as it is, it is rehearsed with memory-saving tricks: each alone, then
/// combined, in the smallest amount that is enough. Every combination shown was rehearsed with everything
/// a training does, and leaves the margin free. Losses and gradients stay the same up to rounding, unless
/// --allow permits more.
#[derive(Debug, clap::Args)]
#[command(override_usage = "\
ghostgpu plan --gpu <NAME> [OPTIONS] <SCRIPT> [ARGUMENTS]...
       ghostgpu plan --gpu <NAME> [OPTIONS] -m <MODULE> [ARGUMENTS]...
       ghostgpu plan --gpu <NAME> [OPTIONS] -- <PROGRAM> [ARGUMENTS]...")]
#[command(after_help = "\
Options of ghostgpu come before the script. Everything after it belongs to the script.

Examples:
  ghostgpu plan --gpu 3060 train.py --batch-size 64
      what makes it fit, best first, and the command that trains with it
  ghostgpu plan --gpu 3060 --allow precision,optimizer train.py
      also consider mixed precision and leaner optimizers
  ghostgpu plan --memory 8GiB --gpu h200 --margin 5% --write plan.toml train.py
      then: ghostgpu launch --plan plan.toml train.py

Answers are cached; --fresh rehearses everything again. Ctrl-C shows the best so far, with exit \
code 130.

Exit codes: 0 it fits, as it is or with tricks, 3 nothing fits, 4 it fits only tightly, \
5 to 8 the job has another problem (see `ghostgpu run --help`), 2 wrong usage or a failure of \
ghostgpu, otherwise the script's own.")]
pub struct Arguments {
    #[command(flatten)]
    pub options: RehearsalOptions,

    /// Never consider changes to losses or gradients beyond rounding, even if nothing else fits
    #[arg(long, value_name = "WHAT", value_enum)]
    pub keep: Option<Keep>,

    /// Changes to the training to consider, separated by commas: lower precision, another optimizer,
    /// shorter sequences, smaller batches with accumulation, LoRA adapters
    #[arg(long, value_name = "WHAT", value_enum, value_delimiter = ',')]
    pub allow: Vec<AllowOption>,

    /// Make at most this many rehearsals
    #[arg(long, value_name = "N", default_value_t = REHEARSALS as u64,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub rehearsals: u64,

    /// Also find the largest batch with the recommended tricks
    #[arg(long)]
    pub largest_batch: bool,

    /// Write the recommended tricks to this file, for `ghostgpu launch --plan`
    #[arg(long, value_name = "PLAN.toml")]
    pub write: Option<PathBuf>,

    /// Write the recommended tricks into the script, as a diff for `patch -p0`
    #[arg(long, value_name = "FIX.diff")]
    pub patch: Option<PathBuf>,

    /// Write a page with all candidates and the memory of the recommended one
    #[arg(long, value_name = "PAGE.html")]
    pub report: Option<PathBuf>,

    /// Ignore cached answers and rehearse everything again
    #[arg(long)]
    pub fresh: bool,

    #[command(flatten)]
    pub extent: ExtentOptions,

    #[command(flatten)]
    pub answer: AnswerOptions,

    #[command(flatten)]
    pub batch: BatchArgument,

    #[command(flatten)]
    pub script: ScriptWords,
}

/// What must stay the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Keep {
    /// Losses and gradients, up to rounding
    Numerics,
}

/// What may change, as the user types it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum AllowOption {
    Precision,
    Optimizer,
    Sequence,
    Batch,
    Lora,
}

impl AllowOption {
    fn allowance(self) -> Allowance {
        match self {
            Self::Precision => Allowance::Precision,
            Self::Optimizer => Allowance::Optimizer,
            Self::Sequence => Allowance::Sequence,
            Self::Batch => Allowance::Batch,
            Self::Lora => Allowance::Lora,
        }
    }
}

impl Arguments {
    fn allowed(&self) -> Result<Allowed, Failure> {
        let changes = self.allow.iter().map(|allow| allow.allowance());
        let allowed = Allowed {
            changes: changes.collect(),
            keeps_numerics: self.keep == Some(Keep::Numerics),
            ..Allowed::default()
        };
        match allowed.changes.first() {
            Some(first) if allowed.keeps_numerics => Err(Failure::new(format!(
                "--keep numerics and --allow {} contradict each other",
                first.name()
            ))
            .with_hint("leave one of them out")),
            _ => Ok(allowed),
        }
    }
}

pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    let has_batch = arguments.largest_batch;
    arguments.batch.needs("--largest-batch", has_batch)?;
    let options = [
        arguments.options.words(),
        arguments.options.memory_words(),
        arguments.extent.words(),
    ];
    let python = arguments.options.python.as_ref();
    let python = python.map(|python| python.to_string_lossy().into_owned());
    let question = WhichTricks {
        allowed: arguments.allowed()?,
        job: Job {
            extent: arguments.extent.extent(),
            ..arguments.options.job(arguments.script.command())
        },
        margin: arguments.options.margin,
        most_rehearsals: usize::try_from(arguments.rehearsals).unwrap_or(usize::MAX),
        largest_batch: arguments.largest_batch.then(|| arguments.batch.point()),
        plan_file: arguments.write.as_deref(),
        is_fresh: arguments.fresh,
        commands: Typed {
            gpu: arguments.options.gpu.clone().unwrap_or_default(),
            options: options.concat(),
            python,
            script: arguments.script.typed(),
        },
    };
    let destinations = Destinations {
        output: &arguments.answer,
        patch: arguments.patch.as_deref(),
        page: arguments.report.as_deref(),
    };
    answer(&question, &destinations)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn allowed(line: &str) -> Result<Allowed, Failure> {
        Line::parse_from(line.split(' ')).arguments.allowed()
    }

    #[test]
    fn what_may_change_is_named_with_commas() {
        let none = allowed("plan train.py").expect("fine");
        assert_eq!(none, Allowed::default());
        let some = allowed("plan --allow precision,lora train.py").expect("fine");
        let expected = [Allowance::Precision, Allowance::Lora];
        assert_eq!(some.changes, expected.into());
        assert!(Line::try_parse_from(["plan", "--allow", "speed", "train.py"]).is_err());
    }

    #[test]
    fn keeping_and_allowing_at_once_is_refused() {
        assert!(
            allowed("plan --keep numerics train.py")
                .expect("fine")
                .keeps_numerics
        );
        let refused = allowed("plan --keep numerics --allow precision train.py");
        let refused = refused.expect_err("a contradiction").to_string();
        assert!(refused.contains("contradict each other"), "{refused}");
    }

    #[test]
    fn every_allowance_can_be_typed() {
        use clap::ValueEnum;
        let typed: Vec<Allowance> = AllowOption::value_variants()
            .iter()
            .map(|option| option.allowance())
            .collect();
        assert_eq!(typed, Allowance::ALL);
        for option in AllowOption::value_variants() {
            let name = option.to_possible_value().expect("shown");
            assert_eq!(name.get_name(), option.allowance().name());
        }
    }
}
