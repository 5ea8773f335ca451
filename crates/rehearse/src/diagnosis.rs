//! Whether rehearsals work on this machine: checks in the order in which a rehearsal needs their subjects.

use std::ffi::OsStr;

use ghostgpu_symbols::SymbolSurvey;
use serde::Serialize;

use crate::python::{
    Interpreter, Search, Support, TorchInstallation, cuda_libraries, find_interpreter, find_program,
};
use crate::{Layout, RunDir, Stop};

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    Good,
    /// Rehearsals work, but some have less exact figures or fail.
    Limited,
    /// No rehearsal works.
    Broken,
}

/// One thing that was checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    pub name: &'static str,
    pub state: State,
    pub finding: String,
    /// What to do about it.
    pub advice: Option<String>,
}

impl Check {
    pub fn good(name: &'static str, finding: impl Into<String>) -> Self {
        Self {
            name,
            state: State::Good,
            finding: finding.into(),
            advice: None,
        }
    }

    pub fn limited(
        name: &'static str,
        finding: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            name,
            state: State::Limited,
            finding: finding.into(),
            advice: Some(advice.into()),
        }
    }

    pub fn broken(name: &'static str, finding: impl Into<String>, advice: Option<&str>) -> Self {
        Self {
            name,
            state: State::Broken,
            finding: finding.into(),
            advice: advice.map(str::to_owned),
        }
    }
}

/// Everything that was found.
#[derive(Clone, Debug, Serialize)]
pub struct Diagnosis {
    pub is_usable: bool,
    pub checks: Vec<Check>,
    pub symbols: Option<SymbolSurvey>,
}

/// Checks everything from our own parts to torch's libraries.
pub fn diagnose(python: Option<&OsStr>) -> Result<Diagnosis, Stop> {
    let mut checks = Vec::new();
    let mut symbols = None;
    let run_dir = check_own_parts(&mut checks);
    if let Some(interpreter) = check_python(python, run_dir.as_ref(), &mut checks)?
        && let Some(torch) = check_torch(&interpreter, &mut checks)
    {
        check_libraries(&torch, &mut checks);
        let survey = SymbolSurvey::of_torch(&torch.folder);
        checks.push(check_symbols(&survey));
        symbols = Some(survey);
    }
    checks.push(check_compiler());
    Ok(Diagnosis {
        is_usable: checks.iter().all(|check| check.state != State::Broken),
        checks,
        symbols,
    })
}

/// Checks that the library and the agent are found; returns a run folder from which the library can be tried.
fn check_own_parts(checks: &mut Vec<Check>) -> Option<RunDir> {
    let found = Layout::find().and_then(|layout| {
        let run_dir = RunDir::create(&layout)?;
        Ok((layout, run_dir))
    });
    match found {
        Ok((layout, run_dir)) => {
            checks.push(Check::good(
                "stand-in library",
                layout.library.display().to_string(),
            ));
            checks.push(Check::good(
                "agent",
                layout.inject_dir.display().to_string(),
            ));
            Some(run_dir)
        }
        Err(failure) => {
            checks.push(Check::broken(
                "own parts",
                failure.to_string(),
                failure.hint(),
            ));
            None
        }
    }
}

fn check_python(
    named: Option<&OsStr>,
    run_dir: Option<&RunDir>,
    checks: &mut Vec<Check>,
) -> Result<Option<Interpreter>, Stop> {
    let preload = run_dir.map(RunDir::preload);
    let search = Search {
        named,
        word: None,
        preload: preload.as_deref(),
    };
    let interpreter = match find_interpreter(&search) {
        Ok(interpreter) => interpreter,
        Err(Stop::Refused(failure) | Stop::Failed(failure)) => {
            checks.push(Check::broken("python", failure.to_string(), failure.hint()));
            return Ok(None);
        }
        Err(stop) => return Err(stop),
    };
    checks.push(Check::good(
        "python",
        format!(
            "{} at {}",
            interpreter.version_text(),
            interpreter.executable.display()
        ),
    ));
    if preload.is_some() {
        checks.push(match interpreter.preloaded {
            Some(true) => Check::good("preload", "the library loads into this python"),
            Some(false) => Check::broken(
                "preload",
                interpreter
                    .loader_complaint
                    .clone()
                    .unwrap_or_else(|| "the system ignores LD_PRELOAD for this python".to_owned()),
                Some(
                    "use a python that is not setuid, statically linked or confined by a security \
                     policy: `--python PATH`",
                ),
            ),
            None => Check::limited(
                "preload",
                "cannot tell whether the library loads: /proc is not readable",
                "try `ghostgpu run`; the script says if the library is missing",
            ),
        });
    }
    Ok(Some(interpreter))
}

