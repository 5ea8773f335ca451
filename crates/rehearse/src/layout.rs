//! Where our own parts are: the stand-in library, the program that asks cuDNN, the Python agent.
//!
//! Installed with pip, the programs and the library lie in `ghostgpu/_native/` and the agent in
//! `ghostgpu/agent/` beside it. In a checkout, the library and the other program lie next to the
//! binary in `target/…/`, and the agent in `python/ghostgpu/agent/` of a folder above.

use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// The library's file name.
pub const LIBRARY_NAME: &str = "libghostgpu.so";

/// The program that asks the installed cuDNN.
const CUDNN_PROGRAM_NAME: &str = "ghostgpu-cudnn";

/// The library that `ghostgpu calibrate` preloads; it lies beside the program.
pub const CALIBRATOR_NAME: &str = "libghostgpu_calibrator.so";

/// Names another library; for tests and for builds outside the checkout.
const LIBRARY_VARIABLE: &str = "GHOSTGPU_LIBRARY";

/// Names another agent folder; for tests and for builds outside the checkout.
const AGENT_VARIABLE: &str = "GHOSTGPU_AGENT_DIR";

/// The parts that a rehearsal needs besides this binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// This program.
    pub program: PathBuf,
    /// The stand-in library.
    pub library: PathBuf,
    /// The program that asks the installed cuDNN; a rehearsal can do without it.
    pub cudnn_program: Option<PathBuf>,
    /// The folder to put first on the Python path, so that the agent starts with Python.
    pub inject_dir: PathBuf,
}

impl Layout {
    /// Finds the parts around the running program.
    pub fn find() -> Result<Self, Failure> {
        let program = own_program()?;
        let given = |variable| {
            let value = std::env::var_os(variable).filter(|value| !value.is_empty());
            value.map(PathBuf::from)
        };
        Self::find_around(&program, given(LIBRARY_VARIABLE), given(AGENT_VARIABLE))
    }

    fn find_around(
        program: &Path,
        given_library: Option<PathBuf>,
        given_agent: Option<PathBuf>,
    ) -> Result<Self, Failure> {
        let program_dir = program.parent().unwrap_or(Path::new("/"));
        let library = given_library.unwrap_or_else(|| program_dir.join(LIBRARY_NAME));
        let library = std::fs::canonicalize(&library).map_err(|_| {
            Failure::new(format!(
                "the stand-in library is missing: {}",
                library.display()
            ))
            .with_hint(
                "reinstall the package; in a checkout, `cargo build --release` builds the library",
            )
        })?;
        let agent_dir = given_agent
            .or_else(|| installed_agent(program_dir))
            .or_else(|| checkout_agent(program_dir));
        let inject_dir = agent_dir.map(|folder| folder.join("inject"));
        let inject_dir = inject_dir
            .and_then(|folder| std::fs::canonicalize(folder).ok())
            .ok_or_else(|| {
                Failure::new("the Python agent is missing: no folder `agent/inject` was found")
                    .with_hint("reinstall the package, or run the program from inside a checkout")
            })?;
        let cudnn_program = program_dir.join(CUDNN_PROGRAM_NAME);
        Ok(Self {
            program: program.to_owned(),
            library,
            cudnn_program: cudnn_program.is_file().then_some(cudnn_program),
            inject_dir,
        })
    }
}

/// The folder that starts tricks in a launched training, which needs none of the other parts.
pub fn tricks_inject_dir() -> Result<PathBuf, Failure> {
    let program = own_program()?;
    let program_dir = program.parent().unwrap_or(Path::new("/"));
    let given = std::env::var_os(AGENT_VARIABLE).filter(|value| !value.is_empty());
    let agent_dir = given
        .map(PathBuf::from)
        .or_else(|| installed_agent(program_dir))
        .or_else(|| checkout_agent(program_dir));
    agent_dir
        .and_then(|folder| std::fs::canonicalize(folder.parent()?.join("tricks/inject")).ok())
        .ok_or_else(|| {
            Failure::new("the tricks are missing: no folder `tricks/inject` was found")
                .with_hint("reinstall the package, or run the program from inside a checkout")
        })
}

fn own_program() -> Result<PathBuf, Failure> {
    std::env::current_exe()
        .and_then(std::fs::canonicalize)
        .map_err(|error| Failure::new(format!("cannot find our own program file: {error}")))
}

/// The calibrator's library, which needs none of the other parts.
pub fn calibrator_library() -> Result<PathBuf, Failure> {
    let library = own_program()?.with_file_name(CALIBRATOR_NAME);
    match library.is_file() {
        true => Ok(library),
        false => Err(
            Failure::new(format!("the recorder is missing: {}", library.display())).with_hint(
                "reinstall the package; in a checkout, `cargo build --release` builds the library",
            ),
        ),
    }
}

fn installed_agent(program_dir: &Path) -> Option<PathBuf> {
    let agent = program_dir.parent()?.join("agent");
    (program_dir.file_name()? == "_native" && agent.is_dir()).then_some(agent)
}

fn checkout_agent(program_dir: &Path) -> Option<PathBuf> {
    program_dir
        .ancestors()
        .map(|folder| folder.join("python/ghostgpu/agent"))
        .find(|agent| agent.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(path: &Path) {
        std::fs::create_dir_all(path.parent().expect("has a parent")).expect("folder");
        std::fs::write(path, "").expect("file");
    }

    #[test]
    fn an_installed_package_is_found_around_its_program() {
        let site = tempfile::tempdir().expect("folder");
        let root = site.path().canonicalize().expect("path");
        let program = root.join("ghostgpu/_native/ghostgpu");
        touch(&program);
        touch(&root.join("ghostgpu/_native/libghostgpu.so"));
        touch(&root.join("ghostgpu/agent/inject/sitecustomize.py"));
        let layout = Layout::find_around(&program, None, None).expect("complete");
        assert_eq!(layout.library, root.join("ghostgpu/_native/libghostgpu.so"));
        assert_eq!(layout.cudnn_program, None);
        assert_eq!(layout.inject_dir, root.join("ghostgpu/agent/inject"));
    }

    #[test]
    fn a_checkout_is_found_by_walking_up() {
        let checkout = tempfile::tempdir().expect("folder");
        let root = checkout.path().canonicalize().expect("path");
        let program = root.join("target/release/ghostgpu");
        touch(&program);
        touch(&root.join("target/release/libghostgpu.so"));
        let cudnn_program = root.join("target/release/ghostgpu-cudnn");
        touch(&cudnn_program);
        touch(&root.join("python/ghostgpu/agent/inject/sitecustomize.py"));
        let layout = Layout::find_around(&program, None, None).expect("complete");
        assert_eq!(layout.inject_dir, root.join("python/ghostgpu/agent/inject"));
        assert_eq!(layout.cudnn_program, Some(cudnn_program));
    }

    #[test]
    fn a_missing_library_is_named() {
        let folder = tempfile::tempdir().expect("folder");
        let failure = Layout::find_around(&folder.path().join("ghostgpu"), None, None)
            .expect_err("nothing is there");
        assert!(
            failure
                .to_string()
                .starts_with("the stand-in library is missing")
        );
    }
}
