//! `ghostgpu run`: rehearses a script and answers whether it fits.

mod follow_ups;

use std::path::PathBuf;

use ghostgpu_plan::growth::SequencePoint;
use ghostgpu_rehearse::Job;
use ghostgpu_text::parse_size;

use super::AnswerOptions;
use super::breakdown_options::BreakdownOptions;
use super::card_count::CardCount;
use super::extent_options::ExtentOptions;
use super::ranks_option::{RanksOption, parse_ranks};
use super::rehearsal_options::RehearsalOptions;
use super::script_options::{BatchArgument, ScriptWords};
use super::trick_options::TrickOptions;
use crate::output::prepare_appendable;
use crate::questions::fits::{DoesItFit, answer};
use follow_ups::follow_ups;

/// Rehearse a script on a virtual card and report whether it fits
///
/// The script runs unmodified, with your own Python and torch. Nothing is computed on the card, but every
/// allocation is real, so the figures are those of the real card. Values that would be computed on the
/// card read as ordinary numbers. A real GPU in this machine is not used.
#[derive(Clone, Debug, clap::Args)]
#[command(override_usage = "\
ghostgpu run --gpu <NAME> [OPTIONS] <SCRIPT> [ARGUMENTS]...
       ghostgpu run --gpu <NAME> [OPTIONS] -m <MODULE> [ARGUMENTS]...
       ghostgpu run --gpu <NAME> [OPTIONS] -- <PROGRAM> [ARGUMENTS]...")]
#[command(after_help = "\
Options of ghostgpu come before the script. Everything after it belongs to the script.

Examples:
  ghostgpu run --gpu 3060 train.py --batch-size 64
      does this job fit on a GeForce RTX 3060?
  ghostgpu run --gpu a100-80 --full --json out.json -m mypkg.train
      the whole training of a module, with the answer as JSON too
  ghostgpu run --gpu h200 --memory 11GiB train.py
      an H200 with only 11 GiB
  ghostgpu run --gpu 3060 --reserve 1GiB --margin 5% train.py
      a desktop uses 1 GiB of the card, and 5 % of it must be left
  ghostgpu run --gpu 3060 --grow --seq-arg --max-length train.py
      how memory grows with the batch, and with the sequence length
  ghostgpu run --gpu h100 --count 8 -- torchrun --nproc-per-node 8 train.py
      eight ranks on eight cards
  ghostgpu run --gpu h100 --count 8 --nodes 16 --ranks distinct -- \\
    torchrun --nnodes 16 --nproc-per-node 8 train.py
      128 ranks on 16 machines; runs one rank of each kind

Exit codes: 0 fits, 3 does not fit, 4 fits tightly, 5 will run out, 6 card not used, 7 cannot run, \
8 not known, 2 wrong usage, ranks that cannot go on together or a failure of ghostgpu, otherwise the \
script's own (128 plus the signal number if it was killed). docs/verdicts.md explains each.")]
pub struct Arguments {
    #[command(flatten)]
    pub options: RehearsalOptions,

    #[command(flatten)]
    pub extent: ExtentOptions,

    #[command(flatten)]
    pub answer: AnswerOptions,

    #[command(flatten)]
    pub cards: CardCount,

    /// Number of machines, as in `torchrun --nnodes`
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub nodes: u32,

    /// Ranks to run: `all`, `distinct` (one of each kind), or a list such as `0,7` or `0,8-15`
    #[arg(long, value_name = "RANKS", default_value = "all", value_parser = parse_ranks)]
    pub ranks: RanksOption,

    /// Memory that NCCL takes on every card of a job with several ranks: `0`, `1GiB` [default: 544 MiB
    /// for 2 ranks, 688 MiB for more, and 16 MiB for every further group]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub nccl_memory: Option<u64>,

    #[command(flatten)]
    pub breakdown: BreakdownOptions,

    /// Write every CUDA call with its arguments to this file
    #[arg(long, value_name = "FILE")]
    pub call_log: Option<PathBuf>,

    /// Keep the checkpoints that the script writes
    ///
    /// By default they are removed after the run, because they hold no trained weights.
    #[arg(long)]
    pub keep_checkpoints: bool,

    /// Also report how memory grows with the batch and the sequence length
    ///
    /// Rehearses a few sizes: sets the batch of the training DataLoader, and cuts batches to fewer tokens.
    #[arg(long)]
    pub grow: bool,

    #[command(flatten)]
    pub batch: BatchArgument,

    /// With --grow: the script's argument for the sequence length (`--max-length`)
    #[arg(
        long,
        value_name = "ARGUMENT",
        allow_hyphen_values = true,
        requires = "grow"
    )]
    pub seq_arg: Option<String>,

    #[command(flatten)]
    pub tricks: TrickOptions,

    /// Do not rehearse again to find the smallest memory the job needs
    #[arg(long)]
    pub no_retry: bool,

    #[command(flatten)]
    pub script: ScriptWords,
}

pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    arguments.batch.needs("--grow", arguments.grow)?;
    let call_log = arguments.call_log.as_deref().map(prepare_appendable);
    let job = Job {
        card_count: arguments.cards.count,
        nodes: arguments.nodes,
        ranks: arguments.ranks.choice(),
        nccl_bytes: arguments.nccl_memory,
        extent: arguments.extent.extent(),
        call_log: call_log.transpose()?,
        keeps_checkpoints: arguments.keep_checkpoints,
        records_memory: !arguments.breakdown.no_breakdown,
        tricks: arguments.tricks.requests()?,
        ..arguments.options.job(arguments.script.command())
    };
    let batch = arguments.batch.point();
    let sequence = match &arguments.seq_arg {
        Some(option) => SequencePoint::Argument(option.clone()),
        None => SequencePoint::InBatches,
    };
    answer(&DoesItFit {
        job,
        output: &arguments.answer,
        page: arguments.breakdown.report.as_deref(),
        recording: arguments.breakdown.record.as_deref(),
        growth: arguments.grow.then_some((batch, sequence)),
        measures_need: !arguments.no_retry,
        margin: arguments.options.margin,
        follow_ups: follow_ups(arguments),
        finds_distinct_ranks: arguments.ranks == RanksOption::Distinct,
    })
}
