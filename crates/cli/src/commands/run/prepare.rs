//! Everything that is checked before a script is started: what is wrong is said at once.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ghostgpu_device::{Card, Catalogue, DeviceSheet};
use ghostgpu_session::{CudnnSource, Session};
use ghostgpu_symbols::SymbolSurvey;

use super::arguments::Arguments;
use crate::failure::Failure;
use crate::layout::Layout;
use crate::output::{Output, prepare_appendable};
use crate::process::hold_signals;
use crate::python::isolation::without_isolation;
use crate::python::{Interpreter, Search, Support, TorchInstallation, find_interpreter};
use crate::rehearsal::Plan;
use crate::run_dir::RunDir;
use crate::tables::read_tables;
use crate::target::Target;
use ghostgpu_text::human;

/// A rehearsal that can start.
#[derive(Debug)]
pub struct Prepared {
    pub plan: Plan,
    pub run_dir: RunDir,
    pub json: Option<Output>,
    /// Where the page goes.
    pub report: Option<Output>,
    /// Where the recording goes.
    pub record: Option<Output>,
    pub torch: Option<TorchInstallation>,
    /// Sentences on which the answer will rest, known already.
    pub assumptions: Vec<String>,
    /// Remarks for the user before the script starts.
    pub remarks: Vec<String>,
}

impl Prepared {
    /// The virtual card; all cards of a run are alike.
    pub fn card(&self) -> &DeviceSheet {
        &self.plan.session.devices[0]
    }
}

/// Checks the arguments and the machine. Nothing of the user's is started or written.
pub fn prepare(arguments: &Arguments) -> Result<Prepared, Failure> {
    let card = find_card(arguments)?;
    let target = Target::from_words(&arguments.command)?;
    let json = arguments
        .options
        .json
        .as_deref()
        .map(Output::prepare)
        .transpose()?;
    let report = arguments
        .breakdown
        .report
        .as_deref()
        .map(Output::prepare)
        .transpose()?;
    let record = arguments
        .breakdown
        .record
        .as_deref()
        .map(Output::prepare)
        .transpose()?;
    let tables = read_tables(&arguments.options.tables)?;
    let layout = Layout::find()?;
    // From here on there is a folder to remove: nothing may end us in between.
    hold_signals();
    let run_dir = RunDir::create(&layout.library)?;
    let (target, ignores_python_variables) = without_isolation_of(target);
    let (interpreter, program, words) = choose_program(arguments, target, &run_dir)?;
    let mut assumptions = Vec::new();
    let mut remarks = Vec::new();
    let torch = match &interpreter {
        Some(interpreter) => check_interpreter(interpreter, &mut remarks)?,
        None => None,
    };
    assumptions.append(&mut remarks.clone());
    let devices = sheets(card, arguments);
    if let Some(memory) = arguments.options.memory {
        assumptions.push(format!(
            "the card is a {} with {} instead of its own {}",
            card.driver_name,
            human(memory),
            human(card.total_bytes)
        ));
    }
    assumptions.extend(card.assumptions());
    assumptions.extend(
        tables
            .iter()
            .filter_map(|recorded| recorded.remark_for(card)),
    );
    remarks.extend(card.note.map(str::to_owned));
    if let Some(remark) = hidden_cards_remark(std::env::var_os("CUDA_VISIBLE_DEVICES")) {
        remarks.push(remark);
    }
    let session = Session {
        run_dir: run_dir.path().to_owned(),
        devices,
        elastic: false,
        steps: arguments.options.steps,
        trace: arguments
            .trace
            .as_deref()
            .map(prepare_appendable)
            .transpose()?,
        cudnn: match arguments.options.no_cudnn {
            true => CudnnSource::Recorded,
            false => CudnnSource::Installed,
        },
        cudnn_program: layout.cudnn_program.clone(),
        cudnn_cache_dir: cache_dir().map(|folder| folder.join("cudnn")),
        tables: tables
            .iter()
            .map(|recorded| recorded.path.clone())
            .collect(),
        keep_checkpoints: arguments.keep_checkpoints,
        full_initialisation: arguments.options.full_init,
        attribution: !arguments.breakdown.no_breakdown,
        probe: None,
        changes: Vec::new(),
    };
    Ok(Prepared {
        plan: Plan {
            program,
            words,
            layout,
            session,
            timeout: arguments.options.timeout,
            ignores_python_variables,
            variables: Vec::new(),
        },
        run_dir,
        json,
        report,
        record,
        torch,
        assumptions,
        remarks,
    })
}

/// The target without options of python's that would keep the agent out, and whether it had them.
fn without_isolation_of(target: Target) -> (Target, bool) {
    match target {
        Target::Python { word, words } => {
            let arguments = without_isolation(words);
            let words = arguments.words;
            (
                Target::Python { word, words },
                arguments.ignores_environment,
            )
        }
        other => (other, false),
    }
}

