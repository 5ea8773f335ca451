//! The command that leads on from a plan, in the words of the one that was typed.

use std::path::Path;

use super::{PlanAnswer, PlanResult};

/// What was typed.
#[derive(Clone, Debug, Default)]
pub struct Typed {
    pub gpu: String,
    /// Options that change what is measured.
    pub options: Vec<String>,
    pub python: Option<String>,
    pub script: Vec<String>,
}

impl Typed {
    /// The command that trains with the plan; the one that finds a larger batch where the job fits as it is.
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
                    // An option that has no flag: the plan has to be written first.
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
