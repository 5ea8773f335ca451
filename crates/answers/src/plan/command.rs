//! The next command after a plan, with the arguments that the user typed.

use std::path::Path;

use super::{PlanAnswer, PlanResult};

/// What the user typed.
#[derive(Clone, Debug, Default)]
pub struct Typed {
    pub gpu: String,
    /// Options that change what is measured.
    pub options: Vec<String>,
    pub python: Option<String>,
    pub script: Vec<String>,
}

impl Typed {
    /// The command that trains with the plan; if the job fits as it is, the one that finds a larger batch.
    pub fn next(&self, answer: &PlanAnswer, plan_file: Option<&Path>) -> Vec<String> {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        let mut command: Vec<String> = match (answer.result, answer.best()) {
            (PlanResult::FitsAlready, _) => {
                let mut command: Vec<String> = words(&["ghostgpu", "max-batch", "--gpu"]);
                command.push(self.gpu.clone());
                command.extend(self.options.iter().cloned());
                command
            }
            (_, Some(best)) => {
                let mut command: Vec<String> = words(&["ghostgpu", "launch"]);
                match (plan_file, &best.flags) {
                    (Some(file), _) => {
                        command.extend(["--plan".to_owned(), file.display().to_string()]);
                    }
                    (None, Some(flags)) => {
                        command.extend(flags.split_whitespace().map(str::to_owned));
                    }
                    // Some trick has no flag, so the plan must be written to a file first.
                    (None, None) => command.extend(words(&["--plan", "plan.toml"])),
                }
                if let Some(python) = &self.python {
                    command.extend(["--python".to_owned(), python.clone()]);
                }
                command
            }
            _ => return Vec::new(),
        };
        command.extend(self.script.iter().cloned());
        command
    }
}
