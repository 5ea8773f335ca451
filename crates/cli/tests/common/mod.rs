//! A small world for the program: a python with something that looks like torch, a library that
//! can be preloaded, an agent folder, and a temporary folder whose emptiness can be checked.
//!
//! The scripts in these tests imitate the agent: they write reports into the run folder. The real agent and the real
//! library have their own tests.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Functions for the scripts: what the agent and the library would leave behind.
const PRELUDE: &str = r#"
import json, os, struct, sys
SESSION = json.load(open(os.environ["GHOSTGPU_SESSION"]))
RUN_DIR = SESSION["run_dir"]
def peak_on_card(bytes_, device=0):
    with open(os.path.join(RUN_DIR, "card.usage"), "r+b") as usage:
        usage.seek(64 + 16 * device + 8)
        usage.write(struct.pack("<Q", bytes_))
def report(**fields):
    fields.setdefault("pid", os.getpid())
    fields.setdefault("torch", "2.11.0+cu130")
    with open(os.path.join(RUN_DIR, f"agent-{os.getpid()}.json"), "w") as file:
        json.dump(fields, file)
def peaks(allocated, reserved):
    return [{"device": 0, "peak_allocated_bytes": allocated, "peak_reserved_bytes": reserved,
             "retries": 0, "allocations": 5}]
def oom(is_fatal=True):
    return {"device": 0, "requested_bytes": 1610612736, "message": "CUDA out of memory. Tried",
            "step": 0, "stage": "forward", "is_fatal": is_fatal,
            "stack": [{"file": os.path.abspath(__file__), "line": 41, "function": "forward",
                       "source": "x = self.attn(x)", "is_user_code": True}]}
"#;

pub struct World {
    folder: tempfile::TempDir,
}

impl World {
    /// A complete world in which a rehearsal works.
    pub fn new() -> Self {
        let world = Self {
            folder: tempfile::tempdir().expect("folder"),
        };
        for name in ["tmp", "work", "home", "agent/inject"] {
            std::fs::create_dir_all(world.path(name)).expect("folder");
        }
        std::fs::copy(any_shared_library(), world.path("libghostgpu.so")).expect("library");
        world.torch("2.11.0+cu130", Some("13.0"));
        world
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Installs something that looks like torch from outside.
    pub fn torch(&self, version: &str, cuda: Option<&str>) {
        let cuda = cuda.map_or("None".to_owned(), |cuda| format!("'{cuda}'"));
        self.write("site/torch/__init__.py", "");
        self.write(
            "site/torch/version.py",
            &format!("__version__ = '{version}'\ncuda: Optional[str] = {cuda}\nhip = None\n"),
        );
    }

    pub fn remove_torch(&self) {
        std::fs::remove_dir_all(self.path("site")).expect("removed");
    }

    /// Writes a file below the world's folder.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("parent")).expect("folder");
        std::fs::write(&path, text).expect("file");
        path
    }

    /// Writes a script into the folder in which the program is started.
    pub fn script(&self, name: &str, text: &str) {
        self.write(&format!("work/{name}"), &format!("{PRELUDE}\n{text}"));
    }

    /// Writes an executable.
    pub fn executable(&self, name: &str, text: &str) -> PathBuf {
        let path = self.write(name, text);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("mode");
        path
    }

    /// The program, ready to be started in this world.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ghostgpu"));
        command
            .args(arguments)
            .current_dir(self.path("work"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .env("PYTHONPATH", self.path("site"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("GHOSTGPU_LIBRARY", self.path("libghostgpu.so"))
            .env("GHOSTGPU_AGENT_DIR", self.path("agent"))
            .stdin(Stdio::null());
        command
    }

    /// Runs the program to its end.
    pub fn run(&self, arguments: &[&str]) -> Outcome {
        Outcome::from(self.command(arguments).output().expect("the program runs"))
    }

    /// `ghostgpu run --gpu 3060` with more arguments.
    pub fn rehearse(&self, arguments: &[&str]) -> Outcome {
        self.run(&[&["run", "--gpu", "3060"], arguments].concat())
    }

    /// Nothing of ours is left in the temporary folder.
    pub fn assert_no_leftovers(&self) {
        let left: Vec<_> = std::fs::read_dir(self.path("tmp"))
            .expect("folder")
            .flatten()
            .map(|entry| entry.file_name())
            .collect();
        assert!(left.is_empty(), "left behind: {left:?}");
    }

    pub fn json(&self, name: &str) -> serde_json::Value {
        let text = std::fs::read(self.path(name)).expect("the JSON was written");
        serde_json::from_slice(&text).expect("it is valid")
    }
}

/// How the program ended and what it printed.
#[derive(Debug)]
pub struct Outcome {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for Outcome {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Outcome {
    #[track_caller]
    pub fn assert_code(&self, code: i32) -> &Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    /// Our own failure, with this sentence.
    #[track_caller]
    pub fn assert_failure(&self, sentence: &str) -> &Self {
        self.assert_code(2);
        let line = self
            .stderr
            .lines()
            .find(|line| line.starts_with("ghostgpu: ") && line.contains(sentence));
        assert!(line.is_some(), "`{sentence}` is not in {self:#?}");
        self
    }
}

/// Starts the program, to be ended by a signal.
pub fn start(world: &World, arguments: &[&str]) -> Child {
    world
        .command(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts")
}

pub fn send(child: &Child, signal: i32) {
    // SAFETY: `kill` touches no memory, and the child has not been waited for.
    unsafe {
        libc::kill(child.id() as i32, signal);
    }
}

/// Waits until a condition holds.
#[track_caller]
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(
            started.elapsed() < Duration::from_secs(20),
            "not in time: {what}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The process whose number is in a file is alive.
pub fn is_alive(pid_file: &Path) -> bool {
    let Ok(pid) = std::fs::read_to_string(pid_file) else {
        return false;
    };
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

/// Any library that can be preloaded without effect: one that this test has loaded already.
fn any_shared_library() -> PathBuf {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("/proc");
    let mut libraries: Vec<&str> = maps
        .lines()
        .filter_map(|line| line.split_whitespace().last())
        .filter(|path| path.contains("libgcc_s.so") || path.contains("libm.so"))
        .collect();
    libraries.sort_unstable();
    PathBuf::from(libraries.first().expect("Rust programs load libgcc_s"))
}
