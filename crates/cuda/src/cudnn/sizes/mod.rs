//! Which engine runs an operation, and with how much workspace.
//!
//! The user's own cuDNN is asked, in a child process ([`ghostgpu_oracle`]); what it cannot know
//! without a card is put right by [`correction`]. Where it cannot be asked, because the user
//! switched that off, it is too old, or it does not start, [`model`] answers, and the user is told.

mod correction;
mod library;
mod model;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use ghostgpu_device::DeviceSheet;
use ghostgpu_oracle::{
    Answer, EngineAnswer, EngineConfig, FIRST_DEVICELESS_VERSION, Node, Oracle, PlanAnswer,
    Question, Store, device_text,
};
use ghostgpu_session::CudnnSource;

use super::handle::cudnnGetVersion;
use super::status;
use crate::{notes, state, trace};

enum Source {
    Installed(Box<Oracle>),
    Modelled,
}

/// One source per card of the machine.
static SOURCES: Mutex<BTreeMap<usize, Source>> = Mutex::new(BTreeMap::new());

/// The engines that cuDNN proposes for this graph, best first.
pub fn heuristics(
    graph: &Node,
    mode: i32,
    sm_target: Option<i32>,
) -> Result<Vec<EngineConfig>, i32> {
    match ask(graph, &Question::Heuristics { mode, sm_target }) {
        Some(Answer::Heuristics { status: 0, configs }) => Ok(configs),
        Some(Answer::Heuristics { status, .. }) => Err(status),
        Some(_) => Err(status::NOT_SUPPORTED),
        None => model::heuristics(graph),
    }
}

/// What is to be known about an engine that the program names itself.
pub fn engine(graph: &Node, index: i64) -> Result<EngineAnswer, i32> {
    match ask(graph, &Question::Engine { index }) {
        Some(Answer::Engine(answer)) if answer.status == 0 => Ok(answer),
        Some(Answer::Engine(answer)) => Err(answer.status),
        Some(_) => Err(status::NOT_SUPPORTED),
        None => model::engine(graph, index),
    }
}

/// The workspace of one engine with these knobs, or why it cannot run.
pub fn plan_workspace(graph: &Node, engine: i64, knobs: &[(i32, i64)]) -> Result<i64, i32> {
    let question = Question::Plan {
        engine,
        knobs: knobs.to_vec(),
    };
    match ask(graph, &question) {
        Some(Answer::Plan(PlanAnswer {
            status: 0,
            workspace_bytes,
        })) => {
            let Some(sheet) = state::current_sheet() else {
                return Ok(workspace_bytes);
            };
            let corrected = correction::on_card(sheet, graph, engine, knobs, workspace_bytes);
            trace::call("workspace", || {
                format!("engine {engine}, knobs {knobs:?}: {workspace_bytes} -> {corrected}")
            });
            Ok(corrected)
        }
        Some(Answer::Plan(answer)) => Err(answer.status),
        Some(_) => Err(status::NOT_SUPPORTED),
        None => model::workspace(graph),
    }
}

/// The installed cuDNN's answer; `None` where it cannot be asked.
fn ask(graph: &Node, question: &Question) -> Option<Answer> {
    let device = state::current_device()?;
    let mut sources = SOURCES.lock().unwrap_or_else(PoisonError::into_inner);
    let source = sources
        .entry(device.ordinal)
        .or_insert_with(|| open(&device.sheet));
    let Source::Installed(oracle) = source else {
        return None;
    };
    match oracle.ask(graph, question) {
        Ok(answer) => {
            if answer == Answer::Crashed {
                notes::assume(
                    "the installed cuDNN crashed on a question about this card, so one of its \
                     engines was passed over",
                );
            }
            Some(answer)
        }
        Err(error) => {
            *source = modelled(&format!("the installed cuDNN could not be asked ({error})"));
            None
        }
    }
}

fn open(sheet: &DeviceSheet) -> Source {
    let Some(session) = state::session() else {
        return modelled("there is no session");
    };
    if session.cudnn == CudnnSource::Recorded {
        return modelled("asking the installed cuDNN was switched off");
    }
    let version = cudnnGetVersion();
    if version < FIRST_DEVICELESS_VERSION {
        return modelled(&format!(
            "the installed cuDNN {} is older than 9.8, which was the first to answer without a card",
            version_text(version)
        ));
    }
    let (Some(program), Some(path)) = (&session.cudnn_program, library::path()) else {
        return modelled("the installed cuDNN was not found");
    };
    let capability = sheet.capability;
    let kind_of_card = format!(
        "sm{}-{}x{}",
        capability.as_arch_number(),
        sheet.multiprocessors,
        sheet.shared_memory_per_block_optin_bytes
    );
    let store = Store::new(session.cudnn_cache_dir.as_deref(), version, &kind_of_card);
    let oracle = Oracle::new(program.clone(), path, device_text(sheet), store)
        .with_library_folders(library::folders_of_companions());
    Source::Installed(Box::new(oracle))
}

fn modelled(reason: &str) -> Source {
    notes::assume(&format!(
        "cuDNN workspace sizes are modelled, not asked for, because {reason}"
    ));
    Source::Modelled
}

fn version_text(version: usize) -> String {
    if version >= 90_000 {
        format!("{}.{}.{}", version / 10_000, version / 100 % 100, version % 100)
    } else {
        format!("{}.{}.{}", version / 1000, version / 100 % 10, version % 100)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_read_as_people_write_them() {
        assert_eq!(version_text(91_900), "9.19.0");
        assert_eq!(version_text(8_907), "8.9.7");
    }
}
