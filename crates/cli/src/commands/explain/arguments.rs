//! The arguments of `ghostgpu explain`.

use ghostgpu_explain::Language;
use ghostgpu_text::{parse_card_memory, parse_duration};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::commands::AnswerOptions;
use crate::commands::extent_options::ExtentOptions;
use crate::commands::rehearsal_options::ValuesOption;
use crate::commands::script_options::BatchArgument;

/// Say what a log with an out-of-memory error means, and what to do
///
/// Reads a log of any length and from any number of ranks, or standard input: which memory ran out,
/// who had it, which situation that is and why, what helps, and what does not. With --script, advice
/// is tried on a virtual card first, and only what works is shown: settings, batches, larger cards,
/// and changes in the script itself, which are made while it runs or on a copy of its text. It works
/// if everything of the training fits: the ends of epochs, evaluation, and the steps after them. What
/// cannot be tried is named, with the reason.
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
#[command(override_usage = "\
ghostgpu explain [OPTIONS] [FILE]
       ghostgpu explain [OPTIONS] [FILE] --script <SCRIPT> [-- ARGUMENTS...]
       python train.py 2>&1 | ghostgpu explain")]
#[command(after_help = "\
Examples:
  ghostgpu explain error.log
  python train.py 2>&1 | ghostgpu explain
  ghostgpu explain error.log --json
  ghostgpu explain error.log --lang zh
  ghostgpu explain error.log --script train.py -- --batch-size 64
      tries the advice on a virtual card, of the kind that the log names
  ghostgpu explain error.log --gpu 3090 --script train.py --arg --batch-size -- --batch-size 64
      on this card; `--batch-size` is the argument that sets the batch

Exit codes: 0 explained (with --script: and something works), 3 nothing that was tried works,
2 nothing was recognised, wrong usage, or a failure of ghostgpu's own.")]
pub struct Arguments {
    /// The log; `-` or nothing is standard input
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,

    #[command(flatten)]
    pub answer: AnswerOptions,

    /// The language of the answer: `en` or `zh` [default: that of the locale]
    #[arg(long, value_name = "LANGUAGE", value_parser = parse_language)]
    pub lang: Option<Language>,

    /// Try the advice with this script, on a virtual card
    #[arg(long, value_name = "SCRIPT")]
    pub script: Option<PathBuf>,

    /// The card to try it on [default: the one that the log names, or one with as much memory]
    #[arg(long, value_name = "NAME", requires = "script")]
    pub gpu: Option<String>,

    /// Give the card this much memory instead of what the log says: `11GiB`, `24564MiB`
    #[arg(long, value_name = "SIZE", value_parser = parse_card_memory, requires = "script")]
    pub memory: Option<u64>,

    #[command(flatten)]
    pub batch: BatchArgument,

    #[command(flatten)]
    pub extent: ExtentOptions,

    /// The Python to use [default: the first with torch of `python` and `python3` on the PATH and the
    /// one that ghostgpu is installed in]
    #[arg(long, value_name = "PATH", requires = "script")]
    pub python: Option<OsString>,

    /// End a try that runs longer than this: `90s`, `5m`
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, requires = "script")]
    pub timeout: Option<Duration>,

    /// What values read as that do not follow from the host: ordinary ones, or zeros
    #[arg(
        long,
        value_name = "POLICY",
        value_enum,
        default_value_t,
        requires = "script"
    )]
    pub values: ValuesOption,

    /// Arguments of the script
    #[arg(value_name = "ARGUMENTS", last = true, requires = "script")]
    pub words: Vec<OsString>,
}

fn parse_language(text: &str) -> Result<Language, String> {
    match text.to_ascii_lowercase().as_str() {
        "en" => Ok(Language::English),
        "zh" | "zh-cn" | "zh_cn" => Ok(Language::Chinese),
        _ => Err("explanations are written in `en` and `zh`".to_owned()),
    }
}
