//! `ghostgpu max-batch`: the largest batch that fits, found by trying.

mod answer;
mod arguments;
mod find;
mod progress;
mod refusals;

use std::path::Path;

use ghostgpu_session::ProbePlace;
use serde::Serialize;

pub use arguments::Arguments;

use crate::answer::{Answer, Circumstances, Need};
use crate::commands::run;
use crate::commands::run::prepare::{Prepared, prepare};
use crate::failure::{EXIT_DOES_NOT_FIT, Failure};
use crate::judge::Rehearsal;
use crate::output::{Output, print_beside, stream_beside};
use crate::probing::whole::{OtherSizes, run_whole};
use crate::process::Cause;
use crate::run_dir::temporary_folder;
use crate::terminal::{self, Look};
pub use answer::growth_sentences;
use answer::{Confirmation, MaxBatch};
pub use find::{Found, Way, Wish, find};
use ghostgpu_text::human;
pub use progress::Progress;
pub use refusals::Refusal;

pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    let run_arguments = arguments.options.for_running(arguments.command.clone());
    let wish = Wish {
        place: match &arguments.arg {
            Some(option) => ProbePlace::Option(option.clone()),
            None => ProbePlace::TrainingLoader,
        },
        at_most: arguments.at_most,
        is_forked: !arguments.no_fork,
    };
    search(&run_arguments, wish, |_| None)
}

/// Searches and tells; `refusal` is what a script of ours says that it cannot do.
pub fn search(
    run_arguments: &run::Arguments,
    wish: Wish,
    refusal: fn(&Rehearsal) -> Option<Failure>,
) -> anyhow::Result<u8> {
    let mut prepared = prepare(run_arguments)?;
    announce(&prepared);
    let folder = temporary_folder()?;
    let log = folder.path().join("output.txt");
    let mut progress = Progress::default();
    let found = match find(&prepared.plan, &wish, refusal, &log, &mut progress)? {
        Way::Found(found) => *found,
        Way::Interrupted(signal) => return Ok(interrupted(signal, &mut progress)),
        Way::Refused(refusal) => {
            progress.clear();
            let json = prepared.json.take();
            return refusal.tell(&prepared, json, &log);
        }
    };
    let (confirmation, run) = match confirm(&prepared, &found, &log, &mut progress)? {
        Ok(confirmed) => confirmed,
        Err(signal) => return Ok(interrupted(signal, &mut progress)),
    };
    progress.clear();
    let need = match run.verdict().fits() {
        Some(true) => Need::Peak,
        _ => Need::Unknown {
            because: "a batch was looked for".to_owned(),
        },
    };
    let answer = MaxBatch::new(
        &found,
        confirmation,
        Answer::new(&run, need, &circumstances(&prepared)),
    );
    let look = Look::of(stream_beside(prepared.json.as_ref()), None);
    publish(&answer.text(look), &answer, prepared.json)?;
    Ok(answer.exit_code)
}

/// The text goes to standard output, unless the JSON does.
fn publish(text: &str, document: &impl Serialize, json: Option<Output>) -> anyhow::Result<()> {
    print_beside(json.as_ref(), text)?;
    match json {
        Some(output) => output.write(&(serde_json::to_string_pretty(document)? + "\n")),
        None => Ok(()),
    }
}

fn announce(prepared: &Prepared) {
    let card = prepared.card();
    terminal::note(format_args!(
        "looking for the largest batch on a virtual {} ({}): nothing is computed",
        card.name,
        human(card.total_bytes)
    ));
    for remark in &prepared.remarks {
        terminal::note(format_args!("note: {remark}"));
    }
}

fn interrupted(signal: i32, progress: &mut Progress) -> u8 {
    progress.clear();
    eprintln!("ghostgpu: interrupted: everything the script had started was ended");
    128u8.saturating_add(signal as u8)
}

fn circumstances(prepared: &Prepared) -> Circumstances<'_> {
    let torch = prepared.torch.as_ref();
    Circumstances {
        card: prepared.card(),
        card_count: prepared.plan.session.devices.len(),
        torch_version: torch.map(|torch| torch.version.as_str()),
        torch_cuda: torch.and_then(|torch| torch.cuda.as_deref()),
        assumptions: &prepared.assumptions,
    }
}

/// A run of its own with the batch that was found, and what it says about the search; or the signal
/// that ended it. A batch that was found by whole runs needs none.
fn confirm(
    prepared: &Prepared,
    found: &Found,
    log: &Path,
    progress: &mut Progress,
) -> anyhow::Result<Result<(Confirmation, Rehearsal), i32>> {
    if let Some(run) = &found.last_fit {
        return Ok(Ok((Confirmation::FoundByRuns, run.clone())));
    }
    let run = run_whole(
        &prepared.plan,
        &found.place,
        OtherSizes::batch(found.batch),
        false,
        log,
        &mut |elapsed| progress.confirming(found.batch, elapsed),
    )?;
    if let Cause::Interrupted(signal) = run.supervised.cause {
        return Ok(Err(signal));
    }
    Ok(Ok((Confirmation::of(found, &run), run)))
}

/// The exit code of the answer "not even one sample fits".
const EXIT_NONE_FITS: u8 = EXIT_DOES_NOT_FIT;
