//! The options that all rehearsing commands share: the card, and how to rehearse.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use ghostgpu_plan::verdict::Margin;
use ghostgpu_rehearse::{Job, UnknownValues};
use ghostgpu_text::{parse_card_memory, parse_duration, parse_size};

use super::margin::parse_margin;

/// Options of `ghostgpu run` that mean the same elsewhere.
#[derive(Clone, Debug, clap::Args)]
pub struct RehearsalOptions {
    /// The card: `3060`, `RTX 4090`, `a100-80` (see `ghostgpu gpus`)
    #[arg(long, value_name = "NAME")]
    pub gpu: Option<String>,

    /// Override the card's memory: `11GiB`, `24564MiB`, `16GB` (decimal)
    #[arg(long, value_name = "SIZE", value_parser = parse_card_memory)]
    pub memory: Option<u64>,

    /// Memory that a desktop or another job uses on the card: `1GiB`
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub reserve: Option<u64>,

    /// Memory that must be left on the card: `1GiB`, `5%`
    #[arg(long, value_name = "SIZE|PERCENT%", value_parser = parse_margin)]
    pub margin: Option<Margin>,

    /// The Python to use [default: the first that has torch: `python`, `python3`, or the one ghostgpu is
    /// installed in]
    #[arg(long, value_name = "PATH")]
    pub python: Option<OsString>,

    /// Stop the script after this time: `90s`, `5m`, `1h30m`
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub timeout: Option<Duration>,

    /// Run all weight initialisation on the CPU, even if only the virtual card would see it
    #[arg(long)]
    pub full_init: bool,

    /// What the script reads from the card where the value is unknown
    #[arg(long, value_name = "POLICY", value_enum, default_value_t)]
    pub values: ValuesOption,

    /// Do not ask the installed cuDNN for workspace sizes; use recorded and modelled ones
    #[arg(long)]
    pub no_cudnn: bool,

    /// Use the workspace sizes in this file, written by `ghostgpu calibrate` on a real card
    #[arg(long, value_name = "FILE")]
    pub library_sizes: Vec<PathBuf>,
}

/// The policy for unknown values, as the user types it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ValuesOption {
    /// Ordinary numbers; checks in the script pass
    #[default]
    Plausible,
    /// Zeros; checks in the script may fail
    Zero,
}

impl fmt::Display for ValuesOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plausible => "plausible",
            Self::Zero => "zero",
        })
    }
}

impl ValuesOption {
    pub fn policy(self) -> UnknownValues {
        match self {
            Self::Plausible => UnknownValues::Plausible,
            Self::Zero => UnknownValues::Zero,
        }
    }
}

impl RehearsalOptions {
    /// The job for a command with these options.
    pub fn job(&self, command: Vec<OsString>) -> Job {
        Job {
            command,
            card: self.gpu.clone(),
            memory_bytes: self.memory,
            reserve_bytes: self.reserve.unwrap_or(0),
            python: self.python.clone(),
            timeout: self.timeout,
            has_full_initialisation: self.full_init,
            values: self.values.policy(),
            asks_cudnn: !self.no_cudnn,
            library_sizes: self.library_sizes.clone(),
            ..Job::default()
        }
    }

    /// The options that affect the result, as the user types them, without the card itself.
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        if let Some(reserve) = self.reserve {
            words.extend(["--reserve".to_owned(), size(reserve)]);
        }
        if let Some(margin) = self.margin {
            let margin = match margin {
                Margin::Bytes(bytes) => size(bytes),
                Margin::Percent(percent) => format!("{percent}%"),
            };
            words.extend(["--margin".to_owned(), margin]);
        }
        if let Some(python) = &self.python {
            words.extend(["--python".to_owned(), python.to_string_lossy().into_owned()]);
        }
        if self.full_init {
            words.push("--full-init".to_owned());
        }
        if self.values != ValuesOption::default() {
            words.extend(["--values".to_owned(), self.values.to_string()]);
        }
        if self.no_cudnn {
            words.push("--no-cudnn".to_owned());
        }
        for file in &self.library_sizes {
            words.extend(["--library-sizes".to_owned(), file.display().to_string()]);
        }
        words
    }

    /// `--memory`, as the user types it.
    pub fn memory_words(&self) -> Vec<String> {
        let memory = self.memory.into_iter();
        memory
            .flat_map(|bytes| ["--memory".to_owned(), size(bytes)])
            .collect()
    }
}

fn size(bytes: u64) -> String {
    const MIB: u64 = 1 << 20;
    match bytes % MIB {
        0 => format!("{}MiB", bytes / MIB),
        _ => format!("{bytes}B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        options: RehearsalOptions,
    }

    #[test]
    fn what_nobody_says_is_the_default_of_a_job() {
        let options = Line::parse_from(["ghostgpu"]).options;
        assert_eq!(options.job(Vec::new()), Job::default());
    }

    #[test]
    fn unknown_values_are_ordinary_unless_zeros_are_asked_for() {
        for (line, policy) in [
            (&["x"][..], UnknownValues::Plausible),
            (&["x", "--values", "plausible"], UnknownValues::Plausible),
            (&["x", "--values", "zero"], UnknownValues::Zero),
        ] {
            let options = Line::parse_from(line).options;
            assert_eq!(options.job(Vec::new()).values, policy, "{line:?}");
        }
        assert!(Line::try_parse_from(["x", "--values", "random"]).is_err());
    }
}
