//! The arguments of `ghostgpu lint`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use ghostgpu_lint::config::{patterns, rules};
use ghostgpu_lint::{Config, ConfigError, FailOn};
use ghostgpu_lint_files::Configurations;

use crate::commands::AnswerOptions;
use crate::commands::extent_options::ExtentOptions;
use crate::commands::rehearsal_options::RehearsalOptions;
use crate::failure::Failure;

/// Find memory mistakes in PyTorch code without running it
///
/// Reads scripts and notebooks (in folders: every `*.py` and `*.ipynb` that git does not ignore)
/// and follows losses, outputs, models and loaders through them. `# ghostgpu: ignore[rule]` at the
/// end of a line, or alone above it, switches a finding off; `[tool.ghostgpu.lint]` in the nearest
/// `pyproject.toml` chooses rules.
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
#[command(override_usage = "\
ghostgpu lint [OPTIONS] [PATH]...
       ghostgpu lint --measure --gpu <NAME> [OPTIONS] <SCRIPT> [-- <ARGUMENTS>...]
       ghostgpu lint --rules
       ghostgpu lint --explain <RULE>")]
#[command(after_help = "\
Examples:
  ghostgpu lint
      everything below the current folder
  ghostgpu lint train.py src/ notebooks/*.ipynb
  ghostgpu lint --fix train.py
  ghostgpu lint --diff --unsafe-fixes src/ | patch -p0
  ghostgpu lint --format github --fail-on error
      annotations on a pull request; only errors make it fail
  ghostgpu lint --measure --gpu 3060 train.py -- --batch-size 64
      what the fixes would save on a GeForce RTX 3060

Exit codes: 0 nothing found, 3 something found that --fail-on counts (with --diff: something to
change), 2 wrong usage, or a file that could not be read or written or is not Python (the others are
still checked, and shown); with --measure, that of the verdict with all fixes, as of `ghostgpu run`.")]
pub struct Arguments {
    /// Files and folders [default: the current folder]; `-` reads a script from standard input
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,

    /// How to show what was found
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: Format,

    #[command(flatten)]
    pub answer: AnswerOptions,

    /// The least severity that makes the command fail with 3 [default: warning]
    #[arg(long, value_name = "SEVERITY", value_parser = fail_on_parser())]
    pub fail_on: Option<FailOn>,

    /// Ask only these rules: names, names of families, or `all`; separated by commas
    #[arg(long, value_name = "RULES", value_delimiter = ',')]
    pub select: Vec<String>,

    /// Do not ask these rules, beside those that the configuration leaves out
    #[arg(long, value_name = "RULES", value_delimiter = ',')]
    pub ignore: Vec<String>,

    /// Leave out files and folders of folders: `build`, `*_test.py`, `vendor/**`
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    pub exclude: Vec<String>,

    /// Fix what can be fixed without changing what the script computes, then show what is left
    #[arg(long)]
    pub fix: bool,

    /// Also fix where results may change or a review is needed (implies --fix)
    #[arg(long)]
    pub unsafe_fixes: bool,

    /// Show what --fix (or --unsafe-fixes) would change, and write nothing
    #[arg(long, conflicts_with = "format")]
    pub diff: bool,

    /// Explain a rule: what it finds, why that costs memory, what to do, when it is fine
    #[arg(long, value_name = "RULE", conflicts_with_all = ["paths", "rules"])]
    pub explain: Option<String>,

    /// List the rules
    #[arg(long, conflicts_with = "paths")]
    pub rules: bool,

    /// Take the configuration from this file for all files
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Rehearse one script on a virtual card without its fixes and with them: what do they save?
    ///
    /// Each fix is rehearsed alone, then all together; no file is changed. Needs --gpu.
    #[arg(long, conflicts_with_all = ["fix", "diff", "format"])]
    pub measure: bool,

    #[command(flatten, next_help_heading = "Options of --measure")]
    pub measured: RehearsalOptions,

    #[command(flatten)]
    pub extent: ExtentOptions,

    /// Arguments of the script for --measure
    #[arg(value_name = "ARGUMENTS", last = true)]
    pub script_arguments: Vec<OsString>,
}

/// How to show what was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people: the line, carets, advice
    Text,
    /// For programs: docs/lint-json.md
    Json,
    /// SARIF 2.1.0, for code hosts and editors
    Sarif,
    /// Annotations of a workflow on GitHub
    Github,
}

impl Arguments {
    /// What the command line and the file that it names say about rules and files.
    pub fn configurations(&self) -> Result<Configurations, Failure> {
        let configurations = || Configurations::new(self.config()?, self.config.as_deref());
        configurations().map_err(failure)
    }

    fn config(&self) -> Result<Config, ConfigError> {
        let select = match self.select.as_slice() {
            [] => None,
            names => Some(rules("--select", names)?),
        };
        Ok(Config {
            select,
            ignore: rules("--ignore", &self.ignore)?,
            exclude: patterns("--exclude", &self.exclude)?,
            fail_on: self.fail_on,
            ..Config::default()
        })
    }
}

/// A wrong configuration as the user reads it.
pub fn failure(error: ConfigError) -> Failure {
    let failure = Failure::new(error.message);
    match error.hint {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    }
}

fn fail_on_parser() -> impl TypedValueParser<Value = FailOn> {
    PossibleValuesParser::new(FailOn::WORDS)
        .map(|word| FailOn::from_word(&word).unwrap_or_default())
}
