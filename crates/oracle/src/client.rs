//! The client: starts the process that holds cuDNN, queries it, and survives its crashes.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::installed::{folders_beside, libraries};
use crate::protocol::{Answer, Node, Question, Request};
use crate::server::Greeting;
use crate::store::Store;

/// How long one answer may take. Compiling an attention kernel takes seconds; loading cuDNN too.
const PATIENCE_MS: i32 = 120_000;

/// Why there is no oracle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OracleError {
    /// The program could not be started, or died before its greeting.
    Start(String),
    /// cuDNN could not be opened in it.
    Library(String),
}

impl std::fmt::Display for OracleError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Start(reason) | Self::Library(reason) => formatter.write_str(reason),
        }
    }
}

impl std::error::Error for OracleError {}

/// Answers about one card, from memory, from the store, or from the user's cuDNN.
pub struct Oracle {
    program: PathBuf,
    library: PathBuf,
    /// Put before the environment's own value, for libraries that cuDNN opens by bare name.
    library_folders: Vec<PathBuf>,
    device: String,
    companions: Option<Companions>,
    store: Store,
    known: HashMap<Node, BTreeMap<Question, Answer>>,
    process: Option<Process>,
}

/// Set in the oracle's environment when cuDNN is to find its companions by their bare names.
pub(crate) const COMPANIONS_VARIABLE: &str = "GHOSTGPU_ORACLE_COMPANIONS";
/// Tells the companions which card to answer for.
const ARCHITECTURE_VARIABLE: &str = "GHOSTGPU_ORACLE_ARCHITECTURE";

/// Names the real NVRTC, in whose place cuDNN finds the companions.
pub(crate) const COMPILER_VARIABLE: &str = "GHOSTGPU_ORACLE_COMPILER";

/// The library `ghostgpu-oracle-companions`, and a private folder in which cuDNN finds it under the
/// names of cuBLASLt, NVRTC and the driver.
#[derive(Debug, Clone)]
pub struct Companions {
    pub library: PathBuf,
    pub folder: PathBuf,
    /// The card's capability as compilers write it: 90 for 9.0.
    pub architecture: u32,
}

impl Companions {
    /// `compiler` is the real NVRTC, under whose name cuDNN looks for one.
    fn link(&self, compiler: Option<&Path>) -> std::io::Result<()> {
        std::fs::create_dir_all(&self.folder)?;
        let names = ["libcublasLt.so.13", "libcublasLt.so.12", "libcuda.so.1"].map(OsStr::new);
        for name in names.into_iter().chain(compiler.and_then(Path::file_name)) {
            let link = self.folder.join(name);
            if !link.exists() {
                std::os::unix::fs::symlink(&self.library, link)?;
            }
        }
        Ok(())
    }
}

struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// A fork of the script must not use its parent's connection.
    owner: u32,
}

impl Oracle {
    /// Nothing is started yet: that happens with the first question that is not in the store.
    pub fn new(program: PathBuf, library: PathBuf, device: String, store: Store) -> Self {
        Self {
            program,
            library,
            library_folders: Vec::new(),
            device,
            companions: None,
            store,
            known: HashMap::new(),
            process: None,
        }
    }

    pub fn with_library_folders(mut self, folders: Vec<PathBuf>) -> Self {
        self.library_folders = folders;
        self
    }

    /// Lets cuDNN find stand-ins for cuBLASLt and the driver, without which it omits engines.
    pub fn with_companions(mut self, companions: Companions) -> Self {
        self.companions = Some(companions);
        self
    }

    /// The answer to one question about one graph (its ids counted, see
    /// [`Node::with_counted_ids`]).
    pub fn ask(&mut self, graph: &Node, question: &Question) -> Result<Answer, OracleError> {
        if !self.known.contains_key(graph) {
            let answers = self.store.load(graph);
            self.known.insert(graph.clone(), answers);
        }
        if let Some(answer) = self.known.get(graph).and_then(|all| all.get(question)) {
            return Ok(answer.clone());
        }
        let request = Request {
            device: self.device.clone(),
            graph: graph.clone(),
            question: question.clone(),
        };
        let answer = self.put(&request)?;
        // A crash may have had a cause outside cuDNN (memory, a signal): the next run asks again.
        if answer != Answer::Crashed {
            self.store.add(graph, question, &answer);
        }
        let answers = self.known.entry(graph.clone()).or_default();
        answers.insert(question.clone(), answer.clone());
        Ok(answer)
    }

