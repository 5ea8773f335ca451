//! What the installed torch is, read from its `version.py` without running it.

use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// The oldest torch that is supported: it is the first with cuDNN 9.
const OLDEST: (u32, u32) = (2, 4);

/// The newest torch that this was tested with.
const NEWEST_TESTED: (u32, u32) = (2, 15);

/// The major versions of CUDA whose structures are known, as in the library.
const SIMULATED_CUDA: std::ops::RangeInclusive<u32> = 12..=13;

/// An installed torch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TorchInstallation {
    pub folder: PathBuf,
    /// `2.11.0+cu130`.
    pub version: String,
    /// `13.0`; `None` for a build without CUDA.
    pub cuda: Option<String>,
    /// Set for a build for AMD's cards.
    pub hip: Option<String>,
}

/// Whether we can rehearse with a torch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Support {
    Tested,
    /// It may work; the sentence says what is uncertain.
    Untested(String),
    Unsupported(Failure),
}

impl TorchInstallation {
    /// Reads the package in `folder`.
    pub fn read(folder: &Path) -> Result<Self, Failure> {
        let file = folder.join("version.py");
        let text = std::fs::read_to_string(&file).map_err(|error| {
            Failure::new(format!(
                "the torch in {} is incomplete: cannot read version.py: {error}",
                folder.display()
            ))
            .with_hint("reinstall torch")
        })?;
        let version = assigned_text(&text, "__version__").ok_or_else(|| {
            Failure::new(format!(
                "{} does not contain torch's version",
                file.display()
            ))
        })?;
        Ok(Self {
            folder: folder.to_owned(),
            version,
            cuda: assigned_text(&text, "cuda"),
            hip: assigned_text(&text, "hip"),
        })
    }

    pub fn support(&self) -> Support {
        let version = &self.version;
        if self.cuda.is_none() {
            let build = if self.hip.is_some() { "ROCm" } else { "CPU" };
            return Support::Unsupported(
                Failure::new(format!("torch {version} is a {build} build without CUDA")).with_hint(
                    "install a CUDA build of torch (no GPU is needed to install it), \
                     or name another python with `--python PATH`",
                ),
            );
        }
        let release = release(version);
        if release.is_some_and(|release| release < OLDEST) {
            return Support::Unsupported(
                Failure::new(format!(
                    "torch {version} is too old: the oldest supported is {}.{}",
                    OLDEST.0, OLDEST.1
                ))
                .with_hint("name a python with a newer torch with `--python PATH`"),
            );
        }
        if let Some(failure) = self.cuda.as_deref().and_then(refusal_of_cuda) {
            return Support::Unsupported(failure);
        }
        match release {
            None => Support::Untested(format!("torch's version `{version}` is not recognised")),
            Some(release) if release > NEWEST_TESTED => Support::Untested(format!(
                "torch {version} is newer than the newest this was tested with ({}.{})",
                NEWEST_TESTED.0, NEWEST_TESTED.1
            )),
            Some(_) => Support::Tested,
        }
    }
}

/// Why a torch built for this CUDA version cannot be rehearsed: other major versions have other structure layouts.
fn refusal_of_cuda(cuda: &str) -> Option<Failure> {
    let major: Option<u32> = cuda.split('.').next().and_then(|major| major.parse().ok());
    let is_simulated = major.is_some_and(|major| SIMULATED_CUDA.contains(&major));
    (!is_simulated).then(|| {
        Failure::new(format!(
            "this torch is built for CUDA {cuda}, and only CUDA {} and {} are simulated",
            SIMULATED_CUDA.start(),
            SIMULATED_CUDA.end()
        ))
        .with_hint(
            "name a python whose torch is built for one of those with `--python PATH`, or look for a \
             newer ghostgpu",
        )
    })
}

/// Major and minor number of a version such as `2.11.0+cu130`.
fn release(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.');
    let major = parts.next()?.parse().ok()?;
    let minor = parts.next()?;
    let digits_end = minor
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(minor.len());
    Some((major, minor[..digits_end].parse().ok()?))
}

/// The text in `name = 'text'` or `name: Optional[str] = 'text'`, at the start of a line.
fn assigned_text(source: &str, name: &str) -> Option<String> {
    source.lines().find_map(|line| {
        let after_name = line.strip_prefix(name)?.trim_start();
        if !after_name.starts_with([':', '=']) {
            return None;
        }
        let (_, value) = after_name.split_once('=')?;
        let value = value.trim();
        let quote = value
            .chars()
            .next()
            .filter(|character| matches!(character, '\'' | '"'))?;
        let (text, _) = value[1..].split_once(quote)?;
        Some(text.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFICIAL: &str = "from typing import Optional\n\n\
        __all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip']\n\
        __version__ = '2.11.0+cu130'\ndebug = False\ncuda: Optional[str] = '13.0'\n\
        git_version = 'abc'\nhip: Optional[str] = None\n";

    fn torch(version: &str, cuda: Option<&str>) -> TorchInstallation {
        TorchInstallation {
            folder: PathBuf::new(),
            version: version.to_owned(),
            cuda: cuda.map(str::to_owned),
            hip: None,
        }
    }

    #[test]
    fn the_version_file_of_a_wheel_is_read() {
        let folder = tempfile::tempdir().expect("folder");
        std::fs::write(folder.path().join("version.py"), OFFICIAL).expect("file");
        let found = TorchInstallation::read(folder.path()).expect("complete");
        assert_eq!(found.version, "2.11.0+cu130");
        assert_eq!(found.cuda.as_deref(), Some("13.0"));
        assert_eq!(found.hip, None);
    }

    #[test]
    fn a_name_that_only_begins_alike_is_not_taken() {
        assert_eq!(assigned_text("cuda_extra = 'x'\n", "cuda"), None);
        assert_eq!(
            assigned_text("__version__ = \"2.6\"\n", "__version__"),
            Some("2.6".to_owned())
        );
    }

    #[test]
    fn a_missing_version_file_is_named() {
        let folder = tempfile::tempdir().expect("folder");
        let failure = TorchInstallation::read(folder.path()).expect_err("empty");
        assert!(failure.to_string().contains("version.py"), "{failure}");
    }

    #[test]
    fn support_follows_the_release() {
        assert_eq!(
            torch("2.11.0+cu130", Some("13.0")).support(),
            Support::Tested
        );
        assert_eq!(torch("2.4.1", Some("12.1")).support(), Support::Tested);
        assert!(matches!(
            torch("2.3.1", Some("12.1")).support(),
            Support::Unsupported(_)
        ));
        assert!(matches!(
            torch("2.99.0a0+git12", Some("13.2")).support(),
            Support::Untested(_)
        ));
        for cuda in ["14.0", "11.8", "new"] {
            let Support::Unsupported(failure) = torch("2.15.0", Some(cuda)).support() else {
                panic!("CUDA {cuda} would be answered as another");
            };
            assert!(failure.to_string().contains(cuda), "{failure}");
        }
        assert!(matches!(
            torch("2.11.0+cpu", None).support(),
            Support::Unsupported(_)
        ));
        assert_eq!(release("2.16.0a0+git"), Some((2, 16)));
        assert_eq!(release("two"), None);
    }
}
