//! The commands: one file each.

mod answer_options;
mod breakdown_options;
mod calibrate;
mod card_count;
mod card_list;
mod cards;
mod completions;
mod doctor;
mod estimate;
mod explain;
mod extent_options;
mod gpus;
mod launch;
mod lint;
mod margin;
mod max_batch;
mod plan;
mod ranks_option;
mod rehearsal_options;
mod replay;
mod report;
mod run;
mod script_options;
mod snapshot;
mod sweep;
mod trick_options;
mod tricks;

pub use answer_options::{AnswerOptions, Destination, with_clear_json};
use clap::{Parser, Subcommand};

use crate::terminal::{self, DetailOptions};

/// Runs your PyTorch training on a GPU that isn't there, and tells you to the byte whether it fits.
#[derive(Debug, Parser)]
#[command(
    name = "ghostgpu",
    version,
    max_term_width = 100,
    after_help = "\
Examples:
  ghostgpu run --gpu 3060 train.py --batch-size 64
  ghostgpu run --gpu a100-80 --json out.json -m mypkg.train --config c.yaml
  ghostgpu estimate bert-base --batch 32 --seq 128 --dtype bf16 --gpu t4
  ghostgpu max-batch --gpu 3060 train.py
  ghostgpu plan --gpu 3060 train.py --batch-size 64
  ghostgpu cards train.py --batch-size 64
  ghostgpu sweep --gpu 3090,4090 --arg --batch-size=8,16,32 train.py
  ghostgpu launch --amp bf16 --checkpoint auto train.py
  ghostgpu snapshot show oom.pickle
  ghostgpu replay oom.pickle --search
  ghostgpu report train.ghost
  ghostgpu lint train.py src/
  ghostgpu explain error.log
  ghostgpu gpus 30
  ghostgpu doctor

Exit codes: 0 it fits, 3 it does not, 4 to 8 in between (see `ghostgpu run --help`), \
2 wrong usage or a failure of ghostgpu, otherwise the script's own."
)]
pub struct CommandLine {
    #[command(subcommand)]
    command: Command,

    #[command(flatten)]
    detail: DetailOptions,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Arguments),
    Estimate(estimate::Arguments),
    MaxBatch(max_batch::Arguments),
    Plan(plan::Arguments),
    Cards(cards::Arguments),
    Sweep(sweep::Arguments),
    Launch(launch::Arguments),
    Tricks(tricks::Arguments),
    Calibrate(calibrate::Arguments),
    Snapshot(snapshot::Arguments),
    Replay(replay::Arguments),
    Report(report::Arguments),
    Lint(lint::Arguments),
    Explain(explain::Arguments),
    Gpus(gpus::Arguments),
    Doctor(doctor::Arguments),
    Completions(completions::Arguments),
}

