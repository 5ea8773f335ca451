//! `ghostgpu report`: a recording, or a memory snapshot, for people and for other tools.

use std::io::Write;
use std::path::PathBuf;

use ghostgpu_answers::breakdown_answer;
use ghostgpu_recording::Recording;
use ghostgpu_report::{JsonOptions, Selection, write_html, write_json, write_pprof};
use serde::ser::Error;

use crate::commands::AnswerOptions;
use crate::exports;
use crate::failure::Failure;
use crate::recording_file;

/// Show what memory was made of, from a recording or a memory snapshot
///
/// `ghostgpu run --record FILE` writes a recording: every allocation with its owner.
/// `torch.cuda.memory._dump_snapshot(FILE)` writes a snapshot on any card: every allocation with its stack.
/// Snapshots may be compressed (.gz, .zst). Nothing is run again, and nothing in a file is executed.
///
/// For a job on several machines, each machine records its own ranks (`--nodes`, `--ranks`); pass all of
/// their files to get the answer for the whole job.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ghostgpu report train.ghost
  ghostgpu report train.ghost --to html -o train.html
  ghostgpu report oom.pickle --to html -o oom.html
  ghostgpu report run-*.ghost
  ghostgpu report train.ghost --json -o train.json
  ghostgpu report train.ghost --to pprof -o train.pb.gz
  ghostgpu report train.ghost --to perfetto -o train.perfetto-trace")]
pub struct Arguments {
    /// A recording or a memory snapshot; for a job on several machines, the recordings of all of them
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// The format
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        conflicts_with = "json"
    )]
    to: Format,

    #[command(flatten)]
    answer: AnswerOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// One screen: the peak, its largest parts, what grows; with --verbose everything
    Text,
    /// A page that opens offline in any browser
    Html,
    /// A heap profile of the peak for `go tool pprof` (profile.proto, compressed)
    Pprof,
    /// A timeline for ui.perfetto.dev
    Perfetto,
}

pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    match arguments.to {
        Format::Text => {
            let output = arguments.answer.prepare()?;
            let recording = open(&arguments.files)?;
            output.answer(
                |style| breakdown_answer(&recording, style),
                || json(&recording),
            )?;
        }
        format => {
            let output = exports::prepare(arguments.answer.out.as_deref(), false)?;
            let recording = open(&arguments.files)?;
            exports::write(output, |out| write(&recording, format, out))?;
        }
    }
    Ok(0)
}

/// Opens one file as it is, or several as the machines of one job.
fn open(files: &[PathBuf]) -> Result<Recording, Failure> {
    if let [file] = files {
        return recording_file::open(file);
    }
    let opened = files.iter().map(|file| {
        let recording = recording_file::open(file)?;
        Ok((file.display().to_string(), recording))
    });
    let machines = opened.collect::<Result<Vec<_>, Failure>>()?;
    ghostgpu_answers::machines::joined(machines).map_err(|sentence| {
        Failure::new(sentence).with_hint(
            "files are joined if they record different ranks of the same job: \
             `ghostgpu run --nodes 2 --ranks 8-15 --record run-1.ghost -- torchrun --nnodes 2 …`",
        )
    })
}

/// The document (docs/report-json.md).
fn json(recording: &Recording) -> serde_json::Result<String> {
    let mut text = Vec::new();
    let written = write_json(recording, &JsonOptions::default(), &mut text);
    written.map_err(serde_json::Error::custom)?;
    String::from_utf8(text).map_err(serde_json::Error::custom)
}

fn write(recording: &Recording, format: Format, mut out: &mut dyn Write) -> anyhow::Result<()> {
    match format {
        Format::Text => unreachable!("text is an answer"),
        Format::Html => write_html(recording, &mut out)?,
        Format::Pprof => write_pprof(recording, Selection::default(), &mut out)?,
        Format::Perfetto => exports::write_timeline(recording, None, out)?,
    }
    Ok(())
}
