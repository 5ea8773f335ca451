//! Which configuration applies to which file: that of the nearest `pyproject.toml` with our section.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ghostgpu_lint::{Config, ConfigError, FailOn, Settings};

use crate::normal;

const FILE_NAME: &str = "pyproject.toml";

/// A configuration and the folder that its patterns start from.
#[derive(Debug, Clone, Default)]
struct Placed {
    config: Config,
    folder: PathBuf,
}

/// The configurations of all files, and that of the command line.
#[derive(Debug)]
pub struct Configurations {
    command_line: Placed,
    /// The file of `--config`, which applies to every file.
    named: Option<Placed>,
    /// By folder; `None` if no file in or above it has our section.
    by_folder: BTreeMap<PathBuf, Option<Placed>>,
}

impl Configurations {
    /// From the command line and the file that it names; [`Self::learn`] reads the files next to the code.
    pub fn new(command_line: Config, named: Option<&Path>) -> Result<Self, ConfigError> {
        Ok(Self {
            command_line: Placed {
                config: command_line,
                folder: absolute(Path::new("")),
            },
            named: named.map(named_file).transpose()?,
            by_folder: BTreeMap::new(),
        })
    }

    /// Reads the configuration that applies to a file, unless it is already known.
    pub fn learn(&mut self, file: &Path) -> Result<(), ConfigError> {
        if self.named.is_some() {
            return Ok(());
        }
        let file = absolute(file);
        let mut unknown = Vec::new();
        let mut found = None;
        for folder in file.ancestors().skip(1) {
            if let Some(known) = self.by_folder.get(folder) {
                found = known.clone();
                break;
            }
            unknown.push(folder.to_owned());
            let path = folder.join(FILE_NAME);
            // A file that cannot be read, or is not text, is ignored.
            if !path.is_file() {
                continue;
            }
            let Ok(text) = std::fs::read_to_string(&path) else {
                continue;
            };
            if let Some(config) = Config::read(&text).map_err(|error| in_file(&path, error))? {
                found = Some(Placed {
                    config,
                    folder: folder.to_owned(),
                });
                break;
            }
        }
        for folder in unknown {
            self.by_folder.insert(folder, found.clone());
        }
        Ok(())
    }

    /// Whether a file found in a folder is left out.
    pub fn excludes(&self, file: &Path) -> bool {
        let file = absolute(file);
        let excludes = |placed: &Placed| placed.config.excludes(below(&file, &placed.folder));
        excludes(&self.command_line) || self.of(&file).is_some_and(excludes)
    }

    pub fn settings(&self, file: &Path) -> Settings {
        let file = absolute(file);
        let none = Placed::default();
        let placed = self.of(&file).unwrap_or(&none);
        let path = below(&file, &placed.folder);
        placed.config.settings(path, &self.command_line.config)
    }

    pub fn fail_on(&self, file: &Path) -> FailOn {
        let of_file = || self.of(&absolute(file))?.config.fail_on;
        let of_command_line = self.command_line.config.fail_on;
        of_command_line.or_else(of_file).unwrap_or_default()
    }

    fn of(&self, file: &Path) -> Option<&Placed> {
        let of_folder = || self.by_folder.get(file.parent()?)?.as_ref();
        self.named.as_ref().or_else(of_folder)
    }
}

fn below<'a>(file: &'a Path, folder: &Path) -> &'a Path {
    file.strip_prefix(folder).unwrap_or(file)
}

fn absolute(path: &Path) -> PathBuf {
    let path = match path.as_os_str().is_empty() {
        true => Path::new("."),
        false => path,
    };
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    normal(&path)
}

/// The configuration of a file that the user named, which must contain our section.
fn named_file(path: &Path) -> Result<Placed, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| ConfigError::new(format!("cannot read `{}`: {error}", path.display())))?;
    let config = Config::read(&text).map_err(|error| in_file(path, error))?;
    let config = config.ok_or_else(|| {
        let path = path.display();
        ConfigError::new(format!("`{path}` has no section `[tool.ghostgpu.lint]`"))
    })?;
    Ok(Placed {
        config,
        folder: absolute(path.parent().unwrap_or(Path::new(""))),
    })
}

fn in_file(path: &Path, error: ConfigError) -> ConfigError {
    ConfigError {
        message: format!("{}: {}", path.display(), error.message),
        ..error
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ghostgpu_lint::config::patterns;

    const ON_ERRORS: &str = "[tool.ghostgpu.lint]\nfail-on = \"error\"\n";
    const NEVER: &str = "[tool.ghostgpu.lint]\nfail-on = \"never\"\n";

    fn configurations(command_line: Config) -> Configurations {
        Configurations::new(command_line, None).expect("no file is named")
    }

    #[test]
    fn the_nearest_file_with_a_section_of_ours_holds() {
        let root = tempfile::tempdir().expect("folder");
        let inner = root.path().join("project/sub");
        std::fs::create_dir_all(&inner).expect("folders");
        let file = inner.join("train.py");
        std::fs::write(root.path().join(FILE_NAME), NEVER).expect("file");
        std::fs::write(inner.join(FILE_NAME), "[tool.ruff]\n").expect("file");
        let mut far = configurations(Config::default());
        far.learn(&file).expect("fine");
        assert_eq!(far.fail_on(&file), FailOn::Never);
        std::fs::write(root.path().join("project").join(FILE_NAME), ON_ERRORS).expect("file");
        let mut near = configurations(Config::default());
        near.learn(&file).expect("fine");
        assert_eq!(Some(near.fail_on(&file)), FailOn::from_word("error"));
    }

    #[test]
    fn the_command_line_comes_before_any_file() {
        let root = tempfile::tempdir().expect("folder");
        let file = root.path().join("train.py");
        std::fs::write(root.path().join(FILE_NAME), ON_ERRORS).expect("file");
        let mut typed = configurations(Config {
            fail_on: Some(FailOn::Never),
            ..Config::default()
        });
        typed.learn(&file).expect("fine");
        assert_eq!(typed.fail_on(&file), FailOn::Never);
    }

    #[test]
    fn patterns_start_from_the_folder_of_their_file() {
        let root = tempfile::tempdir().expect("folder");
        let text = "[tool.ghostgpu.lint]\nexclude = [\"old/*\"]\n";
        std::fs::write(root.path().join(FILE_NAME), text).expect("file");
        let mut known = configurations(Config {
            exclude: patterns("--exclude", &["old/*".to_owned()]).expect("valid"),
            ..Config::default()
        });
        let old = root.path().join("old/train.py");
        known.learn(&old).expect("fine");
        assert!(known.excludes(&old));
        assert!(!known.excludes(&root.path().join("new/train.py")));
    }

    #[test]
    fn a_named_file_has_to_say_something_and_a_wrong_one_is_named() {
        let root = tempfile::tempdir().expect("folder");
        let path = root.path().join("lint.toml");
        let refused = || {
            let error = Configurations::new(Config::default(), Some(&path)).expect_err("refused");
            error.message
        };
        assert!(refused().starts_with("cannot read"));
        std::fs::write(&path, "[tool.ruff]\n").expect("file");
        assert!(refused().ends_with("has no section `[tool.ghostgpu.lint]`"));
        std::fs::write(&path, "[tool.ghostgpu.lint]\nfast = true\n").expect("file");
        assert!(refused().contains("lint.toml: "));
    }
}
