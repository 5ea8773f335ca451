//! `ghostgpu snapshot check`: a gate for continuous integration.

use std::path::PathBuf;

use ghostgpu_ledger::CardLedger;

use super::opened::{ledger, open};
use crate::failure::{EXIT_DOES_NOT_FIT, Failure};
use crate::output::print_all;
use ghostgpu_text::{human, parse_size};

/// Fail if a snapshot is over a limit
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Fragmentation is the part of the most that was reserved which was never in use at one time.

Examples:
  ghostgpu snapshot check oom.pickle --max-reserved 20GiB --max-fragmentation 10%

Exit codes: 0 every limit is kept, 3 one is not, 2 wrong usage or a file that is no snapshot.")]
pub(super) struct Arguments {
    /// A snapshot, also compressed (.gz, .zst)
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The most that may be reserved at any time
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    max_reserved: Option<u64>,

    /// The most that may be in use at any time, as it was asked for
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    max_live: Option<u64>,

    /// The largest part of the most that was reserved that may never have been in use: `10%`
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    max_fragmentation: Option<f64>,

    /// No request may have failed
    #[arg(long)]
    no_oom: bool,

    /// The device [default: each of them]
    #[arg(long, value_name = "N")]
    device: Option<usize>,
}

/// One limit, held against a device.
struct Checked {
    is_kept: bool,
    sentence: String,
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
    let checked: Vec<Checked> = ledgers
        .iter()
        .flat_map(|ledger| check(ledger, arguments))
        .collect();
    let mut text = String::new();
    for each in &checked {
        let word = if each.is_kept { "ok    " } else { "failed" };
        text.push_str(&format!("{word}  {}\n", each.sentence));
    }
    for warning in &warnings {
        text.push_str(&format!("note    {warning}\n"));
    }
    print_all(&text)?;
    let all_kept = checked.iter().all(|each| each.is_kept);
    Ok(if all_kept { 0 } else { EXIT_DOES_NOT_FIT })
}

fn check(ledger: &CardLedger, arguments: &Arguments) -> Vec<Checked> {
    let device = ledger.card().index;
    let mut checked = Vec::new();
    let mut size = |what: &str, found: u64, limit: Option<u64>| {
        if let Some(limit) = limit {
            checked.push(Checked {
                is_kept: found <= limit,
                sentence: format!(
                    "device {device}: {what} {}, the limit is {}",
                    human(found),
                    human(limit)
                ),
            });
        }
    };
    let most_reserved = ledger.peak_reserved();
    size(
        "reserved at most",
        most_reserved.reserved_bytes,
        arguments.max_reserved,
    );
    size(
        "live at most",
        ledger.peak().requested_bytes,
        arguments.max_live,
    );
    if let Some(limit) = arguments.max_fragmentation {
        let reserved = most_reserved.reserved_bytes;
        let unused = reserved.saturating_sub(ledger.peak().allocated_bytes);
        let found = match reserved {
            0 => 0.0,
            reserved => unused as f64 / reserved as f64 * 100.0,
        };
        checked.push(Checked {
            is_kept: found <= limit,
            sentence: format!(
                "device {device}: of the most that was reserved, {found:.1} % ({}) were never in use at \
                 one time, the limit is {limit} %",
                human(unused)
            ),
        });
    }
    if arguments.no_oom {
        let failed = ledger.card().failures.len();
        checked.push(Checked {
            is_kept: failed == 0,
            sentence: format!("device {device}: {failed} requests failed, the limit is 0"),
        });
    }
    checked
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
