//! The options that choose where an answer goes and in which form, the same in every command.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ghostgpu_answers::{Style, in_json};
use serde::Serialize;

use crate::failure::Failure;
use crate::output::{Output, print_beside, stream_beside};
use crate::terminal::{self, Stream};

#[derive(Clone, Debug, Default, clap::Args)]
pub struct AnswerOptions {
    /// Write the answer as JSON, to this file or to standard output
    #[arg(
        long,
        value_name = "FILE.json",
        num_args = 0..=1,
        default_missing_value = "-",
        value_parser = parse_json_file,
    )]
    pub json: Option<PathBuf>,

    /// Write the answer to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Commands that run no script, so all words are their own.
const WITHOUT_SCRIPT: [&str; 9] = [
    "doctor", "estimate", "explain", "gpus", "lint", "replay", "report", "snapshot", "tricks",
];

/// Makes `--json` unambiguous: in `explain --json error.log`, the log is not its value.
///
/// clap takes the next word as the value of an option with an optional value. If a script follows, only a name that ends
/// in `.json` is a value, and anything else is refused.
pub fn with_clear_json(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.collect();
    // Options before the command, such as `-q`, take no value.
    let command = words.iter().skip(1).filter_map(|word| word.to_str());
    let command = command.into_iter().find(|word| !word.starts_with('-'));
    if !command.is_some_and(|word| WITHOUT_SCRIPT.contains(&word)) {
        return words;
    }
    let end = words.iter().position(|word| word == "--");
    for index in 0..end.unwrap_or(words.len()) {
        let next = words.get(index + 1).and_then(|word| word.to_str());
        if words[index] == "--json" && next.is_none_or(|name| parse_json_file(name).is_err()) {
            words[index] = "--json=-".into();
        }
    }
    words
}

/// Only names that end in `.json`: `--json train.py` must not take the script for its file.
fn parse_json_file(name: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(name);
    let is_json = path
        .extension()
        .is_some_and(|extension| extension == "json");
    let is_special = name == "-" || name.starts_with("/dev/");
    match is_json || is_special {
        true => Ok(path),
        false => Err(
            "the file's name must end in `.json`; to print JSON, put --json before another option, \
             or write --json=-"
                .to_owned(),
        ),
    }
}

impl AnswerOptions {
    /// Makes sure that all files can be written, before anything else is done.
    pub fn prepare(&self) -> Result<Destination, Failure> {
        let is_bare = self.json.as_deref() == Some(Path::new("-"));
        let (json, file) = match (&self.json, &self.out) {
            (Some(_), Some(out)) if is_bare => (Some(out), None),
            (json, out) => (json.as_ref(), out.as_ref()),
        };
        let prepare = |path: Option<&PathBuf>| path.map(|path| Output::prepare(path)).transpose();
        Ok(Destination {
            json: prepare(json)?,
            file: prepare(file)?.filter(|output| !output.is_stdout()),
            text: String::new(),
        })
    }
}

/// Where an answer goes, ready to be written.
#[derive(Debug)]
pub struct Destination {
    json: Option<Output>,
    /// The file for the text, instead of standard output.
    file: Option<Output>,
    /// The text for that file so far.
    text: String,
}

impl Destination {
    /// The stream for a script's output, and for text that is not written to a file.
    pub fn stream(&self) -> Stream {
        stream_beside(self.json.as_ref())
    }

