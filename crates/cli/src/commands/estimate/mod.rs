//! `ghostgpu estimate`: rehearses the training of a named model, with GhostGPU's own script.

mod arguments;

use std::ffi::OsString;
use std::path::PathBuf;

use ghostgpu_answers::fits::FollowUps;
use ghostgpu_plan::growth::SequencePoint;
use ghostgpu_rehearse::{Extent, Job, Layout, RankChoice, SizePoint};

pub use arguments::Arguments;

use crate::failure::Failure;
use crate::output::print_all;
use crate::questions::fits::{self, DoesItFit};
use crate::questions::largest_batch::{self, WhichBatch};

/// With more ranks, only distinct ones are run.
const MOST_RUN_RANKS: u32 = 4;

pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    let script = script()?;
    if arguments.list {
        return list(&script);
    }
    let name = arguments.name.as_deref().unwrap_or_default();
    let ranks = ranks(arguments)?;
    let mut command: Vec<OsString> = match ranks {
        1 => Vec::new(),
        ranks => launcher(ranks),
    };
    command.push(script.into());
    command.extend(arguments.words(name));
    let finds_distinct_ranks = ranks > MOST_RUN_RANKS;
    let job = Job {
        card_count: arguments.cards.count,
        ranks: match finds_distinct_ranks {
            true => RankChoice::Ends,
            false => RankChoice::All,
        },
        // The script is ours: it ends by itself after its steps, and nothing else follows them.
        extent: Extent::Whole,
        ..arguments.options.job(command)
    };
    if arguments.max_batch {
        return largest_batch::answer(&WhichBatch {
            job,
            output: &arguments.answer,
            point: SizePoint::Own,
            at_most: None,
            margin: arguments.options.margin,
            whole_because: None,
        });
    }
    let growth = (SizePoint::Own, SequencePoint::Own);
    fits::answer(&DoesItFit {
        job: Job {
            records_memory: !arguments.breakdown.no_breakdown,
            ..job
        },
        output: &arguments.answer,
        page: arguments.breakdown.report.as_deref(),
        recording: arguments.breakdown.record.as_deref(),
        growth: arguments.grow.then_some(growth),
        measures_need: !arguments.no_retry,
        margin: arguments.options.margin,
        follow_ups: follow_ups(arguments),
        finds_distinct_ranks,
    })
}

/// How many ranks the job has.
fn ranks(arguments: &Arguments) -> Result<u32, Failure> {
    let count = arguments.cards.count;
    match &arguments.strategy {
        None => Ok(1),
        Some(strategy) if count < 2 => Err(Failure::new(format!(
            "`--strategy {strategy}` is for several cards, and there is one"
        ))
        .with_hint("say how many with `--count`")),
        Some(_) => Ok(count),
    }
}

fn launcher(ranks: u32) -> Vec<OsString> {
    let ranks = ranks.to_string();
    ["torchrun", "--standalone", "--nproc-per-node", &ranks]
        .map(OsString::from)
        .to_vec()
}

/// The command that may follow: the same with `--max-batch`.
fn follow_ups(arguments: &Arguments) -> FollowUps {
    let breakdown = &arguments.breakdown;
    // These options conflict with `--max-batch`.
    let has_conflict = breakdown.report.is_some()
        || breakdown.record.is_some()
        || breakdown.no_breakdown
        || arguments.strategy.is_some()
        || arguments.grow;
    let typed = std::env::args_os().skip(1);
    let words = std::iter::once("ghostgpu".to_owned())
        .chain(typed.map(|word| word.to_string_lossy().into_owned()))
        .chain(["--max-batch".to_owned()]);
    FollowUps {
        largest_batch: (!has_conflict).then(|| words.collect()),
        ..FollowUps::default()
    }
}

/// The training script, in a folder next to the agent.
fn script() -> Result<PathBuf, Failure> {
    let agent = Layout::find()?.inject_dir;
    let folder = agent
        .ancestors()
        .nth(2)
        .map(|package| package.join("estimate"));
    folder
        .filter(|folder| folder.join("__main__.py").is_file())
        .ok_or_else(|| {
            Failure::new("the training script of `estimate` is missing")
                .with_hint("reinstall the package")
        })
}

/// The names in `configurations.py`, which are at the beginnings of its lines.
fn list(script: &std::path::Path) -> anyhow::Result<u8> {
    let table = std::fs::read_to_string(script.join("configurations.py"))?;
    let names: Vec<&str> = table
        .lines()
        .filter_map(|line| line.strip_prefix("    \"")?.split_once("\": "))
        .filter(|(_, value)| value.starts_with('_') || value.starts_with("Known"))
        .map(|(name, _)| name)
        .collect();
    print_all(&(names.join("\n") + "\n"))?;
    Ok(0)
}
