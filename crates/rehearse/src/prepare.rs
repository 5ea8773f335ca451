//! Everything that is checked before a script starts, so that problems are reported at once.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ghostgpu_device::{Card, Catalogue, DeviceSheet, Uncertainty, uuid_of, visible_devices};
use ghostgpu_session::card_usage::MAX_DEVICES;
use ghostgpu_session::{
    ChosenRanks, CoverageRequest, CudnnSource, RanksRequest, Session, TrickRequest,
};
use ghostgpu_symbols::SymbolSurvey;

use crate::environment::USUAL_PATH;
use crate::failure::Failure;
use crate::in_place_of::is_notebook;
use crate::job::{Extent, Job, RankChoice};
use crate::layout::Layout;
use crate::process::hold_signals;
use crate::python::isolation::without_isolation;
use crate::python::{
    Interpreter, Search, Support, TorchInstallation, find_interpreter, find_program,
};
use crate::run_dir::RunDir;
use crate::stop::Stop;
use crate::tables::{Recorded, read_tables};
use crate::target::Target;
use ghostgpu_text::human;

/// A job that can be rehearsed, any number of times.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub(crate) program: PathBuf,
    /// The program's arguments.
    pub words: Vec<OsString>,
    pub(crate) layout: Layout,
    /// Everything but the run folder, of which each run has its own.
    pub(crate) session: Session,
    pub(crate) timeout: Option<Duration>,
    /// The first word is a notebook, which python cannot run directly.
    pub(crate) is_notebook: bool,
    /// The user's `PYTHON…` variables are kept from the script (`python -E`).
    pub(crate) ignores_python_variables: bool,
    /// Environment variables for the script, in addition to those of the run itself.
    pub(crate) variables: Vec<(OsString, OsString)>,
    /// What others use of every card.
    pub reserve_bytes: u64,
    /// How far the card may differ from its data sheet; `None` if it was measured.
    pub uncertainty: Option<Uncertainty>,
    /// The torch that will be used, if known.
    pub torch: Option<TorchInstallation>,
    /// Assumptions of the answer that are known before the run.
    pub assumptions: Vec<String>,
    /// Remarks for the user before the script starts.
    pub remarks: Vec<String>,
}

impl Prepared {
    /// The virtual card; all cards of a run are alike.
    pub fn card(&self) -> &DeviceSheet {
        &self.session.devices[0]
    }

    /// The program to start.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// How many cards the job has, including those of nodes that are not run.
    pub fn card_count(&self) -> usize {
        match &self.session.ranks {
            Some(ranks) => ranks.nodes as usize * ranks.cards_per_node as usize,
            None => self.session.devices.len(),
        }
    }
}

impl Job {
    /// Checks the job and the machine, without starting the user's command or writing any of the user's files.
    ///
    /// Signals are held afterwards: see [`hold_signals`](crate::process::hold_signals).
    pub fn prepare(&self) -> Result<Prepared, Stop> {
        let card = find_card(self)?;
        check_reserve(self, card)?;
        check_cards(self)?;
        let target = Target::from_words(&self.command, self.python.as_deref())?;
        let tables = read_tables(&self.library_sizes)?;
        let layout = Layout::find()?;
        // From here on there are folders to remove, so no signal may end this process before that.
        hold_signals();
        let is_notebook =
            matches!(&target, Target::Script { words } if is_notebook(Path::new(&words[0])));
        let (target, ignores_python_variables) = without_isolation_of(target);
        let (interpreter, program, words) = choose_program(self, target, &layout)?;
        let mut remarks = Vec::new();
        let torch = match &interpreter {
            Some(interpreter) => check_interpreter(interpreter, &mut remarks)?,
            None => None,
        };
        let mut assumptions = remarks.clone();
        assumptions.extend(self.assumptions(card, &tables));
        remarks.extend(card.note.map(str::to_owned));
        let hidden = hidden_cards_remark(
            std::env::var_os("CUDA_VISIBLE_DEVICES").as_deref(),
            self.card_count.max(1) as usize,
        );
        // The answer repeats the remark, because it is why the script did not use the card.
        assumptions.splice(0..0, hidden.clone());
        remarks.extend(hidden);
        let session = self.session(card, &layout, &tables);
        Ok(Prepared {
            program,
            words,
            layout,
            session,
            timeout: self.timeout,
            is_notebook,
            ignores_python_variables,
            variables: [
                path_with(self.python.as_deref()),
                settings_from_environment(&self.tricks),
            ]
            .concat(),
            reserve_bytes: self.reserve_bytes,
            uncertainty: match self.memory_bytes {
                Some(_) => card.uncertainty_of_overhead(),
                None => card.uncertainty(),
            },
            torch,
            assumptions,
            remarks,
        })
    }