impl CommandLine {
    /// Runs the command and returns its exit code.
    pub fn execute(self) -> anyhow::Result<u8> {
        terminal::choose(self.detail);
        match self.command {
            Command::Run(arguments) => run::execute(&arguments),
            Command::Estimate(arguments) => estimate::execute(&arguments),
            Command::MaxBatch(arguments) => max_batch::execute(&arguments),
            Command::Plan(arguments) => plan::execute(&arguments),
            Command::Cards(arguments) => cards::execute(&arguments),
            Command::Sweep(arguments) => sweep::execute(&arguments),
            Command::Launch(arguments) => launch::execute(&arguments),
            Command::Tricks(arguments) => tricks::execute(&arguments),
            Command::Calibrate(arguments) => calibrate::execute(&arguments),
            Command::Snapshot(arguments) => snapshot::execute(&arguments),
            Command::Replay(arguments) => replay::execute(&arguments),
            Command::Report(arguments) => report::execute(&arguments),
            Command::Lint(arguments) => lint::execute(&arguments),
            Command::Explain(arguments) => explain::execute(&arguments),
            Command::Gpus(arguments) => gpus::execute(&arguments),
            Command::Doctor(arguments) => doctor::execute(&arguments),
            Command::Completions(arguments) => completions::execute(&arguments),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn help(path: &[&str]) -> String {
        let mut command = CommandLine::command().term_width(100);
        command.build();
        let mut found = &mut command;
        for name in path {
            found = found.find_subcommand_mut(name).expect("a command");
        }
        found.render_long_help().to_string()
    }

    /// Every command and subcommand with its own name.
    fn all_commands(command: &clap::Command) -> Vec<&clap::Command> {
        let below = command.get_subcommands().flat_map(all_commands);
        std::iter::once(command).chain(below).collect()
    }

    #[test]
    fn examples_in_help_fit_80_columns_as_they_are_written() {
        let program = CommandLine::command();
        for command in all_commands(&program) {
            let texts = [command.get_after_help(), command.get_long_about()];
            for text in texts.into_iter().flatten().map(ToString::to_string) {
                for line in text.lines().filter(|line| line.starts_with(' ')) {
                    let columns = line.chars().count();
                    assert!(columns <= 80, "{}: {line}", command.get_name());
                }
            }
        }
    }

    /// Other commands write files in formats of their own, or run a script on a real card.
    #[test]
    fn every_command_with_an_answer_takes_json_and_a_file() {
        const WITHOUT_ANSWER: [&str; 4] = ["launch", "calibrate", "export", "completions"];
        let program = CommandLine::command();
        let commands = all_commands(&program).into_iter();
        for command in commands.filter(|command| !command.has_subcommands()) {
            let has = |name: &str| command.get_arguments().any(|one| one.get_id() == name);
            let expected = !WITHOUT_ANSWER.contains(&command.get_name());
            let name = command.get_name();
            assert_eq!(has("json"), expected, "{name} and --json");
            assert!(has("out") || !expected, "{name} has no -o");
        }
    }

    #[test]
    fn the_arguments_are_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn help_of_the_program() {
        insta::assert_snapshot!(help(&[]));
    }

    #[test]
    fn help_of_run() {
        insta::assert_snapshot!(help(&["run"]));
    }

    #[test]
    fn help_of_estimate() {
        insta::assert_snapshot!(help(&["estimate"]));
    }

    #[test]
    fn help_of_max_batch() {
        insta::assert_snapshot!(help(&["max-batch"]));
    }

    #[test]
    fn help_of_plan() {
        insta::assert_snapshot!(help(&["plan"]));
    }

    #[test]
    fn help_of_cards() {
        insta::assert_snapshot!(help(&["cards"]));
    }

    #[test]
    fn help_of_sweep() {
        insta::assert_snapshot!(help(&["sweep"]));
    }

    #[test]
    fn help_of_launch() {
        insta::assert_snapshot!(help(&["launch"]));
    }

    #[test]
    fn help_of_tricks() {
        insta::assert_snapshot!(help(&["tricks"]));
    }

    #[test]
    fn help_of_calibrate() {
        insta::assert_snapshot!(help(&["calibrate"]));
    }

    #[test]
    fn help_of_snapshot_and_its_commands() {
        insta::assert_snapshot!(help(&["snapshot"]));
        for name in ["show", "top", "diff", "check", "export"] {
            insta::assert_snapshot!(
                format!("help_of_snapshot_{name}"),
                help(&["snapshot", name])
            );
        }
    }

    #[test]
    fn help_of_replay() {
        insta::assert_snapshot!(help(&["replay"]));
    }

    #[test]
    fn help_of_report() {
        insta::assert_snapshot!(help(&["report"]));
    }

    #[test]
    fn help_of_lint() {
        insta::assert_snapshot!(help(&["lint"]));
    }

    #[test]
    fn help_of_explain() {
        insta::assert_snapshot!(help(&["explain"]));
    }

    #[test]
    fn help_of_gpus() {
        insta::assert_snapshot!(help(&["gpus"]));
    }

    #[test]
    fn help_of_doctor() {
        insta::assert_snapshot!(help(&["doctor"]));
    }
}
