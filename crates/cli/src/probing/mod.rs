//! Tries a script with other sizes than its own: what each try came to, how to search among them, and
//! how the memory grows.

pub mod growth;
pub mod search;
pub mod server;
pub mod whole;
pub mod words;

use serde::Serialize;

use crate::answer::user_frame;
use crate::judge::{Rehearsal, Verdict};

/// The most memory that a try had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Peaks {
    #[serde(rename = "peak_allocated_bytes")]
    pub allocated_bytes: u64,
    #[serde(rename = "peak_reserved_bytes")]
    pub reserved_bytes: u64,
    #[serde(rename = "peak_device_bytes")]
    pub device_bytes: u64,
}

/// What a try came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Fits(Peaks),
    /// It ran out of memory; where, in words.
    DoesNotFit(String),
    /// The script ended badly for another reason.
    Fails {
        because: String,
        code: u8,
    },
}

impl Outcome {
    pub fn of(run: &Rehearsal) -> Self {
        let verdict = run.verdict();
        let because = match verdict {
            Verdict::Fits => {
                return Self::Fits(Peaks {
                    allocated_bytes: run.findings.peak_allocated_bytes().unwrap_or(0),
                    reserved_bytes: run.findings.peak_reserved_bytes().unwrap_or(0),
                    device_bytes: run.findings.peak_device_bytes(),
                });
            }
            Verdict::DoesNotFit => return Self::DoesNotFit(place_of_oom(run)),
            Verdict::TimedOut => "it did not end in time".to_owned(),
            Verdict::Refused => match run.refused_calls().last() {
                Some(call) => format!("it stopped at `{}`, which is not simulated", call.function),
                None => "it stopped at a call that is not simulated".to_owned(),
            },
            Verdict::PreloadBlocked => "the stand-in library was not loaded into it".to_owned(),
            Verdict::ScriptFailed | Verdict::ScriptKilled => match run.exception() {
                Some(exception) => first_line(exception),
                None => format!(
                    "it ended with exit code {}",
                    run.supervised.ending.shell_code()
                ),
            },
        };
        Self::Fails {
            because,
            code: verdict.exit_code(run.supervised.ending),
        }
    }

    pub fn peaks(&self) -> Option<&Peaks> {
        match self {
            Self::Fits(peaks) => Some(peaks),
            _ => None,
        }
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// `in step 1 (forward), at train.py:41`.
fn place_of_oom(run: &Rehearsal) -> String {
    let Some(oom) = run.fatal_oom() else {
        return "CUDA's own memory did not fit".to_owned();
    };
    let place = match oom.stage.as_str() {
        "setup" => "while setting up".to_owned(),
        "moving the model" => "while moving the model".to_owned(),
        stage => format!("in step {} ({stage})", oom.step + 1),
    };
    match user_frame(&oom.stack) {
        Some(frame) => {
            let file = std::path::Path::new(&frame.file);
            let name = file.file_name().unwrap_or(file.as_os_str());
            format!("{place}, at {}:{}", name.to_string_lossy(), frame.line)
        }
        None => place,
    }
}
