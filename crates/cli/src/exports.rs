//! Exports for other tools, as `report` and `snapshot export` write them.

use std::io::Write;
use std::path::Path;

use ghostgpu_recording::Recording;
use ghostgpu_report::{PerfettoOptions, write_perfetto};
use ghostgpu_text::grouped;

use crate::failure::Failure;
use crate::output::Output;
use crate::progress;
use crate::terminal::{self, Stream};

/// Where an export goes; without a path, to standard output, unless that is a terminal and the format is not text.
pub fn prepare(path: Option<&Path>, is_text: bool) -> Result<Output, Failure> {
    let output = Output::prepare(path.unwrap_or(Path::new("-")))?;
    if output.is_stdout() && !is_text && Stream::Output.is_terminal() {
        return Err(Failure::new("this format is not for a terminal")
            .with_hint("name a file with -o, or send the output somewhere"));
    }
    Ok(output)
}

/// Writes an export, with progress unless it goes to standard output.
pub fn write(
    output: Output,
    fill: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    match output.is_stdout() {
        true => output.write_with(fill),
        false => progress::during("writing the export", || output.write_with(fill)),
    }
}

/// Writes a timeline of all cards, or of one.
pub fn write_timeline(
    recording: &Recording,
    card: Option<u32>,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let options = PerfettoOptions {
        card,
        ..PerfettoOptions::default()
    };
    let summary = write_perfetto(recording, &options, out)?;
    if summary.blocks_left_out > 0 {
        terminal::note(format_args!(
            "{} of the smaller blocks are in the counters only",
            grouped(summary.blocks_left_out)
        ));
    }
    Ok(())
}
