//! The options for tricks, which are the same in every command and made from the catalogue.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command};
use ghostgpu_tricks::{Catalogue, FlagValue, Refusal, Request, Requests, Trick, requests_of_plan};

use crate::failure::Failure;

const HEADING: &str = "Tricks (`ghostgpu tricks` describes them)";

/// The requested tricks, as the user typed them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrickOptions {
    flags: Vec<(&'static str, String)>,
    plan: Option<PathBuf>,
}

impl TrickOptions {
    /// The tricks of the flags and of the plan, checked together.
    pub fn requests(&self) -> Result<Vec<Request>, Failure> {
        let mut requests = match &self.plan {
            Some(path) => read_plan(path)?,
            None => Vec::new(),
        };
        for (flag, value) in &self.flags {
            requests.push(Request::of_flag(flag, value).map_err(failure)?);
        }
        Ok(Requests::checked(requests).map_err(failure)?.into_vec())
    }

    /// As the user types them.
    pub fn words(&self) -> Vec<String> {
        let flags = self
            .flags
            .iter()
            .map(|(flag, value)| (*flag, value.clone()));
        let plan = self
            .plan
            .iter()
            .map(|path| ("--plan", path.display().to_string()));
        flags
            .chain(plan)
            .flat_map(
                |(flag, value)| match (value.is_empty(), has_optional_value(flag)) {
                    (true, _) => vec![flag.to_owned()],
                    (false, true) => vec![format!("{flag}={value}")],
                    (false, false) => vec![flag.to_owned(), value],
                },
            )
            .collect()
    }
}

fn read_plan(path: &PathBuf) -> Result<Vec<Request>, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::new(format!(
            "the plan {} cannot be read: {error}",
            path.display()
        ))
    })?;
    requests_of_plan(&text).map_err(|refusal| {
        Failure::new(format!("{}: {}", path.display(), refusal.reason))
            .with_hint(refusal.alternative)
    })
}

fn failure(refusal: Refusal) -> Failure {
    Failure::new(refusal.reason).with_hint(refusal.alternative)
}

fn has_optional_value(flag: &str) -> bool {
    let tricks = &Catalogue::builtin().tricks;
    tricks.iter().any(|trick| {
        let is_optional =
            matches!(&trick.value, Some(FlagValue::Option { is_optional, .. }) if *is_optional);
        trick.flag == flag && is_optional
    })
}

/// The name of a flag without its hyphens, which is its id in clap.
fn id(flag: &'static str) -> &'static str {
    flag.trim_start_matches('-')
}

fn argument(flag: &'static str, tricks: &[&'static Trick]) -> Arg {
    let argument = Arg::new(id(flag))
        .long(id(flag))
        .help(help(tricks))
        .help_heading(HEADING)
        .hide_short_help(true);
    match &tricks[0].value {
        None => argument.action(ArgAction::SetTrue),
        Some(FlagValue::Option {
            shown, is_optional, ..
        }) if *is_optional => argument
            .value_name(shown.as_str())
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("")
            .action(ArgAction::Append),
        Some(FlagValue::Option { shown, .. }) => argument
            .value_name(shown.as_str())
            .action(ArgAction::Append),
        Some(FlagValue::Word { .. }) => argument.value_name("WORD").action(ArgAction::Append),
    }
}

fn help(tricks: &[&Trick]) -> String {
    let described = tricks.iter().map(|trick| {
        let words = match &trick.value {
            Some(FlagValue::Word { word }) => Some(word.clone()),
            Some(FlagValue::Option { option, .. }) if tricks.len() > 1 => {
                trick.option(option).map(|sheet| sheet.choices.join(", "))
            }
            _ => None,
        };
        match words {
            Some(words) => format!("{words}: {}", trick.summary),
            None => capitalized(&trick.summary),
        }
    });
    described.collect::<Vec<String>>().join("; ")
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    // A name from code keeps its case.
    match letters.next() {
        Some(first) if !text.starts_with("torch") => first.to_uppercase().chain(letters).collect(),
        _ => text.to_owned(),
    }
}

impl clap::Args for TrickOptions {
    fn augment_args(command: Command) -> Command {
        let flags = Catalogue::builtin().flags();
        let arguments = flags.iter().map(|(flag, tricks)| argument(flag, tricks));
        command.args(arguments).arg(
            Arg::new("plan")
                .long("plan")
                .value_name("FILE")
                .value_parser(clap::value_parser!(PathBuf))
                .help("Apply the tricks of this file (docs/tricks.md describes it)")
                .help_heading(HEADING)
                .hide_short_help(true),
        )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for TrickOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Vec::new();
        for (flag, tricks) in Catalogue::builtin().flags() {
            match &tricks[0].value {
                None if matches.get_flag(id(flag)) => flags.push((flag, String::new())),
                None => {}
                Some(_) => {
                    let values = matches.get_many::<String>(id(flag)).into_iter().flatten();
                    flags.extend(values.map(|value| (flag, value.clone())));
                }
            }
        }
        Ok(Self {
            flags,
            plan: matches.get_one::<PathBuf>("plan").cloned(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        tricks: TrickOptions,
        #[arg(trailing_var_arg = true)]
        script: Vec<String>,
    }

    fn parse(line: &str) -> Line {
        Line::parse_from(std::iter::once("x").chain(line.split_whitespace()))
    }

    fn names(line: &str) -> Vec<String> {
        let requests = parse(line).tricks.requests();
        let named = requests.expect("no conflict").into_iter().map(|it| it.name);
        named.collect()
    }

    #[test]
    fn flags_ask_for_tricks_and_leave_the_script_alone() {
        let line = "--chunks 4 --inplace --offload-activations train.py --chunks 9";
        let parsed =
            parse(&line.replace("--inplace --offload-activations", "--amp bf16 --inplace"));
        assert_eq!(parsed.script, ["train.py", "--chunks", "9"]);
        assert_eq!(
            names("--chunks 4 --amp bf16 --checkpoint auto train.py"),
            ["checkpointing", "chunking", "autocast"]
        );
        let offloaded = parse("--offload-activations train.py");
        assert_eq!(offloaded.script, ["train.py"]);
        assert!(names("train.py").is_empty());
    }

    #[test]
    fn every_trick_of_the_catalogue_can_be_asked_for() {
        for trick in &Catalogue::builtin().tricks {
            let value = match &trick.value {
                None => String::new(),
                Some(FlagValue::Word { word }) => format!(" {word}"),
                Some(FlagValue::Option {
                    option,
                    is_optional,
                    ..
                }) => {
                    let default = &trick.option(option).expect("described").default;
                    match is_optional {
                        true => format!("={default}"),
                        false => format!(" {default}"),
                    }
                }
            };
            let line = format!("{}{value} train.py", trick.flag);
            assert_eq!(names(&line), [trick.name.as_str()], "{line}");
        }
    }

    #[test]
    fn what_is_typed_again_asks_for_the_same() {
        let line = "--offload-activations=4MiB --optimizer fused --eval-no-grad --plan plan.toml";
        let options = parse(line).tricks;
        assert_eq!(parse(&options.words().join(" ")).tricks, options);
    }

    #[test]
    fn conflicts_and_repetitions_are_refused_with_an_alternative() {
        for line in [
            "--amp bf16 --pure-bf16",
            "--chunks 2 --chunks 3",
            "--optimizer 8bit --optimizer fused",
            "--plan /does/not/exist.toml",
        ] {
            assert!(parse(line).tricks.requests().is_err(), "{line}");
        }
    }
}
