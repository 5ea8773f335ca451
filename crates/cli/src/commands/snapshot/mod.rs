//! `ghostgpu snapshot`: what is in a memory snapshot.

mod check;
mod diff;
mod export;
mod moment;
mod opened;
mod show;
mod top;
mod what_helps;

use clap::Subcommand;

/// Read a memory snapshot written by PyTorch
///
/// To make one, call `torch.cuda.memory._record_memory_history()` in a script and later
/// `torch.cuda.memory._dump_snapshot(FILE)`. Files may be of any size and compressed (.gz, .zst); nothing
/// in them is executed.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Show(show::Arguments),
    Top(top::Arguments),
    Diff(diff::Arguments),
    Check(check::Arguments),
    Export(export::Arguments),
}

pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    match &arguments.command {
        Command::Show(arguments) => show::execute(arguments),
        Command::Top(arguments) => top::execute(arguments),
        Command::Diff(arguments) => diff::execute(arguments),
        Command::Check(arguments) => check::execute(arguments),
        Command::Export(arguments) => export::execute(arguments),
    }
}