    fn put(&mut self, request: &Request) -> Result<Answer, OracleError> {
        let own = std::process::id();
        if self
            .process
            .as_ref()
            .is_none_or(|process| process.owner != own)
        {
            // The process belongs to the parent: do not kill it or wait for it.
            std::mem::forget(self.process.take());
            self.process = Some(self.start()?);
        }
        let Some(process) = &mut self.process else {
            return Ok(Answer::Crashed);
        };
        match process.exchange(request) {
            Some(answer) => Ok(answer),
            None => {
                // Dead or stuck: whatever it was, the next question gets a fresh process.
                if let Some(mut process) = self.process.take() {
                    let _ = process.child.kill();
                    let _ = process.child.wait();
                }
                Ok(Answer::Crashed)
            }
        }
    }

    fn start(&self) -> Result<Process, OracleError> {
        let mut folders: Vec<OsString> = Vec::new();
        let mut command = Command::new(&self.program);
        if let Some(companions) = &self.companions {
            // Without the links cuDNN finds the real ones, if any, and answers for fewer engines.
            let compiler = self.compiler();
            if companions.link(compiler.as_deref()).is_ok() {
                folders.push(companions.folder.clone().into_os_string());
                command.env(COMPANIONS_VARIABLE, "1");
                command.env(ARCHITECTURE_VARIABLE, companions.architecture.to_string());
                command.envs(compiler.map(|path| (COMPILER_VARIABLE, path)));
            }
        }
        folders.extend(self.library_folders.iter().map(OsString::from));
        // An empty entry would mean the current folder.
        folders.extend(std::env::var_os("LD_LIBRARY_PATH").filter(|value| !value.is_empty()));
        let failed = |error: std::io::Error| {
            OracleError::Start(format!(
                "{} cannot be started: {error}",
                self.program.display()
            ))
        };
        let mut child = command
            .arg("cudnn-oracle")
            .arg("--library")
            .arg(&self.library)
            .env_remove("LD_PRELOAD")
            .env_remove("GHOSTGPU_SESSION")
            .env(
                "LD_LIBRARY_PATH",
                folders.join(OsString::from(":").as_os_str()),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(OracleError::Start("the oracle has no pipes".to_owned()));
        };
        let mut process = Process {
            child,
            input,
            output: BufReader::new(output),
            owner: std::process::id(),
        };
        match process.read::<Greeting>() {
            Some(Greeting::Version(_)) => Ok(process),
            Some(Greeting::Failed(reason)) => {
                let _ = process.child.wait();
                Err(OracleError::Library(reason))
            }
            None => {
                let _ = process.child.kill();
                let _ = process.child.wait();
                Err(OracleError::Start(format!(
                    "{} ended before it could open cuDNN",
                    self.program.display()
                )))
            }
        }
    }
}

impl Oracle {
    /// The NVRTC that cuDNN would open: beside it, or where the script's own libraries lie.
    fn compiler(&self) -> Option<PathBuf> {
        let mut folders = folders_beside(&self.library);
        folders.extend(self.library_folders.iter().cloned());
        if let Some(further) = std::env::var_os("LD_LIBRARY_PATH") {
            folders.extend(std::env::split_paths(&further));
        }
        libraries(&folders, "libnvrtc.so.").into_iter().next()
    }
}

impl Process {
    fn exchange(&mut self, request: &Request) -> Option<Answer> {
        let mut line = serde_json::to_vec(request).ok()?;
        line.push(b'\n');
        self.input.write_all(&line).ok()?;
        self.input.flush().ok()?;
        self.read()
    }

    fn read<T: serde::de::DeserializeOwned>(&mut self) -> Option<T> {
        // One line at a time goes back and forth, so nothing is left in the buffer here.
        let mut waiting = libc::pollfd {
            fd: self.output.get_ref().as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        loop {
            // SAFETY: one valid entry.
            let ready = unsafe { libc::poll(&raw mut waiting, 1, PATIENCE_MS) };
            let interrupted =
                ready < 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::EINTR);
            if interrupted {
                continue;
            }
            if ready <= 0 {
                return None;
            }
            break;
        }
        let mut line = String::new();
        self.output.read_line(&mut line).ok()?;
        serde_json::from_str(&line).ok()
    }
}
