//! `ghostgpu report`: a recording, or a memory snapshot, for people and for other tools.

use std::io::Write;
use std::path::{Path, PathBuf};

use ghostgpu_answers::breakdown_answer;
use ghostgpu_recording::Recording;
use ghostgpu_report::{
    JsonOptions, PerfettoOptions, Selection, write_html, write_json, write_perfetto, write_pprof,
};

use crate::failure::Failure;
use crate::output::Output;
use crate::recording_file;
use crate::terminal::{self, Stream};
use ghostgpu_text::grouped;

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
  ghostgpu report train.ghost --to json -o train.json
  ghostgpu report train.ghost --to pprof -o train.pb.gz
  ghostgpu report train.ghost --to perfetto -o train.perfetto-trace")]
pub struct Arguments {
    /// A recording or a memory snapshot; for a job on several machines, the recordings of all of them
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// The format
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    to: Format,

    /// Output file (`-` for standard output)
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    out: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// One screen: the peak, its largest parts, what grows; with --verbose everything
    Text,
    /// Everything, for programs (docs/report-json.md)
    Json,
    /// A page that opens offline in any browser
    Html,
    /// A heap profile of the peak for `go tool pprof` (profile.proto, compressed)
    Pprof,
    /// A timeline for ui.perfetto.dev
    Perfetto,
}

impl Format {
    fn is_for_terminals(self) -> bool {
        matches!(self, Self::Text | Self::Json)
    }
}

pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    let is_stdout = arguments.out == Path::new("-");
    if is_stdout && !arguments.to.is_for_terminals() && Stream::Output.is_terminal() {
        return Err(Failure::new("this format is not for a terminal")
            .with_hint("name a file with -o, or send the output somewhere")
            .into());
    }
    let output = Output::prepare(&arguments.out)?;
    let recording = open(&arguments.files)?;
    output.write_with(|out| write(&recording, arguments.to, is_stdout, out))?;
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
            "several files are put together if each has ranks of its own of the same job: \
             `ghostgpu run --nodes 2 --ranks 8-15 --record run-1.ghost -- torchrun --nnodes 2 …`",
        )
    })
}

fn write(
    recording: &Recording,
    format: Format,
    is_stdout: bool,
    mut out: &mut dyn Write,
) -> anyhow::Result<()> {
    match format {
        Format::Text => {
            let current_dir = std::env::current_dir().ok();
            let mut style = terminal::style(Stream::Output, current_dir.as_deref());
            if !is_stdout {
                style.has_colour = false;
            }
            out.write_all(breakdown_answer(recording, style).as_bytes())?;
        }
        Format::Json => {
            write_json(recording, &JsonOptions::default(), &mut out)?;
        }
        Format::Html => write_html(recording, &mut out)?,
        Format::Pprof => write_pprof(recording, Selection::default(), &mut out)?,
        Format::Perfetto => {
            let options = PerfettoOptions::default();
            let summary = write_perfetto(recording, &options, &mut out)?;
            if summary.blocks_left_out > 0 {
                terminal::note(format_args!(
                    "{} of the smaller blocks are in the counters only",
                    grouped(summary.blocks_left_out)
                ));
            }
        }
    }
    Ok(())
}
