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

/// Explain an out-of-memory error in a log, and what to do about it
///
/// Reads a log of any length, or standard input, and reports which memory ran out, who held it, why, what
/// helps and what does not.
///
/// With --script, the script is rehearsed on a virtual card: with the tricks that `ghostgpu plan` finds, best
/// first, and with other advice: settings, batch sizes, larger cards, corrected lines. Something works if the
/// whole training fits with it. What cannot be rehearsed is listed with the reason.
#[derive(Clone, Debug, clap::Args)]
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
      rehearses the advice on a virtual card like the one in the log
  ghostgpu explain error.log --gpu 3090 --script train.py --arg --batch-size
      on this card; the script's `--batch-size` sets the batch

Exit codes: 0 explained (with --script: something works), 3 nothing that was rehearsed works, \
2 nothing recognised, wrong usage, or a failure of ghostgpu. Ctrl-C shows what is known so far, \
with exit code 130.")]
pub struct Arguments {
    /// The log [default: standard input]
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,

    #[command(flatten)]
    pub answer: AnswerOptions,

    /// The language of the answer: `en` or `zh` [default: from the locale]
    #[arg(long, value_name = "LANGUAGE", value_parser = parse_language)]
    pub lang: Option<Language>,

    /// Rehearse the advice with this script on a virtual card
    #[arg(long, value_name = "SCRIPT")]
    pub script: Option<PathBuf>,

    /// The card [default: the one in the log, or one with as much memory]
    #[arg(long, value_name = "NAME", requires = "script")]
    pub gpu: Option<String>,

    /// Override the card's memory: `11GiB`, `24564MiB`
    #[arg(long, value_name = "SIZE", value_parser = parse_card_memory, requires = "script")]
    pub memory: Option<u64>,

    #[command(flatten)]
    pub batch: BatchArgument,

    #[command(flatten)]
    pub extent: ExtentOptions,

    /// The Python to use [default: the first that has torch: `python`, `python3`, or the one ghostgpu is
    /// installed in]
    #[arg(long, value_name = "PATH", requires = "script")]
    pub python: Option<OsString>,

    /// Stop a rehearsal after this time: `90s`, `5m`
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, requires = "script")]
    pub timeout: Option<Duration>,

    /// What the script reads from the card where the value is unknown
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