fn find_card(arguments: &Arguments) -> Result<&'static Card, Failure> {
    let Some(name) = &arguments.options.gpu else {
        let is_behind_script = arguments
            .command
            .iter()
            .any(|word| word == "--gpu" || word.to_string_lossy().starts_with("--gpu="));
        return Err(
            Failure::new("no card was named").with_hint(if is_behind_script {
                "options of ghostgpu come before the script: `ghostgpu run --gpu NAME script.py …`"
            } else {
                "name one, such as `--gpu 3060`, `--gpu a100-80` or `--gpu h200`; `ghostgpu gpus` \
             lists them all"
            }),
        );
    };
    Catalogue::builtin()
        .find(name)
        .map_err(|error| Failure::new(error.to_string()).with_hint(error.hint()))
}

/// One sheet per card, each on a bus of its own.
fn sheets(card: &Card, arguments: &Arguments) -> Vec<DeviceSheet> {
    let sheet = match arguments.options.memory {
        Some(bytes) => card.sheet_with_total(bytes),
        None => card.sheet(),
    };
    (0..arguments.count)
        .map(|index| {
            let mut sheet = sheet.clone();
            sheet.pci.bus += index;
            sheet
        })
        .collect()
}

/// The interpreter to check (if it is known), the program to start, and its arguments.
fn choose_program(
    arguments: &Arguments,
    target: Target,
    run_dir: &RunDir,
) -> Result<(Option<Interpreter>, PathBuf, Vec<OsString>), Failure> {
    let preload = run_dir.preload();
    let search = Search {
        named: arguments.options.python.as_deref(),
        word: None,
        preload: Some(&preload),
    };
    match target {
        Target::Script { words } => {
            let interpreter = find_interpreter(&search)?;
            let program = interpreter.executable.clone();
            Ok((Some(interpreter), program, words))
        }
        Target::Python { word, words } => {
            let interpreter = find_interpreter(&Search {
                word: word.as_deref(),
                ..search
            })?;
            let program = interpreter.executable.clone();
            Ok((Some(interpreter), program, words))
        }
        Target::Program {
            program,
            words,
            interpreter,
        } => {
            // Which python another program will use is its own business. The one in its first
            // line is a good guess if it has torch (`torchrun`), and none if not (`conda`).
            let interpreter = match (search.named, interpreter) {
                (Some(_), _) => Some(find_interpreter(&search)?),
                (None, Some(guess)) => find_interpreter(&Search {
                    word: Some(guess.as_os_str()),
                    ..search
                })
                .ok()
                .filter(|found| found.torch_dir.is_some()),
                (None, None) => None,
            };
            Ok((interpreter, program, words))
        }
    }
}

/// Refuses an interpreter that cannot work; remarks on one that may not.
fn check_interpreter(
    interpreter: &Interpreter,
    remarks: &mut Vec<String>,
) -> Result<Option<TorchInstallation>, Failure> {
    let name = interpreter.executable.display();
    let Some(torch_dir) = &interpreter.torch_dir else {
        return Err(
            Failure::new(format!("there is no torch in the python `{name}`"))
                .with_hint("install torch there, or name another python with `--python PATH`"),
        );
    };
    if interpreter.preloaded == Some(false) {
        let reason = interpreter
            .loader_complaint
            .as_deref()
            .unwrap_or("the system ignores LD_PRELOAD for it");
        return Err(Failure::new(format!(
            "the stand-in library could not be loaded into the python `{name}`: {reason}"
        ))
        .with_hint(
            "a python that is setuid, statically linked or confined cannot be used: name another \
             with `--python PATH`",
        ));
    }
    let torch = TorchInstallation::read(torch_dir)?;
    match torch.support() {
        Support::Tested => {}
        Support::Untested(sentence) => {
            let survey = SymbolSurvey::of_torch(torch_dir);
            remarks.push(format!("{sentence}; {}", survey.remark()));
        }
        Support::Unsupported(failure) => return Err(failure),
    }
    Ok(Some(torch))
}

/// A remark when the user's environment leaves the script no card at all.
fn hidden_cards_remark(visible_devices: Option<OsString>) -> Option<String> {
    let value = visible_devices?;
    let hides_all = value.is_empty() || value.to_string_lossy().starts_with('-');
    hides_all.then(|| {
        format!(
            "CUDA_VISIBLE_DEVICES is `{}`, which hides every card from the script",
            value.to_string_lossy()
        )
    })
}

/// Where answers that hold for every run are kept.
fn cache_dir() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let base = match variable("XDG_CACHE_HOME") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(&variable("HOME")?).join(".cache"),
    };
    base.is_absolute().then(|| base.join("ghostgpu"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_that_hides_every_card_is_remarked_on() {
        assert_eq!(hidden_cards_remark(None), None);
        assert_eq!(hidden_cards_remark(Some("0,1".into())), None);
        assert!(hidden_cards_remark(Some("".into())).is_some());
        assert!(hidden_cards_remark(Some("-1".into())).is_some());
    }
}
