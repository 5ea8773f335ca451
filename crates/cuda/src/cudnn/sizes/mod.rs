//! Which engine runs an operation, and with how much workspace.
//!
//! A table that the user has recorded on such a card comes first. Otherwise the user's own cuDNN is asked, in a child
//! process ([`ghostgpu_oracle`]); [`hopper`] corrects what it cannot know without a Hopper card, and [`attention`] and
//! [`depthwise`] size kernels that it would compile first. If it cannot be asked, because the user switched that off,
//! it is too old, or it does not start, [`model`] answers, and the user is told.

mod attention;
mod depthwise;
mod hopper;
mod library;
mod model;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use ghostgpu_device::{Capability, DeviceSheet};
use ghostgpu_library_sizes::deep;
use ghostgpu_oracle::{
    Answer, Companions, EngineAnswer, EngineConfig, FIRST_DEVICELESS_VERSION, Node, Oracle,
    PlanAnswer, Question, Store, device_text,
};
use ghostgpu_session::CudnnSource;

use super::handle::cudnnGetVersion;
use super::status;
use crate::library_sizes::users_answer;
use crate::{call_log, notes, state};

enum Source {
    Installed(Box<Oracle>),
    Modelled,
}

/// The heuristics that PyTorch asks when no proposal of the first ones could run: engines that need little memory.
pub const FALLBACK_MODE: i32 = 2;

/// One source per card of the machine.
static SOURCES: Mutex<BTreeMap<usize, Source>> = Mutex::new(BTreeMap::new());

/// The engines that cuDNN proposes for this graph, best first.
pub fn heuristics(
    graph: &Node,
    mode: i32,
    sm_target: Option<i32>,
) -> Result<Vec<EngineConfig>, i32> {
    if let Some(configs) = recorded_heuristics(graph, mode) {
        return Ok(configs);
    }
    match ask(graph, &Question::Heuristics { mode, sm_target }) {
        Some(Answer::Heuristics { status: 0, configs }) => Ok(configs),
        Some(Answer::Heuristics { status, .. }) => Err(status),
        Some(_) => Err(status::NOT_SUPPORTED),
        None => model::heuristics(graph, mode),
    }
}

/// What cuDNN proposed on a real card, if the user has a table of that.
fn recorded_heuristics(graph: &Node, mode: i32) -> Option<Vec<EngineConfig>> {
    let answer = users_answer(|| deep::heuristics_question(&graph.words(), i64::from(mode)))?;
    let configs = deep::Config::read_list(answer.text(deep::CONFIGS)?)?;
    let configs = configs.into_iter().map(|config| EngineConfig {
        engine: config.engine,
        knobs: config.knobs,
        numerical_notes: config.numerical_notes,
        behavior_notes: config.behavior_notes,
    });
    Some(configs.collect())
}

/// What cuDNN says about an engine that the program names itself.
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
    let recorded = users_answer(|| deep::workspace_question(&graph.words(), engine, knobs));
    if let Some(bytes) = recorded.and_then(|answer| answer.number(deep::WORKSPACE_BYTES)) {
        return Ok(bytes);
    }
    let multiprocessors = state::current_sheet().map_or(0, |sheet| sheet.multiprocessors);
    let known = attention::workspace(graph, multiprocessors)
        .or_else(|| depthwise::workspace(graph, engine));
    if let Some(bytes) = known {
        return Ok(bytes);
    }
    let Some(answer) = ask_plan(graph, engine, knobs, None) else {
        return model::workspace(graph, engine);
    };
    let deviceless_bytes = answer?;
    let Some(sheet) = state::current_sheet().filter(|sheet| sheet.capability == HOPPER) else {
        return Ok(deviceless_bytes);
    };
    let ask = |graph: &Node, engine: i64, knobs: &[(i32, i64)], sm_target: Option<i32>| {
        ask_plan(graph, engine, knobs, sm_target)?.ok()
    };
    let bytes = hopper::on_card(sheet, graph, engine, knobs, deviceless_bytes, &ask);
    call_log::call("workspace", || {
        format!("engine {engine}, knobs {knobs:?}: {deviceless_bytes} -> {bytes}")
    });
    Ok(bytes)
}

/// The only capability whose answers depend on more than cuDNN can know without a card.
const HOPPER: Capability = Capability::new(9, 0);

/// cuDNN's workspace or status; `None` where it cannot be asked.
fn ask_plan(
    graph: &Node,
    engine: i64,
    knobs: &[(i32, i64)],
    sm_target: Option<i32>,
) -> Option<Result<i64, i32>> {
    let question = Question::Plan {
        engine,
        knobs: knobs.to_vec(),
        sm_target,
    };
    let answer = match ask(graph, &question)? {
        Answer::Plan(PlanAnswer {
            status: 0,
            workspace_bytes,
        }) => Ok(workspace_bytes),
        Answer::Plan(answer) => Err(answer.status),
        _ => Err(status::NOT_SUPPORTED),
    };
    Some(answer)
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

/// The subfolder of the run folder in which cuDNN finds the stand-ins for its companions.
const COMPANIONS_FOLDER: &str = "cudnn-oracle";
/// Part of the store's name. Change it whenever the companions' answers change.
const COMPANIONS_VERSION: &str = "companions6";

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
    let companions = library::companions().map(|library| Companions {
        library,
        folder: session.run_dir.join(COMPANIONS_FOLDER),
        architecture: capability.as_arch_number(),
    });
    let kind_of_card = format!(
        "sm{}-{}x{}-{}",
        capability.as_arch_number(),
        sheet.multiprocessors,
        sheet.shared_memory_per_block_optin_bytes,
        if companions.is_some() {
            COMPANIONS_VERSION
        } else {
            "alone"
        }
    );
    let store = Store::new(session.cudnn_cache_dir.as_deref(), version, &kind_of_card);
    let oracle = Oracle::new(program.clone(), path, device_text(sheet), store)
        .with_library_folders(library::folders_of_companions());
    let Some(companions) = companions else {
        notes::assume(
            "cuDNN was asked without stand-ins for cuBLASLt and the driver, so the engines that need \
             them were passed over",
        );
        return Source::Installed(Box::new(oracle));
    };
    Source::Installed(Box::new(oracle.with_companions(companions)))
}

fn modelled(reason: &str) -> Source {
    notes::assume(&format!(
        "cuDNN workspace sizes are modelled, not asked for, because {reason}"
    ));
    Source::Modelled
}

fn version_text(version: usize) -> String {
    if version >= 90_000 {
        format!(
            "{}.{}.{}",
            version / 10_000,
            version / 100 % 100,
            version % 100
        )
    } else {
        format!(
            "{}.{}.{}",
            version / 1000,
            version / 100 % 10,
            version % 100
        )
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
