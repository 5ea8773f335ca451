//! Asks an interpreter about itself, in a few milliseconds and without importing torch.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;

use crate::failure::Failure;
use crate::process::{Cause, Ending, capture};
use crate::stop::Stop;

/// Prints one line of JSON after a marker, because the user's `sitecustomize` may print too.
///
/// `find_spec` finds the package without running it. The empty entry of `sys.path` is the current folder, which a
/// script would not have.
const QUESTION: &str = r#"
import sys
sys.path = [entry for entry in sys.path if entry]
import importlib.util, json
spec = importlib.util.find_spec("torch")
places = list(spec.submodule_search_locations or []) if spec else []
try:
    with open("/proc/self/maps") as maps:
        preloaded = any(line.rstrip().endswith("libghostgpu.so") for line in maps)
except OSError:
    preloaded = None
print("\nghostgpu-python:" + json.dumps({
    "executable": sys.executable,
    "version": list(sys.version_info[:3]),
    "torch_dir": places[0] if places else None,
    "search_path": [entry for entry in sys.path if isinstance(entry, str)],
    "preloaded": preloaded,
}))
"#;

const MARKER: &str = "ghostgpu-python:";

/// Far more than a healthy interpreter needs, even on a slow network drive.
const PATIENCE: Duration = Duration::from_secs(60);

/// What an interpreter said about itself.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Interpreter {
    pub executable: PathBuf,
    pub version: (u32, u32, u32),
    /// The folder of the torch package, if it has one.
    pub torch_dir: Option<PathBuf>,
    pub search_path: Vec<PathBuf>,
    /// Whether the stand-in was loaded into it; `None` if that cannot be determined.
    pub preloaded: Option<bool>,
    /// What the loader complained about.
    #[serde(skip)]
    pub loader_complaint: Option<String>,
}

impl Interpreter {
    pub fn version_text(&self) -> String {
        let (major, minor, patch) = self.version;
        format!("{major}.{minor}.{patch}")
    }
}

/// Asks `python`, with `preload` loaded into it if one is given.
pub fn inspect(python: &Path, preload: Option<&Path>) -> Result<Interpreter, Stop> {
    let mut command = Command::new(python);
    command.arg("-c").arg(QUESTION);
    if let Some(library) = preload {
        command.env("LD_PRELOAD", crate::environment::preload_value(library));
    }
    let name = python.display();
    let (supervised, output, errors) = capture(&mut command, PATIENCE)
        .map_err(|error| Failure::new(format!("cannot start the python `{name}`: {error}")))?;
    match supervised.cause {
        Cause::TimedOut => {
            return Err(Failure::new(format!(
                "the python `{name}` did not answer within {} s",
                PATIENCE.as_secs()
            ))
            .into());
        }
        Cause::Interrupted(signal) => return Err(Stop::Interrupted(signal)),
        Cause::Own => {}
    }
    let answer = output
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix(MARKER))
        .and_then(|line| serde_json::from_str::<Interpreter>(line).ok());
    let Some(mut interpreter) = answer else {
        let reason = match (last_line(&errors), supervised.ending) {
            (Some(line), _) => line.to_owned(),
            (None, Ending::Exited(code)) => format!("it ended with exit code {code}"),
            (None, Ending::Killed(signal)) => format!("it was killed by signal {signal}"),
        };
        return Err(Failure::new(format!("`{name}` does not work as a python: {reason}")).into());
    };
    if interpreter.executable.as_os_str().is_empty() {
        // If an interpreter does not know its path, the one it was started under is used.
        interpreter.executable = python.to_owned();
    }
    interpreter.loader_complaint = errors
        .lines()
        .find(|line| line.contains("LD_PRELOAD"))
        .map(str::to_owned);
    Ok(interpreter)
}

fn last_line(text: &str) -> Option<&str> {
    text.lines()
        .rev()
        .map(str::trim)
        .find(|line| !line.is_empty())
}
