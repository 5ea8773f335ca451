//! Writes a snapshot or a recording in another format: `export FILE --to FORMAT --out OUT`.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use ghostgpu_recording::file::{Limits, read};
use ghostgpu_report::{
    At, JsonOptions, MemoryVizOptions, PerfettoOptions, RecordingJsonOptions,
    RecordingPerfettoOptions, Selection,
};

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
    device: Option<usize>,
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
    if arguments
        .file
        .extension()
        .is_some_and(|ending| ending == "ghost")
    {
        return export_recording(&arguments);
    }
    let snapshot = ghostgpu_trace::open(&arguments.file)?;
    let out = BufWriter::new(File::create(&arguments.out)?);
    let device = arguments.device;
    let at = match arguments.at.as_str() {
        "peak" => At::Peak,
        "end" => At::End,
        event => At::Event {
            device: device.unwrap_or(0),
            event: event.parse()?,
        },
    };
    let selection = Selection { at, device };
    match arguments.to {
        To::Pprof => ghostgpu_report::write_pprof(&snapshot, selection, out)?,
        To::Folded => ghostgpu_report::write_folded(&snapshot, selection, out)?,
        To::Json => {
            let options = JsonOptions {
                device,
                ..JsonOptions::default()
            };
            ghostgpu_report::write_json(&snapshot, &options, out)?;
        }
        To::Perfetto => {
            let usual = PerfettoOptions::default();
            let options = PerfettoOptions {
                device,
                min_block_bytes: arguments.min_block_bytes.unwrap_or(usual.min_block_bytes),
                max_blocks: arguments.max_blocks.unwrap_or(usual.max_blocks),
                max_counter_points: arguments
                    .max_counter_points
                    .unwrap_or(usual.max_counter_points),
            };
            let summary = ghostgpu_report::write_perfetto(&snapshot, &options, out)?;
            println!("{summary:?}");
        }
        To::MemoryViz => {
            let options = MemoryVizOptions {
                max_events: arguments.max_events,
            };
            ghostgpu_report::write_memory_viz(&snapshot, &options, out)?;
        }
    }
    Ok(())
}

fn export_recording(arguments: &Arguments) -> anyhow::Result<()> {
    let recording = read(File::open(&arguments.file)?, Limits::default())?;
    let out = BufWriter::new(File::create(&arguments.out)?);
    match arguments.to {
        To::Pprof => ghostgpu_report::write_recording_pprof(&recording, out)?,
        To::Json => {
            let options = RecordingJsonOptions::default();
            ghostgpu_report::write_recording_json(&recording, &options, out)?;
        }
        To::Perfetto => {
            let usual = RecordingPerfettoOptions::default();
            let options = RecordingPerfettoOptions {
                min_block_bytes: arguments.min_block_bytes.unwrap_or(usual.min_block_bytes),
                max_blocks: arguments.max_blocks.unwrap_or(usual.max_blocks),
                max_counter_points: arguments
                    .max_counter_points
                    .unwrap_or(usual.max_counter_points),
            };
            let summary = ghostgpu_report::write_recording_perfetto(&recording, &options, out)?;
            println!("{summary:?}");
        }
        To::Folded | To::MemoryViz => anyhow::bail!("recordings are not written in this format"),
    }
    Ok(())
}