    /// What the answer rests on besides the user's environment: the card, what is used of it, recorded sizes.
    fn assumptions(&self, card: &Card, tables: &[Recorded]) -> Vec<String> {
        let mut assumptions = Vec::new();
        if let Some(memory) = self.memory_bytes {
            assumptions.push(format!(
                "the card is a {} with {} instead of its own {}",
                card.driver_name,
                human(memory),
                human(card.total_bytes)
            ));
        }
        if self.reserve_bytes > 0 {
            assumptions.push(format!(
                "{} of the card are in use already (--reserve)",
                human(self.reserve_bytes)
            ));
        }
        assumptions.extend(card.assumptions());
        let of_tables = tables.iter();
        assumptions.extend(of_tables.filter_map(|recorded| recorded.remark_for(card)));
        assumptions
    }

    /// What the processes of a rehearsal are told; `run_dir` comes with each rehearsal.
    fn session(&self, card: &Card, layout: &Layout, tables: &[Recorded]) -> Session {
        Session {
            run_dir: PathBuf::new(),
            devices: sheets(card, self),
            unlimited_memory: false,
            steps: match self.extent {
                Extent::Steps(steps) => steps,
                Extent::Coverage { .. } | Extent::Whole => 0,
            },
            coverage: match self.extent {
                Extent::Coverage { budget } => Some(CoverageRequest {
                    budget_ms: u64::try_from(budget.as_millis()).unwrap_or(u64::MAX),
                    shortens_passes: true,
                    skips_later_passes: false,
                    is_brief: false,
                }),
                Extent::Steps(_) | Extent::Whole => None,
            },
            call_log: self.call_log.clone(),
            cudnn: match self.asks_cudnn {
                true => CudnnSource::Installed,
                false => CudnnSource::Recorded,
            },
            cudnn_program: layout.cudnn_program.clone(),
            cudnn_cache_dir: cache_dir().map(|folder| folder.join("cudnn")),
            library_sizes: tables
                .iter()
                .map(|recorded| recorded.path.clone())
                .collect(),
            keep_checkpoints: self.keeps_checkpoints,
            full_initialisation: self.has_full_initialisation,
            attribution: self.records_memory,
            size_point: None,
            copy_socket: None,
            values: self.values,
            halves_sizes: false,
            tricks: self.tricks.clone(),
            ranks: ranks_request(self),
            nccl_bytes: self.nccl_bytes,
        }
    }
}

/// The environment variables that tricks need before PyTorch starts, merged with the user's own.
pub(crate) fn settings_from_environment(tricks: &[TrickRequest]) -> Vec<(OsString, OsString)> {
    allocator_settings(tricks, |name| std::env::var(name).ok())
}

/// The allocator reads its settings once, when it starts, so they must be in the environment by then.
fn allocator_settings(
    tricks: &[TrickRequest],
    present: impl Fn(&str) -> Option<String>,
) -> Vec<(OsString, OsString)> {
    let Some(trick) = tricks.iter().find(|trick| trick.name == "allocator") else {
        return Vec::new();
    };
    let settings = trick.value("settings").unwrap_or_default();
    // PyTorch prefers the newer name where both are set.
    let newer = present("PYTORCH_ALLOC_CONF").filter(|value| !value.is_empty());
    let name = match newer {
        Some(_) => "PYTORCH_ALLOC_CONF",
        None => "PYTORCH_CUDA_ALLOC_CONF",
    };
    // If a setting occurs twice, the last one counts.
    let value = match present(name).filter(|value| !value.is_empty()) {
        Some(present) => format!("{present},{settings}"),
        None => settings.to_owned(),
    };
    vec![(name.into(), value.into())]
}

/// The target without those python options that would keep the agent out, and whether it had any.
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

/// Refuses a reserve that leaves nothing for the script.
fn check_reserve(job: &Job, card: &Card) -> Result<(), Failure> {
    let total = job.memory_bytes.unwrap_or(card.total_bytes);
    match job.reserve_bytes < total {
        true => Ok(()),
        false => Err(Failure::new(format!(
            "--reserve and --margin take {} of a card that has {}",
            human(job.reserve_bytes),
            human(total)
        ))
        .with_hint("`--reserve 1GiB` is what a desktop or another job uses of the card")),
    }
}

