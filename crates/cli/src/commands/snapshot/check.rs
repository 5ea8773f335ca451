//! `ghostgpu snapshot check`: a gate for continuous integration.

use std::path::PathBuf;

use ghostgpu_answers::in_json;
use ghostgpu_answers::snapshot::{Checks, Limits};
use ghostgpu_ledger::CardLedger;

use super::opened::{ledger, open};
use crate::commands::AnswerOptions;
use crate::failure::{EXIT_DOES_NOT_FIT, Failure};
use ghostgpu_text::parse_size;

/// Fail if a snapshot is over a limit
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Fragmentation is the share of peak reserved memory that was never in use at one time.

Examples:
  ghostgpu snapshot check oom.pickle --max-reserved 20GiB
  ghostgpu snapshot check oom.pickle --max-fragmentation 10% --no-oom

Exit codes: 0 within the limits, 3 over a limit, 2 wrong usage or not a snapshot.")]
pub(super) struct Arguments {
    /// A snapshot, optionally compressed (.gz, .zst)
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Maximum reserved memory at any time
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    max_reserved: Option<u64>,

    /// Maximum memory in use at any time, in requested bytes
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    max_live: Option<u64>,

    /// Maximum share of peak reserved memory that was never in use: `10%`
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    max_fragmentation: Option<f64>,

    /// Fail if a request ran out of memory
    #[arg(long)]
    no_oom: bool,

    /// The device [default: all]
    #[arg(long, value_name = "N")]
    device: Option<usize>,

    #[command(flatten)]
    answer: AnswerOptions,
}

pub(super) fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    let has_limit = arguments.max_reserved.is_some()
        || arguments.max_live.is_some()
        || arguments.max_fragmentation.is_some()
        || arguments.no_oom;
    if !has_limit {
        return Err(Failure::new("there is no limit to check")
            .with_hint("give --max-reserved, --max-live, --max-fragmentation or --no-oom")
            .into());
    }
    let output = arguments.answer.prepare()?;
    let (recording, warnings) = open(&arguments.file)?;
    let ledgers: Vec<CardLedger> = match arguments.device {
        Some(_) => vec![ledger(&recording, arguments.device)?.1],
        None => {
            let cards = recording.cards.iter();
            cards
                .map(|card| CardLedger::new(&recording, card))
                .collect()
        }
    };
    if ledgers.is_empty() {
        return Err(Failure::new("the snapshot has no memory and no events of any device").into());
    }
    let limits = Limits {
        max_reserved_bytes: arguments.max_reserved,
        max_live_bytes: arguments.max_live,
        max_fragmentation_percent: arguments.max_fragmentation,
        no_oom: arguments.no_oom,
    };
    let checks = Checks::of(&ledgers, &limits, &warnings);
    output.answer(|style| checks.text(style), || in_json(&checks.json()))?;
    Ok(match checks.all_kept() {
        true => 0,
        false => EXIT_DOES_NOT_FIT,
    })
}

fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim();
    match number.parse::<f64>() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err("a part of the memory is a number from 0 to 100, such as 10%".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_is_a_number_up_to_a_hundred() {
        assert_eq!(parse_percent("10%"), Ok(10.0));
        assert_eq!(parse_percent(" 2.5 % "), Ok(2.5));
        assert_eq!(parse_percent("0"), Ok(0.0));
        for wrong in ["", "%", "101%", "-1", "ten", "NaN", "inf"] {
            assert!(parse_percent(wrong).is_err(), "{wrong}");
        }
    }
}
