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
/// Reads scripts and notebooks (in folders: every `*.py` and `*.ipynb` that git does not ignore) and
/// follows losses, outputs, models and loaders through them. `# ghostgpu: ignore[rule]` at the end of a
/// line, or alone on the line above, suppresses a finding. `[tool.ghostgpu.lint]` in the nearest
/// `pyproject.toml` configures the rules.
#[derive(Clone, Debug, clap::Args)]
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
      annotations on a pull request that fails only on errors
  ghostgpu lint --measure --gpu 3060 train.py -- --batch-size 64
      what the fixes would save on a GeForce RTX 3060

Exit codes: 0 nothing found, 3 findings that --fail-on counts (with --diff: something to change), \
2 wrong usage, or a file that cannot be read, written or parsed (the others are still checked); \
with --measure, the verdict with all fixes, as for `ghostgpu run`.")]
pub struct Arguments {
    /// Files and folders [default: the current folder]; `-` reads a script from standard input
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,

    /// Output format (for JSON: --json)
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: Format,

    #[command(flatten)]
    pub answer: AnswerOptions,

    /// The lowest severity that gives exit code 3 [default: warning]
    #[arg(long, value_name = "SEVERITY", value_parser = fail_on_parser())]
    pub fail_on: Option<FailOn>,

    /// Use only these rules or families, separated by commas, or `all`
    #[arg(long, value_name = "RULES", value_delimiter = ',')]
    pub select: Vec<String>,

    /// Skip these rules or families, in addition to those the configuration ignores
    #[arg(long, value_name = "RULES", value_delimiter = ',')]
    pub ignore: Vec<String>,

    /// Skip these files and folders: `build`, `*_test.py`, `vendor/**`
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    pub exclude: Vec<String>,

    /// Apply fixes that do not change what the script computes, then show the remaining findings
    #[arg(long)]
    pub fix: bool,

    /// Also apply fixes that may change results or need a review (implies --fix)
    #[arg(long)]
    pub unsafe_fixes: bool,

    /// Show what --fix (or --unsafe-fixes) would change, without writing anything
    #[arg(long, conflicts_with = "format")]
    pub diff: bool,

    /// Explain a rule: what it finds, why that costs memory, and what to do
    #[arg(long, value_name = "RULE", conflicts_with_all = ["paths", "rules"])]
    pub explain: Option<String>,

    /// List the rules
    #[arg(long, conflicts_with = "paths")]
    pub rules: bool,

    /// Use the configuration in this file for all files
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Measure what the fixes save, by rehearsing one script without and with them
    ///
    /// Each fix is rehearsed alone, then all together; no file is changed. Needs --gpu.
    #[arg(long, conflicts_with_all = ["fix", "diff", "format"])]
    pub measure: bool,

    #[command(flatten, next_help_heading = "Options of --measure")]
    pub measured: RehearsalOptions,

    #[command(flatten)]
    pub extent: ExtentOptions,

    /// Arguments of the script, for --measure
    #[arg(value_name = "ARGUMENTS", last = true)]
    pub script_arguments: Vec<OsString>,
}

/// How to show what was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// The line, carets and advice
    Text,
    /// SARIF 2.1.0, for code hosts and editors
    Sarif,
    /// GitHub workflow annotations
    Github,
}

impl Arguments {
    /// The configurations, from the command line and the file that `--config` names.
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

/// The message for an invalid configuration.
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
