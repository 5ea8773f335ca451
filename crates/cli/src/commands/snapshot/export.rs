//! `ghostgpu snapshot export`: a snapshot for other tools.

use std::path::PathBuf;

use ghostgpu_report::{
    At as ReportAt, MemoryVizOptions, Selection, write_folded, write_memory_viz, write_pprof,
};

use super::moment::At;
use crate::exports;
use crate::snapshot_file;

/// Convert a snapshot to the format of another tool
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ghostgpu snapshot export oom.pickle --to folded | inferno-flamegraph > oom.svg
  ghostgpu snapshot export oom.pickle --to pprof -o oom.pb.gz
  ghostgpu snapshot export big.pickle.zst --to memory_viz -o big.pickle")]
pub(super) struct Arguments {
    /// A snapshot, optionally compressed (.gz, .zst)
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The format
    #[arg(long, value_name = "FORMAT")]
    to: Format,

    /// Output file (`-` for standard output)
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    out: PathBuf,

    /// The moment, for pprof and folded: `peak`, `end` or an event number
    #[arg(long, value_name = "WHEN", default_value = "peak")]
    at: At,

    /// Only this device
    #[arg(long, value_name = "N")]
    device: Option<usize>,

    /// For memory_viz: only this many of the latest events, because PyTorch's page cannot open millions
    #[arg(long, value_name = "N")]
    last_events: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
enum Format {
    /// A profile for `go tool pprof` (profile.proto, compressed)
    Pprof,
    /// A trace for ui.perfetto.dev
    Perfetto,
    /// One line per stack, for flame graphs
    Folded,
    /// A snapshot that PyTorch's memory_viz can open
    MemoryViz,
}

impl Format {
    fn is_text(self) -> bool {
        self == Self::Folded
    }
}

pub(super) fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    let format = arguments.to;
    let output = exports::prepare(Some(&arguments.out), format.is_text())?;
    let mut snapshot = snapshot_file::open(&arguments.file)?;
    if arguments.device.is_some() {
        snapshot_file::device_with_memory(&snapshot, arguments.device)?;
    }
    if format == Format::MemoryViz {
        let options = MemoryVizOptions {
            max_events: arguments.last_events,
        };
        exports::write(output, |out| {
            Ok(write_memory_viz(&snapshot, &options, out)?)
        })?;
        return Ok(0);
    }
    let recording = snapshot_file::recording_of(&mut snapshot, &arguments.file);
    drop(snapshot);
    let card = arguments
        .device
        .and_then(|device| u32::try_from(device).ok());
    let selection = Selection {
        at: match arguments.at {
            At::Peak => ReportAt::Peak,
            At::End => ReportAt::End,
            At::Event(event) => ReportAt::Event {
                card: snapshot_file::card_with_history(&recording, arguments.device)? as u32,
                event,
            },
        },
        card,
    };
    exports::write(output, |mut out| {
        match format {
            Format::Pprof => write_pprof(&recording, selection, &mut out)?,
            Format::Perfetto => exports::write_timeline(&recording, card, out)?,
            Format::Folded => write_folded(&recording, selection, &mut out)?,
            Format::MemoryViz => unreachable!("it is written of the snapshot itself"),
        }
        Ok(())
    })?;
    Ok(0)
}