fn find_card(job: &Job) -> Result<&'static Card, Failure> {
    let Some(name) = &job.card else {
        let is_behind_script = job
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

/// What the agent needs to start ranks itself; `None` if the launcher can start them as usual.
fn ranks_request(job: &Job) -> Option<RanksRequest> {
    let is_usual = job.nodes <= 1 && job.ranks == RankChoice::All;
    (!is_usual).then(|| RanksRequest {
        nodes: job.nodes.max(1),
        cards_per_node: job.card_count.max(1),
        shares_nodes: shares_nodes(job),
        chosen: match &job.ranks {
            RankChoice::All => ChosenRanks::All,
            RankChoice::Ends => ChosenRanks::Ends,
            RankChoice::Listed(ranks) => ChosenRanks::Listed(ranks.clone()),
        },
    })
}

/// The largest number of ranks that are run.
fn ranks_run(job: &Job) -> u32 {
    match &job.ranks {
        RankChoice::All => u32::MAX,
        RankChoice::Ends => 2,
        RankChoice::Listed(ranks) => u32::try_from(ranks.len()).unwrap_or(u32::MAX),
    }
}

/// The number of cards of all nodes on which ranks may run.
fn cards_of_nodes(job: &Job) -> u32 {
    let nodes = ranks_run(job).clamp(1, job.nodes.max(1));
    nodes.saturating_mul(job.card_count.max(1))
}

/// Whether there are too many cards to simulate all nodes, so that ranks of different nodes share the unused ones.
fn shares_nodes(job: &Job) -> bool {
    cards_of_nodes(job) as usize > MAX_DEVICES
}

/// The number of cards of this run.
fn cards(job: &Job) -> u32 {
    match shares_nodes(job) {
        true => ranks_run(job).saturating_add(job.card_count.max(1)),
        false => cards_of_nodes(job),
    }
}

/// Checks that there are enough virtual cards for all ranks that are run.
fn check_cards(job: &Job) -> Result<(), Failure> {
    match cards(job) as usize <= MAX_DEVICES {
        true => Ok(()),
        false => Err(Failure::new(format!(
            "more ranks are to be run than there can be virtual cards, which is {MAX_DEVICES}"
        ))
        .with_hint("run fewer ranks: `--ranks distinct`, or `--ranks 0,7` for some of them")),
    }
}

/// One sheet per card, each on a bus of its own.
fn sheets(card: &Card, job: &Job) -> Vec<DeviceSheet> {
    let sheet = match job.memory_bytes {
        Some(bytes) => card.sheet_with_total(bytes),
        None => card.sheet(),
    };
    (0..cards(job))
        .map(|index| {
            let mut sheet = sheet.clone();
            sheet.pci.bus += index;
            sheet
        })
        .collect()
}

/// The interpreter to check (if it is known), the program to start, and its arguments.
fn choose_program(
    job: &Job,
    target: Target,
    layout: &Layout,
) -> Result<(Option<Interpreter>, PathBuf, Vec<OsString>), Stop> {
    // Loading the library is tried from a folder like that of a run.
    let run_dir = RunDir::create(layout)?;
    let preload = run_dir.preload();
    let search = Search {
        named: job.python.as_deref(),
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
            // Another program chooses its python itself. The one in its first line is a good guess if it has torch
            // (`torchrun`), and no guess otherwise (`conda`).
            let interpreter = match (search.named, interpreter) {
                (Some(_), _) => Some(find_interpreter(&search)?),
                (None, Some(guess)) => {
                    let found = find_interpreter(&Search {
                        word: Some(guess.as_os_str()),
                        ..search
                    });
                    match found {
                        Err(stop @ Stop::Interrupted(_)) => return Err(stop),
                        found => found.ok().filter(|found| found.torch_dir.is_some()),
                    }
                }
                (None, None) => None,
            };
            Ok((interpreter, program, words))
        }
    }
}

/// Refuses an interpreter that cannot work; adds a remark for one that may not.
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

/// A remark if the user's environment hides every card from the script.
fn hidden_cards_remark(variable: Option<&OsStr>, card_count: usize) -> Option<String> {
    let value = variable?.to_string_lossy();
    if !hides_every_card(&value, card_count) {
        return None;
    }
    let cards = match card_count {
        1 => "one card, number 0".to_owned(),
        count => format!("{count} cards, from number 0 on"),
    };
    Some(format!(
        "CUDA_VISIBLE_DEVICES is `{value}`, which hides every card from the script: this machine has {cards} \
         (`env -u CUDA_VISIBLE_DEVICES ghostgpu …` shows them)"
    ))
}

/// A `PATH` that begins with the folder of `--python`, as in an activated environment, so that a shell script's `python`
/// is that one.
fn path_with(python: Option<&OsStr>) -> Vec<(OsString, OsString)> {
    let program = python.and_then(find_program);
    let Some(folder) = program.as_deref().and_then(Path::parent) else {
        return Vec::new();
    };
    // The script may change its working folder.
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let rest = std::env::var_os("PATH").unwrap_or_else(|| USUAL_PATH.into());
    let folders = std::iter::once(folder).chain(std::env::split_paths(&rest));
    let path = std::env::join_paths(folders).ok();
    path.into_iter().map(|path| ("PATH".into(), path)).collect()
}

/// Whether this value of `CUDA_VISIBLE_DEVICES` hides all cards.
pub fn hides_every_card(variable: &str, card_count: usize) -> bool {
    let uuids: Vec<[u8; 16]> = (0..card_count.max(1)).map(uuid_of).collect();
    visible_devices(Some(variable), &uuids).is_empty()
}

/// The folder for answers that are valid for every run.
pub fn cache_dir() -> Option<PathBuf> {
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
        let remark = |value: &str, count| hidden_cards_remark(Some(OsStr::new(value)), count);
        assert_eq!(hidden_cards_remark(None, 1), None);
        for (value, count) in [("0", 1), ("0,1", 1), ("5", 8), ("GPU-6768", 1)] {
            assert_eq!(remark(value, count), None, "{value}");
        }
        for (value, count) in [("", 1), ("-1", 1), ("5", 1), ("8", 8), ("none", 1)] {
            let text = remark(value, count).expect("every card is hidden");
            assert!(text.starts_with(&format!("CUDA_VISIBLE_DEVICES is `{value}`")));
        }
    }
}
