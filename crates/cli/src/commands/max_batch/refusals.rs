//! Searches that find nothing, each said in one clear sentence.

use std::path::Path;

use super::answer::SCHEMA;
use super::{EXIT_NONE_FITS, publish};
use crate::answer::Answer;
use crate::commands::run::need::measure_need;
use crate::commands::run::prepare::Prepared;
use crate::failure::Failure;
use crate::judge::Rehearsal;
use crate::last_lines::show_last_lines;
use crate::output::{Output, stream_beside};
use crate::probing::Outcome;
use crate::recorded_memory::Memory;
use crate::report::{FollowUps, text_answer};
use crate::terminal::Look;
use ghostgpu_text::human;

/// Why there is no largest batch.
pub enum Refusal {
    /// No `DataLoader` was gone through; options of the script's that look as if they set a batch.
    NoLoader(Vec<String>),
    NotSettable {
        problem: String,
        options: Vec<String>,
    },
    NoOption {
        option: String,
        similar: Vec<String>,
    },
    /// Even the smallest batch does not fit, which is 1, or 2 where the script cannot take 1.
    NotEvenOne {
        batch: u64,
        place: String,
    },
    /// It does not fit before there is a batch.
    DoesNotFit(Box<Rehearsal>),
    Fails {
        batch: Option<u64>,
        because: String,
        code: u8,
    },
    TimedOut,
}

impl Refusal {
    /// The script failed by itself.
    pub fn of_failure(batch: Option<u64>, run: &Rehearsal) -> Self {
        match Outcome::of(run) {
            Outcome::Fails { because, code } => Self::Fails {
                batch,
                because,
                code,
            },
            _ => Self::TimedOut,
        }
    }

    /// Tells the user, and returns the exit code or the failure.
    pub fn tell(self, prepared: &Prepared, json: Option<Output>, log: &Path) -> anyhow::Result<u8> {
        match self {
            Self::NoLoader(options) => Err(Failure::new(
                "the script never went through a torch.utils.data.DataLoader, so there is no batch \
                 to set",
            )
            .with_hint(argument_hint(&options))
            .into()),
            Self::NotSettable { problem, options } => {
                Err(Failure::new(format!("no batch can be set: {problem}"))
                    .with_hint(argument_hint(&options))
                    .into())
            }
            Self::NoOption { option, similar } => Err(Failure::new(format!(
                "the script has no argument `{option}`"
            ))
            .with_hint(format!("it has {}", list(&similar)))
            .into()),
            Self::NotEvenOne { batch, place } => {
                let card = prepared.card();
                let text = format!(
                    "largest batch  none: not even {batch} fits on {} ({})\n\
                     out of memory  {place}\n",
                    card.name,
                    human(card.total_bytes)
                );
                let document = serde_json::json!({
                    "schema": SCHEMA,
                    "largest_batch": null,
                    "smallest_tried": batch,
                    "out_of_memory": place,
                    "gpu": { "name": card.name, "total_bytes": card.total_bytes },
                    "exit_code": EXIT_NONE_FITS,
                });
                publish(&text, &document, json)?;
                Ok(EXIT_NONE_FITS)
            }
            Self::DoesNotFit(run) => does_not_fit(prepared, json, &run),
            Self::Fails {
                batch,
                because,
                code,
            } => {
                show_last_lines(log);
                let at = batch.map(|batch| format!(" with a batch of {batch}"));
                eprintln!(
                    "ghostgpu: the script failed{}: {because}",
                    at.unwrap_or_default()
                );
                Ok(code)
            }
            Self::TimedOut => Err(Failure::new("the search did not end in time (--timeout)")
                .with_hint("a longer `--timeout`, or fewer `--steps`, may let it end")
                .into()),
        }
    }
}

/// The model alone is too large: the answer of `ghostgpu run`, with what would be needed.
fn does_not_fit(prepared: &Prepared, json: Option<Output>, run: &Rehearsal) -> anyhow::Result<u8> {
    let measured = measure_need(&prepared.plan)?;
    let answer = Answer::new(run, measured.need, &super::circumstances(prepared));
    let current_dir = std::env::current_dir().ok();
    let look = Look::of(stream_beside(json.as_ref()), current_dir.as_deref());
    let text = format!(
        "largest batch  none: the script runs out of memory before its first batch\n{}",
        text_answer(&answer, &Memory::Unwanted, &FollowUps::default(), look)
    );
    let document = serde_json::json!({
        "schema": SCHEMA,
        "largest_batch": null,
        "exit_code": EXIT_NONE_FITS,
        "answer": answer,
    });
    publish(&text, &document, json)?;
    Ok(EXIT_NONE_FITS)
}

fn argument_hint(options: &[String]) -> String {
    match options {
        [] => {
            "if an argument of the script sets the batch, name it: `--arg --batch-size`".to_owned()
        }
        options => format!(
            "the script has {}: name the one that sets the batch, `--arg {}`",
            list(options),
            options[0]
        ),
    }
}

/// `--a, --b and --c`.
fn list(words: &[String]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.as_slice() {
        [] => "none".to_owned(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}
