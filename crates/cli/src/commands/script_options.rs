//! The script that a command runs, and the script's argument that sets the batch; the same in every command.

use std::ffi::OsString;

use ghostgpu_rehearse::SizePoint;

use crate::failure::Failure;

/// The script, with everything that belongs to it.
#[derive(Clone, Debug, clap::Args)]
pub struct ScriptWords {
    /// Run this module like `python -m`; everything after it belongs to the module
    #[arg(
        short,
        value_name = "MODULE",
        num_args = 1..,
        allow_hyphen_values = true,
        conflicts_with = "script"
    )]
    module: Vec<OsString>,

    /// The script, notebook or shell script with its arguments, or a command such as `torchrun …`
    #[arg(
        value_name = "SCRIPT",
        required_unless_present = "module",
        num_args = 1..,
        trailing_var_arg = true
    )]
    script: Vec<OsString>,
}

impl ScriptWords {
    /// The command to run, from its first word on.
    pub fn command(&self) -> Vec<OsString> {
        match self.module.is_empty() {
            true => self.script.clone(),
            false => {
                let option = OsString::from("-m");
                std::iter::once(option).chain(self.module.clone()).collect()
            }
        }
    }

    /// The script with its arguments, as the user types it; a program comes after `--`.
    pub fn typed(&self) -> Vec<String> {
        let command = self.command();
        let words = command
            .iter()
            .map(|word| word.to_string_lossy().into_owned());
        let is_script = command.first().is_some_and(|word| {
            let word = word.to_string_lossy();
            let endings = [".py", ".ipynb", ".sh"];
            word == "-m" || endings.iter().any(|ending| word.ends_with(ending))
        });
        match is_script {
            true => words.collect(),
            false => std::iter::once("--".to_owned()).chain(words).collect(),
        }
    }
}

/// Where the batch is set.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct BatchArgument {
    /// Set the batch through this script argument: `--batch-size`, or `batch_size=` [default: set it in
    /// the training DataLoader]
    #[arg(long, value_name = "ARGUMENT", allow_hyphen_values = true)]
    pub arg: Option<String>,
}

impl BatchArgument {
    pub fn point(&self) -> SizePoint {
        match &self.arg {
            Some(option) => SizePoint::Option(option.clone()),
            None => SizePoint::TrainingLoader,
        }
    }

    /// Refuses the argument if it would have no effect.
    pub fn needs(&self, option: &str, is_given: bool) -> Result<(), Failure> {
        match (&self.arg, is_given) {
            (Some(_), false) => Err(Failure::new(format!(
                "--arg says where the batch is set for {option}, which was not given"
            ))
            .with_hint(format!("add {option}, or leave --arg out"))),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        batch: BatchArgument,
        #[arg(long)]
        other: bool,
        #[command(flatten)]
        script: ScriptWords,
    }

    fn parse(line: &str) -> Result<Line, clap::Error> {
        Line::try_parse_from(line.split(' '))
    }

    #[test]
    fn everything_from_the_script_on_belongs_to_the_script() {
        for (line, command) in [
            ("x train.py --other", "train.py --other"),
            ("x --other -- python -m pkg", "python -m pkg"),
            (
                "x --other -m pkg.train --other -v",
                "-m pkg.train --other -v",
            ),
            ("x train.py -m 3", "train.py -m 3"),
        ] {
            let parsed = parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
            let words: Vec<OsString> = command.split(' ').map(OsString::from).collect();
            assert_eq!(parsed.script.command(), words, "{line}");
        }
        for line in ["x", "x --othr train.py", "x -m"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn an_argument_that_sets_the_batch_may_begin_with_a_hyphen_or_end_with_an_equals_sign() {
        for (line, point) in [
            ("x --arg --batch-size train.py", Some("--batch-size")),
            ("x --arg batch= train.py", Some("batch=")),
            ("x train.py", None),
        ] {
            let batch = parse(line)
                .unwrap_or_else(|error| panic!("{line}: {error}"))
                .batch;
            let expected = point.map(|option| SizePoint::Option(option.to_owned()));
            assert_eq!(batch.point(), expected.unwrap_or(SizePoint::TrainingLoader));
            assert_eq!(batch.needs("--grow", false).is_err(), point.is_some());
            assert!(batch.needs("--grow", true).is_ok());
        }
    }
}
