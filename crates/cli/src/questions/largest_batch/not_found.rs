//! Searches that find nothing, each reported in one sentence.

use ghostgpu_answers::fits::Circumstances;
use ghostgpu_answers::largest_batch::{BeforeFirstBatch, NotEvenOne};
use ghostgpu_plan::largest_batch::NotFound;
use ghostgpu_plan::need;
use ghostgpu_plan::verdict::{OnCard, judge};
use ghostgpu_rehearse::{Prepared, Rehearse, Run, SizePoint};

use crate::commands::Destination;
use crate::failure::Failure;
use crate::questions::show_last_lines;

/// Reports it to the user, and returns the exit code or the failure.
pub fn tell(
    reason: NotFound,
    prepared: &Prepared,
    output: Destination,
    runner: &mut dyn Rehearse,
) -> anyhow::Result<u8> {
    match reason {
        NotFound::NoLoader { options } => Err(Failure::new(
            "the script never iterated a torch.utils.data.DataLoader, so there is no batch to set",
        )
        .with_hint(argument_hint(&options))
        .into()),
        NotFound::NotSettable { problem, options } => {
            Err(Failure::new(format!("no batch can be set: {problem}"))
                .with_hint(argument_hint(&options))
                .into())
        }
        NotFound::NoOption { option, similar } => Err(Failure::new(format!(
            "the script has no argument `{option}`"
        ))
        .with_hint(format!("it has {}", list(&similar)))
        .into()),
        NotFound::NotEvenOne { batch, place } => {
            let answer = NotEvenOne {
                batch,
                place: &place,
                card: prepared.card(),
            };
            output.publish(&answer.text(), &answer.json())?;
            Ok(NotEvenOne::EXIT_CODE)
        }
        NotFound::NoEffect {
            point,
            smaller,
            larger,
        } => Err(Failure::new(format!(
            "{} does not set the batch: the script does exactly the same with {smaller} and {larger}",
            match &point {
                SizePoint::Option(option) => format!("the argument `{option}`"),
                _ => "the DataLoader".to_owned(),
            }
        ))
        .with_hint(match &point {
            SizePoint::Option(_) => {
                "name the argument that does, or leave `--arg` out to set the batch of the training \
                 DataLoader"
            }
            _ => "if an argument of the script sets the batch, name it: `--arg --batch-size`",
        })
        .into()),
        NotFound::DoesNotFit(run) => does_not_fit(&run, prepared, output, runner),
        NotFound::Fails {
            batch,
            reason,
            code,
            last_lines,
        } => {
            show_last_lines(&last_lines);
            let at = batch.map(|batch| format!(" with a batch of {batch}"));
            eprintln!(
                "ghostgpu: the script failed{}: {reason}",
                at.unwrap_or_default()
            );
            Ok(code)
        }
    }
}

/// The model alone is too large: the answer of `ghostgpu run`, with what would be needed.
fn does_not_fit(
    run: &Run,
    prepared: &Prepared,
    output: Destination,
    runner: &mut dyn Rehearse,
) -> anyhow::Result<u8> {
    let need = need(runner, &[], run)?.need;
    let answer = ghostgpu_answers::fits::answer(
        run,
        judge(run, None, None, &OnCard::of(prepared, None)),
        need.into(),
        &Circumstances::of(prepared),
    );
    let current_dir = std::env::current_dir().ok();
    let style = output.style(current_dir.as_deref());
    let answer = BeforeFirstBatch(&answer);
    output.publish(&answer.text(style), &answer.json())?;
    Ok(BeforeFirstBatch::EXIT_CODE)
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
