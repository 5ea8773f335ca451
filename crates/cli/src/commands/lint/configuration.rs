//! Which configuration holds for which file: the nearest `pyproject.toml` with a section of ours.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ghostgpu_lint::config::{patterns, rules};
use ghostgpu_lint::{Config, ConfigError, FailOn, Settings};

use super::Arguments;
use crate::failure::Failure;

const FILE_NAME: &str = "pyproject.toml";

/// A configuration and the folder that its patterns start from.
#[derive(Debug, Clone, Default)]
struct Placed {
    config: Config,
    folder: PathBuf,
}

/// The configurations of all files, and the command line's own words.
#[derive(Debug)]
pub struct Configurations {
    command_line: Placed,
    /// Named with `--config`: holds for every file.
    named: Option<Placed>,
    /// By folder; nothing where no file above says anything.
    by_folder: BTreeMap<PathBuf, Option<Placed>>,
}

impl Configurations {
    /// Of the command line alone; [`Self::learn`] reads files.
    pub fn new(arguments: &Arguments) -> Result<Self, Failure> {
        let named = match &arguments.config {
            None => None,
            Some(path) => {
                let text = std::fs::read_to_string(path).map_err(|error| {
                    Failure::new(format!("cannot read `{}`: {error}", path.display()))
                })?;
                let config = Config::read(&text).map_err(|error| failure(path, error))?;
                let Some(config) = config else {
                    return Err(Failure::new(format!(
                        "`{}` has no section `[tool.ghostgpu.lint]`",
                        path.display()
                    )));
                };
                Some(Placed {
                    config,
                    folder: absolute(path.parent().unwrap_or(Path::new(""))),
                })
            }
        };
        let select = match arguments.select.as_slice() {
            [] => None,
            names => Some(rules("--select", names).map_err(usage)?),
        };
        Ok(Self {
            command_line: Placed {
                config: Config {
                    select,
                    ignore: rules("--ignore", &arguments.ignore).map_err(usage)?,
                    exclude: patterns("--exclude", &arguments.exclude).map_err(usage)?,
                    fail_on: arguments.fail_on,
                    ..Config::default()
                },
                folder: absolute(Path::new("")),
            },
            named,
            by_folder: BTreeMap::new(),
        })
    }

    /// Reads what holds for a file, unless that is known.
    pub fn learn(&mut self, file: &Path) -> Result<(), Failure> {
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
            // A file that cannot be read, or is no text, cannot be meant for us.
            if !path.is_file() {
                continue;
            }
            let Ok(text) = std::fs::read_to_string(&path) else {
                continue;
            };
            if let Some(config) = Config::read(&text).map_err(|error| failure(&path, error))? {
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
    ghostgpu_lint_files::normal(&path)
}

fn failure(path: &Path, error: ConfigError) -> Failure {
    let failure = Failure::new(format!("{}: {}", path.display(), error.message));
    match error.hint {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    }
}

fn usage(error: ConfigError) -> Failure {
    let failure = Failure::new(error.message);
    match error.hint {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    }
}
