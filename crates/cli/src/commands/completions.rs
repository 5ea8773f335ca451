//! `ghostgpu completions`: a script that teaches a shell to complete our arguments.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::output::print_all;

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ghostgpu completions bash \\
    > ~/.local/share/bash-completion/completions/ghostgpu
  ghostgpu completions zsh > ~/.zfunc/_ghostgpu
  ghostgpu completions fish > ~/.config/fish/completions/ghostgpu.fish")]
pub struct Arguments {
    /// The shell to complete for
    shell: Shell,
}

pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    let mut script = Vec::new();
    let mut command = super::CommandLine::command();
    clap_complete::generate(arguments.shell, &mut command, "ghostgpu", &mut script);
    print_all(&String::from_utf8(script)?)?;
    Ok(0)
}
