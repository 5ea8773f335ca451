//! Tricks written into a script and its configuration files, as a diff.

use std::ffi::OsString;
use std::path::Path;

use ghostgpu_emission::{NotMechanical, Refused, accelerate_config, deepspeed, patch};
use ghostgpu_lint::diff;
use ghostgpu_tricks::Request;

use crate::failure::Failure;
use crate::output::Output;
use crate::terminal;

/// Tricks as a patch.
pub struct Patched {
    /// For `patch -p0` in the current folder.
    pub diff: String,
    /// A line for each trick.
    pub notes: Vec<String>,
}

/// Writes tricks into the script of a command, and into the configuration files that it is given:
/// DeepSpeed's and Accelerate's.
pub fn patch_command(command: &[OsString], tricks: &[Request]) -> Result<Patched, Failure> {
    let script = script_of(command)?;
    let text = read(script)?;
    let mut configurations = configurations_of(command);
    let mut of_script = Vec::new();
    let mut notes = Vec::new();
    for request in tricks {
        let written = configurations
            .iter_mut()
            .find_map(|file| Some((file.write(request)?, file.path.clone())));
        match written {
            // `Trainer` checks its own arguments against the file, so the script must be changed as well.
            Some(((), _)) if text.contains("TrainingArguments(") => of_script.push(request.clone()),
            Some(((), path)) => notes.push(format!("{}: in {path}", request.name)),
            None => of_script.push(request.clone()),
        }
    }
    let patch = patch(script, &text, &of_script).map_err(|refused| failure(script, refused))?;
    notes.extend(patch.changes.iter().map(|change| {
        let there = if change.was_there {
            " (there already)"
        } else {
            ""
        };
        format!("{}: {}{there}", change.trick, change.what)
    }));
    let mut all = patch.diff;
    for file in configurations {
        all.push_str(&diff::unified(&file.path, &file.before, &file.text));
    }
    Ok(Patched { diff: all, notes })
}

/// Writes a diff, and prints what it contains.
pub fn show(patched: &Patched, path: &Path) -> anyhow::Result<()> {
    let output = Output::prepare(path)?;
    let is_stdout = output.is_stdout();
    output.write(&patched.diff)?;
    for note in &patched.notes {
        terminal::note(note);
    }
    match patched.diff.is_empty() {
        true => terminal::note("the script has all of it already: the diff is empty"),
        false if is_stdout => {}
        false => terminal::note(format!("apply it with: patch -p0 < {}", path.display())),
    }
    Ok(())
}

/// The script among the words of a command: the first that is a Python file.
fn script_of(command: &[OsString]) -> Result<&str, Failure> {
    let words = command.iter().filter_map(|word| word.to_str());
    let has_ending = |word: &&str, ending: &str| {
        let own = Path::new(word).extension().and_then(|it| it.to_str());
        own == Some(ending)
    };
    if let Some(script) = words.clone().find(|word| has_ending(word, "py")) {
        return Ok(script);
    }
    let hint = "name the script itself: `ghostgpu launch --patch fix.diff train.py`";
    Err(match words.clone().any(|word| has_ending(&word, "ipynb")) {
        true => Failure::new("a notebook cannot be patched")
            .with_hint("`ghostgpu launch` applies tricks to a notebook without a change to it"),
        false => Failure::new("there is no Python file to write tricks into").with_hint(hint),
    })
}

fn read(path: &str) -> Result<String, Failure> {
    let bytes = std::fs::read(path)
        .map_err(|error| Failure::new(format!("cannot read {path}: {error}")))?;
    String::from_utf8(bytes).map_err(|_| Failure::new(format!("{path} is not UTF-8")))
}

fn failure(script: &str, refused: Refused) -> Failure {
    match refused {
        Refused::NotMechanical(refused) => {
            let hint = refused.alternative();
            Failure::new(format!("{script}: {refused}")).with_hint(hint)
        }
        Refused::NotPython { .. } => Failure::new(format!("{script}: {refused}"))
            .with_hint("only a script that Python can read is edited"),
    }
}

/// A configuration file among the words of a command.
struct Configuration {
    path: String,
    before: String,
    text: String,
    edit: fn(&str, &[Request]) -> Result<String, NotMechanical>,
}

impl Configuration {
    /// Writes a trick into it; `None` if it has no key for it.
    fn write(&mut self, request: &Request) -> Option<()> {
        self.text = (self.edit)(&self.text, std::slice::from_ref(request)).ok()?;
        Some(())
    }
}

/// Files among the words of a command that are DeepSpeed's or Accelerate's by their keys.
fn configurations_of(command: &[OsString]) -> Vec<Configuration> {
    let words = command.iter().filter_map(|word| word.to_str());
    let paths = words.map(|word| word.rsplit('=').next().unwrap_or(word));
    let found = paths.filter_map(|path| {
        let ending = Path::new(path).extension()?.to_str()?;
        if !matches!(ending, "json" | "yaml" | "yml") {
            return None;
        }
        let text = std::fs::read_to_string(path).ok()?;
        let edit: fn(&str, &[Request]) -> Result<String, NotMechanical> = match ending {
            "json" if deepspeed::is_configuration(&text) => deepspeed::edited,
            "yaml" | "yml" if accelerate_config::is_configuration(&text) => {
                |text, tricks| accelerate_config::edited(Some(text), tricks)
            }
            _ => return None,
        };
        Some(Configuration {
            path: path.to_owned(),
            before: text.clone(),
            text,
            edit,
        })
    });
    found.collect()
}
