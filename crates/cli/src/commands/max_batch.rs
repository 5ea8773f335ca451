//! `ghostgpu max-batch`: the largest batch that fits.

use std::ffi::OsString;

use ghostgpu_rehearse::{Job, SizePoint};

use super::AnswerOptions;
use super::extent_options::ExtentOptions;
use super::rehearsal_options::RehearsalOptions;
use crate::questions::largest_batch::{WhichBatch, answer};

/// Find the largest batch with which a script fits on a virtual card
///
/// The script is run up to the place at which it begins to go through its training `DataLoader`, and
/// goes on from there in a forked copy for each batch that is tried, as exact as any rehearsal. What is
/// found was tried: that batch fits, in a run of its own too, and the next one does not.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
#[command(override_usage = "\
ghostgpu max-batch --gpu <NAME> [OPTIONS] <SCRIPT> [ARGUMENTS]...
       ghostgpu max-batch --gpu <NAME> [OPTIONS] -- <PROGRAM> [ARGUMENTS]...")]
#[command(after_help = "\
Everything after the script belongs to the script: options of ghostgpu come before it.

Examples:
  ghostgpu max-batch --gpu 3060 train.py
      sets the batch of the DataLoader that the script trains with
  ghostgpu max-batch --gpu 3060 --arg --batch-size train.py --lr 1e-4
      sets an argument of the script's instead
  ghostgpu max-batch --gpu a100-80 --arg data.batch_size= -- python -m mypkg.train data=books
      an argument of the form key=value

Exit codes: 0 found, 3 not even a batch of 1 fits, 2 wrong usage or a failure of ghostgpu's own,
otherwise the code of the script.")]
pub struct Arguments {
    #[command(flatten)]
    pub options: RehearsalOptions,

    #[command(flatten)]
    pub extent: ExtentOptions,

    #[command(flatten)]
    pub answer: AnswerOptions,

    /// Set the batch through this argument of the script's: `--batch-size`, or `batch_size=`
    #[arg(long, value_name = "ARGUMENT", allow_hyphen_values = true)]
    pub arg: Option<String>,

    /// Try no batch that is larger than this
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub at_most: Option<u64>,

    /// Start the script anew for every batch that is tried, instead of forking it
    #[arg(long)]
    pub no_fork: bool,

    /// The script with its arguments, or a command such as `python -m pkg.train`
    #[arg(
        value_name = "SCRIPT",
        required = true,
        num_args = 1..,
        trailing_var_arg = true
    )]
    pub command: Vec<OsString>,
}

pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    answer(&WhichBatch {
        job: Job {
            extent: arguments.extent.extent(),
            ..arguments.options.job(arguments.command.clone())
        },
        output: &arguments.answer,
        point: match &arguments.arg {
            Some(option) => SizePoint::Option(option.clone()),
            None => SizePoint::TrainingLoader,
        },
        at_most: arguments.at_most,
        margin_bytes: 0,
        is_forked: !arguments.no_fork,
        declines: |_| None,
    })
}