fn check_torch(interpreter: &Interpreter, checks: &mut Vec<Check>) -> Option<TorchInstallation> {
    let Some(folder) = &interpreter.torch_dir else {
        checks.push(Check::broken(
            "torch",
            "not installed in this python",
            Some("install torch there, or name another python with `--python PATH`"),
        ));
        return None;
    };
    let torch = match TorchInstallation::read(folder) {
        Ok(torch) => torch,
        Err(failure) => {
            checks.push(Check::broken("torch", failure.to_string(), failure.hint()));
            return None;
        }
    };
    let version = &torch.version;
    checks.push(match torch.support() {
        Support::Tested => Check::good("torch", version.clone()),
        Support::Untested(sentence) => Check::limited(
            "torch",
            sentence,
            "try it; if a call turns out not to be simulated, the run says which",
        ),
        Support::Unsupported(failure) => {
            Check::broken("torch", failure.to_string(), failure.hint())
        }
    });
    if let Some(cuda) = &torch.cuda {
        checks.push(Check::good("CUDA", cuda.clone()));
    }
    torch.cuda.is_some().then_some(torch)
}

fn check_libraries(torch: &TorchInstallation, checks: &mut Vec<Check>) {
    let libraries = cuda_libraries(&torch.folder);
    let cudnn = libraries.iter().find(|library| library.name == "cuDNN");
    checks.push(match cudnn.map(|library| library.version.as_deref()) {
        Some(Some(version)) if answers_without_a_device(version) => Check::good("cuDNN", version),
        Some(Some(version)) => Check::limited(
            "cuDNN",
            format!("{version}, which cannot be asked for sizes without a GPU (9.8 and later can)"),
            "convolution and attention sizes are recorded or modelled ones; a newer torch brings a \
             newer cuDNN",
        ),
        Some(None) => Check::good("cuDNN", "found, of unknown version"),
        None => Check::limited(
            "cuDNN",
            "not found next to torch",
            "convolution and attention sizes are recorded or modelled ones",
        ),
    });
    let others: Vec<String> = libraries
        .iter()
        .filter(|library| library.name != "cuDNN")
        .map(|library| match &library.version {
            Some(version) => format!("{} {version}", library.name),
            None => library.name.to_owned(),
        })
        .collect();
    checks.push(Check::good(
        "other libraries",
        if others.is_empty() {
            "none next to torch: the system's are used".to_owned()
        } else {
            others.join(", ")
        },
    ));
}

/// cuDNN documents its deviceless mode from 9.8 on.
fn answers_without_a_device(version: &str) -> bool {
    let mut parts = version.split('.').map(str::parse::<u32>);
    matches!(
        (parts.next(), parts.next()),
        (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= (9, 8)
    )
}

fn check_symbols(survey: &SymbolSurvey) -> Check {
    let total = survey.total();
    let finding = format!(
        "torch imports {} CUDA functions: {} simulated, {} harmless, {} refused, {} not listed",
        total.simulated + total.harmless + total.refused + total.unlisted,
        total.simulated,
        total.harmless,
        total.refused,
        total.unlisted
    );
    if !survey.unreadable.is_empty() {
        return Check::limited(
            "symbols",
            format!("{finding}; not read: {}", survey.unreadable.join("; ")),
            "reinstall torch if its libraries are damaged",
        );
    }
    if survey.unlisted.is_empty() {
        return Check::good("symbols", finding);
    }
    Check::limited(
        "symbols",
        finding,
        format!(
            "a script that calls one of these stops: {}",
            survey.unlisted.join(", ")
        ),
    )
}

/// `torch.compile` needs a C compiler for Triton's launchers.
fn check_compiler() -> Check {
    let named = std::env::var_os("CC").filter(|value| !value.is_empty());
    let found = named.as_deref().and_then(find_program).or_else(|| {
        ["gcc", "clang", "cc"]
            .map(OsStr::new)
            .iter()
            .copied()
            .find_map(find_program)
    });
    match found {
        Some(compiler) => Check::good("C compiler", compiler.display().to_string()),
        None => Check::limited(
            "C compiler",
            "none on the PATH",
            "only `torch.compile` needs one: install gcc or clang, or set CC",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cudnn_answers_without_a_device_from_9_8_on() {
        assert!(answers_without_a_device("9.19.0.56"));
        assert!(answers_without_a_device("9.8"));
        assert!(answers_without_a_device("10.0.1"));
        assert!(!answers_without_a_device("9.1.0.70"));
        assert!(!answers_without_a_device("unknown"));
    }

    #[test]
    fn unknown_functions_limit_but_do_not_break() {
        let mut survey = SymbolSurvey::default();
        assert_eq!(check_symbols(&survey).state, State::Good);
        survey.unlisted.push("cudaNew".to_owned());
        let check = check_symbols(&survey);
        assert_eq!(check.state, State::Limited);
        assert!(check.advice.expect("advice").ends_with("cudaNew"));
    }
}
