//! `ghostgpu max-batch`: the largest batch that fits.

use ghostgpu_plan::largest_batch::WholeBecause;
use ghostgpu_rehearse::Job;

use super::AnswerOptions;
use super::card_count::CardCount;
use super::extent_options::ExtentOptions;
use super::rehearsal_options::RehearsalOptions;
use super::script_options::{BatchArgument, ScriptWords};
use super::trick_options::TrickOptions;
use crate::failure::Failure;
use crate::questions::largest_batch::{WhichBatch, answer};

/// Find the largest batch with which a script fits on a virtual card
///
/// The script runs once up to its training `DataLoader` and continues from there in a fork for each
/// batch size. The result is rehearsed, not calculated: that batch fits, also in a whole run, and
/// the next one does not.
#[derive(Debug, clap::Args)]
#[command(override_usage = "\
ghostgpu max-batch --gpu <NAME> [OPTIONS] <SCRIPT> [ARGUMENTS]...
       ghostgpu max-batch --gpu <NAME> [OPTIONS] -m <MODULE> [ARGUMENTS]...
       ghostgpu max-batch --gpu <NAME> [OPTIONS] -- <PROGRAM> [ARGUMENTS]...")]
#[command(after_help = "\
Options of ghostgpu come before the script. Everything after it belongs to the script.

Examples:
  ghostgpu max-batch --gpu 3060 train.py
      sets the batch size of the training DataLoader
  ghostgpu max-batch --gpu 3060 --arg --batch-size train.py --lr 1e-4
      sets the script's own argument instead
  ghostgpu max-batch --gpu a100-80 --arg data.batch_size= -m mypkg.train
      an argument of the form key=value
  ghostgpu max-batch --gpu t4 --count 2 -- torchrun --nproc-per-node 2 train.py
      the largest batch of each rank

Exit codes: 0 found, 3 not even a batch of 1 fits, 2 wrong usage or a failure of ghostgpu, \
otherwise the script's own.")]
pub struct Arguments {
    #[command(flatten)]
    pub options: RehearsalOptions,

    #[command(flatten)]
    pub extent: ExtentOptions,

    #[command(flatten)]
    pub answer: AnswerOptions,

    #[command(flatten)]
    pub batch: BatchArgument,

    /// Rehearse no batch larger than this
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub at_most: Option<u64>,

    /// Start the script from the beginning for every batch instead of forking it
    #[arg(long)]
    pub no_fork: bool,

    #[command(flatten)]
    pub tricks: TrickOptions,

    #[command(flatten)]
    pub cards: CardCount,

    #[command(flatten)]
    pub script: ScriptWords,
}

pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    let tricks = arguments.tricks.requests()?;
    if tricks.iter().any(|trick| trick.name == "smaller-batch") {
        let message = "--smaller-batch sets the batch that max-batch is to find";
        return Err(Failure::new(message)
            .with_hint("leave it out, or use --at-most N")
            .into());
    }
    answer(&WhichBatch {
        job: Job {
            extent: arguments.extent.extent(),
            tricks,
            card_count: arguments.cards.count,
            ..arguments.options.job(arguments.script.command())
        },
        output: &arguments.answer,
        point: arguments.batch.point(),
        at_most: arguments.at_most,
        margin: arguments.options.margin,
        whole_because: match arguments.cards.count {
            _ if arguments.no_fork => Some(WholeBecause::Asked),
            1 => None,
            _ => Some(WholeBecause::SeveralCards),
        },
    })
}
