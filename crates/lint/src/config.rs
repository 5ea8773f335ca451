//! The configuration in `[tool.ghostgpu.lint]` of a `pyproject.toml`. Text in, plain data out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use toml::{Table, Value};

use crate::all_rules;
use crate::finding::Severity;
use crate::names;
use crate::pattern::Pattern;
use crate::rules::Rule;
use crate::settings::{FailOn, Settings};

const KEYS: [&str; 6] = [
    "exclude",
    "fail-on",
    "ignore",
    "per-file-ignores",
    "select",
    "severity",
];

/// The settings from a configuration file or the command line.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// Only these rules; all if empty.
    pub select: Option<Vec<&'static Rule>>,
    pub ignore: Vec<&'static Rule>,
    pub per_file_ignores: Vec<(Pattern, Vec<&'static Rule>)>,
    pub exclude: Vec<Pattern>,
    pub severities: BTreeMap<&'static str, Severity>,
    pub fail_on: Option<FailOn>,
}

/// What is wrong with a configuration, and what may help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    pub message: String,
    pub hint: Option<String>,
}

impl ConfigError {
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: None,
        }
    }
}

impl Config {
    /// Reads the text of a `pyproject.toml`; `None` if it has no section for lint.
    pub fn read(text: &str) -> Result<Option<Self>, ConfigError> {
        // A `pyproject.toml` in a project template may not be valid TOML.
        if !text.contains("ghostgpu") {
            return Ok(None);
        }
        let document: Table = toml::from_str(text).map_err(|error| {
            let line = error
                .span()
                .map(|span| text[..span.start].lines().count().max(1));
            let place = line
                .map(|line| format!("line {line}: "))
                .unwrap_or_default();
            ConfigError::new(format!("{place}{}", error.message()))
        })?;
        let mut value = Value::Table(document);
        for key in ["tool", "ghostgpu"] {
            let Some(inner) = value.as_table_mut().and_then(|table| table.remove(key)) else {
                return Ok(None);
            };
            value = inner;
        }
        let Value::Table(mut ours) = value else {
            return Err(ConfigError::new("`tool.ghostgpu` is no table"));
        };
        let lint = ours.remove("lint");
        if let Some(key) = ours.keys().next() {
            return Err(unknown_key("tool.ghostgpu", key, &["lint"]));
        }
        match lint {
            None => Ok(None),
            Some(Value::Table(table)) => Self::of_table(&table).map(Some),
            Some(_) => Err(ConfigError::new("`tool.ghostgpu.lint` is no table")),
        }
    }

    fn of_table(table: &Table) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        for (key, value) in table {
            match key.as_str() {
                "select" => config.select = Some(rules(key, &strings(key, value)?)?),
                "ignore" => config.ignore = rules(key, &strings(key, value)?)?,
                "exclude" => config.exclude = patterns(key, &strings(key, value)?)?,
                "fail-on" => config.fail_on = Some(fail_on(key, value)?),
                "severity" => config.severities = severities(key, value)?,
                "per-file-ignores" => config.per_file_ignores = per_file(key, value)?,
                _ => return Err(unknown_key("tool.ghostgpu.lint", key, &KEYS)),
            }
        }
        Ok(config)
    }

    /// Whether a file found in a folder is excluded; its path is relative to the configuration's folder.
    pub fn excludes(&self, path: &Path) -> bool {
        self.exclude.iter().any(|pattern| pattern.matches(path))
    }

    /// The settings for one file (its path as in [`Self::excludes`]). A selection on the command line
    /// replaces the configured one; ignored rules are added.
    pub fn settings(&self, path: &Path, command_line: &Self) -> Settings {
        let select = command_line.select.as_ref().or(self.select.as_ref());
        let listed = |list: &[&Rule], rule: &Rule| list.iter().any(|it| it.name == rule.name);
        let off: BTreeSet<&'static str> = all_rules()
            .filter(|rule| {
                let is_left_out = match select {
                    Some(list) => !listed(list, rule),
                    None => !rule.is_on_by_default(),
                };
                let is_ignored_here = self
                    .per_file_ignores
                    .iter()
                    .any(|(pattern, list)| listed(list, rule) && pattern.matches(path));
                is_left_out
                    || is_ignored_here
                    || listed(&self.ignore, rule)
                    || listed(&command_line.ignore, rule)
            })
            .map(|rule| rule.name)
            .collect();
        Settings {
            off,
            severities: self.severities.clone(),
        }
    }
}

