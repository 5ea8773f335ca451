//! Writes a snapshot or a recording in another format: `export FILE --to FORMAT --out OUT`.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use ghostgpu_attribution::recording_of_snapshot;
use ghostgpu_recording::file::{Limits, read};
use ghostgpu_report::{At, JsonOptions, MemoryVizOptions, PerfettoOptions, Selection};

#[derive(Parser)]
struct Arguments {
    file: PathBuf,
    #[arg(long)]
    to: To,
    #[arg(long)]
    out: PathBuf,
    /// `peak`, `end`, or the number of an event.
    #[arg(long, default_value = "peak")]
    at: String,
    #[arg(long)]
    device: Option<u32>,
    #[arg(long)]
    min_block_bytes: Option<u64>,
    #[arg(long)]
    max_blocks: Option<usize>,
    #[arg(long)]
    max_events: Option<usize>,
    #[arg(long)]
    max_counter_points: Option<usize>,
}

#[derive(Clone, Copy, ValueEnum)]
enum To {
    Pprof,
    Perfetto,
    Folded,
    Json,
    #[value(name = "memory_viz")]
    MemoryViz,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let out = BufWriter::new(File::create(&arguments.out)?);
    let is_recording = arguments
        .file
        .extension()
        .is_some_and(|ending| ending == "ghost");
    let recording = match is_recording {
        true => read(File::open(&arguments.file)?, Limits::default())?,
        false => {
            let mut snapshot = ghostgpu_snapshot::open(&arguments.file)?;
            if let To::MemoryViz = arguments.to {
                let options = MemoryVizOptions {
                    max_events: arguments.max_events,
                };
                return Ok(ghostgpu_report::write_memory_viz(&snapshot, &options, out)?);
            }
            recording_of_snapshot(&mut snapshot)
        }
    };
    let card = arguments.device;
    let at = match arguments.at.as_str() {
        "peak" => At::Peak,
        "end" => At::End,
        event => At::Event {
            card: card.unwrap_or(0),
            event: event.parse()?,
        },
    };
    let selection = Selection { at, card };
    match arguments.to {
        To::Pprof => ghostgpu_report::write_pprof(&recording, selection, out)?,
        To::Folded => ghostgpu_report::write_folded(&recording, selection, out)?,
        To::Json => {
            let options = JsonOptions {
                card,
                ..JsonOptions::default()
            };
            ghostgpu_report::write_json(&recording, &options, out)?;
        }
        To::Perfetto => {
            let usual = PerfettoOptions::default();
            let options = PerfettoOptions {
                card,
                min_block_bytes: arguments.min_block_bytes.unwrap_or(usual.min_block_bytes),
                max_blocks: arguments.max_blocks.unwrap_or(usual.max_blocks),
                max_counter_points: arguments
                    .max_counter_points
                    .unwrap_or(usual.max_counter_points),
            };
            let summary = ghostgpu_report::write_perfetto(&recording, &options, out)?;
            println!("{summary:?}");
        }
        To::MemoryViz => anyhow::bail!("only a snapshot is written in this format"),
    }
    Ok(())
}
