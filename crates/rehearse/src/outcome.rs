//! What a rehearsal shows: the job fits, it does not, or the script fails.

use std::fmt;
use std::path::Path;

use ghostgpu_session::TrainingPart;
use serde::Serialize;

use crate::judge::{Completion, EXIT_FAILURE, Run, user_frame};

/// The peak memory of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Peaks {
    #[serde(rename = "peak_allocated_bytes")]
    pub allocated_bytes: u64,
    #[serde(rename = "peak_reserved_bytes")]
    pub reserved_bytes: u64,
    #[serde(rename = "peak_device_bytes")]
    pub device_bytes: u64,
}

/// What a run shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Fits(Peaks),
    DoesNotFit(OutOfMemory),
    /// The script failed for another reason.
    Fails {
        reason: Reason,
        code: u8,
    },
}

/// Where memory ran out. Shown as `in step 1 (forward), at train.py:41`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutOfMemory {
    /// A request of PyTorch's failed.
    Request {
        /// As in [`OomReport`](ghostgpu_session::OomReport).
        stage: String,
        /// Complete optimizer steps before it.
        step: u64,
        /// File name and line of the user's code.
        line: Option<(String, u64)>,
        /// The part of the training it was in, if not in the first steps.
        moment: Option<TrainingPart>,
    },
    /// There was no room for CUDA's context or libraries.
    Context,
}

/// Why a script failed, other than for lack of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    TimedOut,
    /// It stopped at a call that is not simulated; with the call's name, if known.
    NotSimulated(Option<String>),
    PreloadBlocked,
    /// The first line of an exception.
    Exception(String),
    ExitCode(u8),
    /// The message of a trick that cannot be applied correctly to this script.
    RefusedByTrick(String),
    /// It trains with other sizes, but makes no optimizer step with this one.
    NoStep,
}

impl Outcome {
    pub fn of(run: &Run) -> Self {
        let completion = run.completion();
        let reason = match completion {
            Completion::Completed => return Self::Fits(run.peaks()),
            Completion::OutOfMemory => return Self::DoesNotFit(OutOfMemory::of(run)),
            Completion::TimedOut => Reason::TimedOut,
            Completion::Refused => {
                let mut calls = run.refused_calls();
                Reason::NotSimulated(calls.pop().map(|call| call.function))
            }
            Completion::PreloadBlocked => Reason::PreloadBlocked,
            Completion::ScriptFailed | Completion::ScriptKilled => {
                match (run.trick_refusal(), run.exception()) {
                    (Some(refusal), _) => Reason::RefusedByTrick(refusal.reason.clone()),
                    (None, Some(text)) => {
                        Reason::Exception(text.lines().next().unwrap_or_default().to_owned())
                    }
                    (None, None) => Reason::ExitCode(run.ending.shell_code()),
                }
            }
        };
        Self::Fails {
            reason,
            code: match completion {
                Completion::ScriptFailed | Completion::ScriptKilled => run.failure_code(),
                _ => EXIT_FAILURE,
            },
        }
    }

    pub fn peaks(&self) -> Option<&Peaks> {
        match self {
            Self::Fits(peaks) => Some(peaks),
            _ => None,
        }
    }
}

impl OutOfMemory {
    /// The part of the training that ran out, as the subject of a sentence: `evaluation at train.py:61`. `None` if it was
    /// no part of the training.
    pub fn limiting_part(&self) -> Option<String> {
        let Self::Request {
            stage,
            line,
            moment,
            step,
        } = self
        else {
            return None;
        };
        let part = match (moment, stage.as_str()) {
            (_, "setup" | "moving the model") => return None,
            (Some(TrainingPart::Evaluation), _) | (_, "evaluation") => "evaluation".to_owned(),
            (Some(TrainingPart::LastBatch), stage) => {
                format!("the last batch of the epoch ({stage})")
            }
            (Some(TrainingPart::NextEpoch), stage) => {
                format!("a step after the last batch of the epoch ({stage})")
            }
            (_, stage) if *step == 0 => format!("the first step ({stage})"),
            (_, stage) => format!("step {} ({stage})", step + 1),
        };
        Some(match line {
            Some((file, line)) => format!("{part} at {file}:{line}"),
            None => part,
        })
    }