    pub fn style<'a>(&self, current_dir: Option<&'a Path>) -> Style<'a> {
        match self.file {
            Some(_) => terminal::style_of_file(current_dir),
            None => terminal::style(self.stream(), current_dir),
        }
    }

    /// Adds a part of the answer: printed at once, unless a file gets the whole text at the end.
    pub fn say(&mut self, text: &str) -> anyhow::Result<()> {
        match self.file {
            Some(_) => {
                self.text.push_str(text);
                Ok(())
            }
            None => print_beside(self.json.as_ref(), text),
        }
    }

    /// Writes the requested files; `document` is called only for JSON.
    pub fn finish(
        self,
        document: impl FnOnce() -> serde_json::Result<String>,
    ) -> anyhow::Result<()> {
        if let Some(file) = self.file {
            file.write(&self.text)?;
        }
        match self.json {
            Some(json) => json.write(&document()?),
            None => Ok(()),
        }
    }

    /// Publishes an answer that took a rehearsal: if JSON goes to standard output, the text goes to standard error, like
    /// the script's output.
    pub fn publish(mut self, text: &str, document: &impl Serialize) -> anyhow::Result<()> {
        self.say(text)?;
        self.finish(|| in_json(document))
    }

    /// Publishes an answer from files: if JSON goes to standard output, it replaces the text.
    pub fn answer(
        mut self,
        text: impl FnOnce(Style) -> String,
        document: impl FnOnce() -> serde_json::Result<String>,
    ) -> anyhow::Result<()> {
        let is_said = self.file.is_some() || self.stream() == Stream::Output;
        if is_said {
            let current_dir = std::env::current_dir().ok();
            let text = text(self.style(current_dir.as_deref()));
            self.say(&text)?;
        }
        self.finish(document)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        answer: AnswerOptions,
        #[arg(long)]
        other: bool,
        file: Option<PathBuf>,
    }

    fn parse(line: &str) -> Result<Line, clap::Error> {
        Line::try_parse_from(line.split(' '))
    }

    #[test]
    fn json_goes_to_a_file_or_to_standard_output() {
        for (line, json, out, file) in [
            ("x --json out.json log", Some("out.json"), None, Some("log")),
            ("x --json --other log", Some("-"), None, Some("log")),
            ("x log --json", Some("-"), None, Some("log")),
            ("x --json=- log", Some("-"), None, Some("log")),
            (
                "x --json -o a.txt log",
                Some("-"),
                Some("a.txt"),
                Some("log"),
            ),
            ("x -o a.txt log", None, Some("a.txt"), Some("log")),
        ] {
            let parsed = parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
            let path = |text: Option<&str>| text.map(PathBuf::from);
            assert_eq!(parsed.answer.json, path(json), "{line}");
            assert_eq!(parsed.answer.out, path(out), "{line}");
            assert_eq!(parsed.file, path(file), "{line}");
        }
    }

    #[test]
    fn a_script_is_never_taken_for_the_file_that_json_goes_to() {
        let error = parse("x --json train.py")
            .err()
            .expect("refused")
            .to_string();
        assert!(error.contains("must end in `.json`"), "{error}");
    }

    #[test]
    fn a_file_that_is_read_is_not_taken_for_it_either() {
        let clear = |line: &str| {
            let words = with_clear_json(line.split(' ').map(OsString::from));
            let words: Vec<String> = words
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect();
            words.join(" ")
        };
        for (line, expected) in [
            (
                "ghostgpu explain --json error.log",
                "ghostgpu explain --json=- error.log",
            ),
            (
                "ghostgpu explain --json a.json error.log",
                "ghostgpu explain --json a.json error.log",
            ),
            ("ghostgpu gpus --json", "ghostgpu gpus --json=-"),
            (
                "ghostgpu -q explain --json error.log",
                "ghostgpu -q explain --json=- error.log",
            ),
            (
                "ghostgpu lint --json src -- --json x",
                "ghostgpu lint --json=- src -- --json x",
            ),
            (
                "ghostgpu run --gpu t4 train.py --json x",
                "ghostgpu run --gpu t4 train.py --json x",
            ),
        ] {
            assert_eq!(clear(line), expected);
        }
    }

    #[test]
    fn text_and_json_can_go_to_a_file_each() {
        let folder = tempfile::tempdir().expect("folder");
        let options = AnswerOptions {
            json: Some(folder.path().join("a.json")),
            out: Some(folder.path().join("a.txt")),
        };
        let destination = options.prepare().expect("writable");
        destination
            .answer(|_| "fits\n".to_owned(), || in_json(&[1]))
            .expect("written");
        let read = |name| std::fs::read_to_string(folder.path().join(name)).expect("a file");
        assert_eq!(read("a.txt"), "fits\n");
        assert_eq!(read("a.json"), "[\n  1\n]\n");
    }
}