/// The rules that names refer to; `place` is where the names come from.
pub fn rules(place: &str, listed: &[String]) -> Result<Vec<&'static Rule>, ConfigError> {
    let mut rules = Vec::new();
    for name in listed {
        let Some(mut called) = names::rules_called(name.trim()) else {
            return Err(ConfigError {
                message: format!("`{place}`: unknown rule `{name}`"),
                hint: Some(match names::closest(name) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => "`ghostgpu lint --rules` lists the rules".to_owned(),
                }),
            });
        };
        rules.append(&mut called);
    }
    Ok(rules)
}

/// The patterns of the given texts.
pub fn patterns(place: &str, texts: &[String]) -> Result<Vec<Pattern>, ConfigError> {
    let pattern = |text: &String| {
        Pattern::new(text).map_err(|reason| {
            ConfigError::new(format!(
                "`{place}`: `{text}` is not a valid pattern: {reason}"
            ))
        })
    };
    texts.iter().map(pattern).collect()
}

fn strings(key: &str, value: &Value) -> Result<Vec<String>, ConfigError> {
    let wrong = || ConfigError {
        message: format!("`{key}` is not a list of strings"),
        hint: Some(format!("write `{key} = [\"…\", \"…\"]`")),
    };
    let list = value.as_array().ok_or_else(wrong)?;
    list.iter()
        .map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong))
        .collect()
}

fn fail_on(key: &str, value: &Value) -> Result<FailOn, ConfigError> {
    let word = value.as_str().unwrap_or_default();
    FailOn::from_word(word).ok_or_else(|| wrong_word(key, value, &FailOn::WORDS))
}

fn severities(key: &str, value: &Value) -> Result<BTreeMap<&'static str, Severity>, ConfigError> {
    let mut severities = BTreeMap::new();
    for (name, value) in table(key, value)? {
        let severity = match value.as_str() {
            Some("note") => Severity::Note,
            Some("warning") => Severity::Warning,
            Some("error") => Severity::Error,
            _ => {
                let place = format!("{key}.{name}");
                return Err(wrong_word(&place, value, &["note", "warning", "error"]));
            }
        };
        for rule in rules(key, std::slice::from_ref(name))? {
            severities.insert(rule.name, severity);
        }
    }
    Ok(severities)
}

type PerFile = Vec<(Pattern, Vec<&'static Rule>)>;

fn per_file(key: &str, value: &Value) -> Result<PerFile, ConfigError> {
    let mut list = Vec::new();
    for (text, names) in table(key, value)? {
        let pattern = patterns(key, std::slice::from_ref(text))?.remove(0);
        list.push((pattern, rules(key, &strings(text, names)?)?));
    }
    Ok(list)
}

fn table<'a>(key: &str, value: &'a Value) -> Result<&'a Table, ConfigError> {
    let wrong = || ConfigError::new(format!("`{key}` is no table"));
    value.as_table().ok_or_else(wrong)
}

fn wrong_word(place: &str, value: &Value, words: &[&str]) -> ConfigError {
    ConfigError {
        message: format!("`{place}`: invalid value `{value}`"),
        hint: Some(format!("expected one of {}", words.join(", "))),
    }
}

fn unknown_key(place: &str, key: &str, known: &[&str]) -> ConfigError {
    let candidates = known.iter().map(|&name| name.to_owned());
    ConfigError {
        message: format!("`{place}`: unknown key `{key}`"),
        hint: Some(match names::closest_of(key, candidates) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("it has {}", known.join(", ")),
        }),
    }
}

#[cfg(test)]
mod tests;