    fn of(run: &Run) -> Self {
        let Some(oom) = run.fatal_oom() else {
            return Self::Context;
        };
        Self::Request {
            stage: oom.stage.clone(),
            step: oom.step,
            line: user_frame(&oom.stack).map(|frame| {
                let file = Path::new(&frame.file);
                let name = file.file_name().unwrap_or(file.as_os_str());
                (name.to_string_lossy().into_owned(), frame.line)
            }),
            moment: oom.moment,
        }
    }
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Request {
            stage, step, line, ..
        } = self
        else {
            return formatter.write_str("CUDA's own memory did not fit");
        };
        match stage.as_str() {
            "setup" => formatter.write_str("while setting up")?,
            "moving the model" => formatter.write_str("while moving the model")?,
            stage => write!(formatter, "in step {} ({stage})", step + 1)?,
        }
        match line {
            Some((file, line)) => write!(formatter, ", at {file}:{line}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut => formatter.write_str("it did not end in time"),
            Self::NotSimulated(Some(function)) => {
                write!(
                    formatter,
                    "it stopped at `{function}`, which is not simulated"
                )
            }
            Self::NotSimulated(None) => {
                formatter.write_str("it stopped at a call that is not simulated")
            }
            Self::PreloadBlocked => {
                formatter.write_str("the stand-in library was not loaded into it")
            }
            Self::Exception(line) | Self::RefusedByTrick(line) => formatter.write_str(line),
            Self::NoStep => formatter.write_str("it makes no optimizer step"),
            Self::ExitCode(code) => write!(formatter, "it ended with exit code {code}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Findings;
    use crate::process::Ending;
    use ghostgpu_session::{ProcessReport, TrickRefusal};

    #[test]
    fn the_place_of_a_failed_request_reads_naturally() {
        let request = |stage: &str, line| OutOfMemory::Request {
            stage: stage.to_owned(),
            step: 1,
            line,
            moment: None,
        };
        let cases = [
            (request("setup", None), "while setting up"),
            (
                request("forward", Some(("train.py".to_owned(), 41))),
                "in step 2 (forward), at train.py:41",
            ),
            (OutOfMemory::Context, "CUDA's own memory did not fit"),
        ];
        for (place, words) in cases {
            assert_eq!(place.to_string(), words);
        }
    }

    #[test]
    fn a_script_that_was_ended_at_its_limit_fails_for_that_reason() {
        let mut run = Run::new(Ending::Killed(9), Findings::default());
        run.has_timed_out = true;
        let Outcome::Fails { reason, code } = Outcome::of(&run) else {
            panic!("it did not end");
        };
        assert_eq!((reason, code), (Reason::TimedOut, 2));
    }

    #[test]
    fn a_script_that_a_trick_ended_fails_for_what_the_trick_reported() {
        let report = |refused_trick| ProcessReport {
            refused_trick,
            exception: Some("SystemExit: 2".to_owned()),
            ..ProcessReport::default()
        };
        let refusal = TrickRefusal {
            reason: "ResNet cannot be run in chunks".to_owned(),
            alternative: "use checkpointing".to_owned(),
        };
        // The launcher's process reports nothing about it.
        let processes = vec![ProcessReport::default(), report(Some(refusal))];
        let findings = Findings {
            processes,
            ..Findings::default()
        };
        let Outcome::Fails { reason, code } = Outcome::of(&Run::new(Ending::Exited(2), findings))
        else {
            panic!("it did not fail");
        };
        assert_eq!(reason.to_string(), "ResNet cannot be run in chunks");
        assert!(matches!(reason, Reason::RefusedByTrick(_)));
        assert_eq!(code, 2);
    }
}
