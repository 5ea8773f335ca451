//! Requested tricks, which are checked before anything runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::catalogue::{Catalogue, FlagValue, OptionSheet, OptionType, Trick};

/// A trick: its name in the catalogue, and its options as text. Missing options have the catalogue's defaults.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    pub name: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
}

/// Why tricks cannot be applied, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Refusal {
    pub reason: String,
    pub alternative: String,
}

impl Refusal {
    pub(crate) fn new(reason: impl Into<String>, alternative: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            alternative: alternative.into(),
        }
    }
}

impl Request {
    /// A trick with all options at their defaults.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            options: BTreeMap::new(),
        }
    }

    /// The request of a command-line flag; the value is empty for a flag without one.
    pub fn of_flag(flag: &str, value: &str) -> Result<Self, Refusal> {
        let tricks: Vec<&Trick> = Catalogue::builtin()
            .tricks
            .iter()
            .filter(|trick| trick.flag == flag)
            .collect();
        let by_word = tricks
            .iter()
            .find(|trick| matches!(&trick.value, Some(FlagValue::Word { word }) if word == value));
        if let Some(trick) = by_word {
            return Ok(Self::named(&trick.name));
        }
        for trick in &tricks {
            match &trick.value {
                None => return Ok(Self::named(&trick.name)),
                Some(FlagValue::Word { .. }) => {}
                Some(FlagValue::Option { option, .. }) => {
                    let choices = trick.option(option).map(|sheet| &sheet.choices[..]);
                    let is_choice = choices.is_some_and(|all| all.iter().any(|it| it == value));
                    if tricks.len() == 1 || is_choice {
                        let mut request = Self::named(&trick.name);
                        if !value.is_empty() {
                            request.options.insert(option.clone(), value.to_owned());
                        }
                        return Ok(request);
                    }
                }
            }
        }
        let words: Vec<String> = tricks.iter().flat_map(|trick| words(trick)).collect();
        Err(Refusal::new(
            format!("`{value}` is no value of {flag}"),
            format!("it is one of {}", words.join(", ")),
        ))
    }

    /// The trick without its amount.
    pub fn without_amounts(&self) -> Self {
        let trick = Catalogue::builtin().find(&self.name);
        let is_amount = |name: &str| {
            let sheet = trick.and_then(|trick| trick.option(name));
            sheet.is_some_and(|sheet| sheet.kind.is_amount())
        };
        let mut kind = self.clone();
        kind.options.retain(|name, _| !is_amount(name));
        kind
    }

    /// The value of an option, given or by default.
    pub fn value<'a>(&'a self, option: &str) -> Option<&'a str> {
        if let Some(value) = self.options.get(option) {
            return Some(value);
        }
        let trick = Catalogue::builtin().find(&self.name)?;
        Some(&trick.option(option)?.default)
    }

    fn check(&self) -> Result<(), Refusal> {
        let Some(trick) = Catalogue::builtin().find(&self.name) else {
            let reason = format!("there is no trick `{}`", self.name);
            return Err(Refusal::new(reason, "`ghostgpu tricks` lists them"));
        };
        for (name, value) in &self.options {
            let Some(sheet) = trick.option(name) else {
                let names: Vec<&str> = trick.options.iter().map(|it| it.name.as_str()).collect();
                return Err(Refusal::new(
                    format!("the trick `{}` has no option `{name}`", self.name),
                    match names.is_empty() {
                        true => "it has none".to_owned(),
                        false => format!("its options: {}", names.join(", ")),
                    },
                ));
            };
            if let Some(problem) = problem(sheet, value) {
                return Err(Refusal::new(
                    format!(
                        "`{value}` cannot be the {name} of the trick `{}`: {problem}",
                        self.name
                    ),
                    sheet.help.clone(),
                ));
            }
        }
        Ok(())
    }
}

/// The values that select this trick among those that share its flag.
fn words(trick: &Trick) -> Vec<String> {
    match &trick.value {
        Some(FlagValue::Word { word }) => vec![word.clone()],
        Some(FlagValue::Option { option, .. }) => trick
            .option(option)
            .map(|sheet| sheet.choices.clone())
            .unwrap_or_default(),
        None => Vec::new(),
    }
}

/// What is wrong with a value; the same sentences as in `catalogue.py`.
fn problem(sheet: &OptionSheet, value: &str) -> Option<String> {
    match sheet.kind {
        OptionType::Count => {
            let is_count = value.bytes().all(|byte| byte.is_ascii_digit())
                && value.parse::<u64>().is_ok_and(|count| count >= 1);
            (!is_count).then(|| "it is a whole number from 1 on".to_owned())
        }
        OptionType::Choice => {
            let is_choice = sheet.choices.iter().any(|choice| choice == value);
            (!is_choice).then(|| format!("it is {}", sheet.choices.join(" or ")))
        }
        OptionType::Size => match bytes_of_size(value) {
            Some(_) => None,
            None => Some("it is a size such as 1MiB".to_owned()),
        },
        OptionType::AllocatorSettings => wrong_setting(value),
        OptionType::Blocks if value.parse() == Ok(0_u64) => {
            Some("checkpointing 0 blocks does nothing".to_owned())
        }
        OptionType::Blocks | OptionType::Text => {
            value.trim().is_empty().then(|| "it is empty".to_owned())
        }
    }
}

/// The bytes of a size such as `1MiB`, with the units that the tricks themselves read (`catalogue.py`).
pub fn bytes_of_size(size: &str) -> Option<u64> {
    let size = size.trim();
    let unit = size.trim_start_matches(|it: char| it.is_ascii_digit() || it == '.');
    let number = &size[..size.len() - unit.len()];
    let is_digit = |it: char| it.is_ascii_digit();
    if !number.starts_with(is_digit) || !number.ends_with(is_digit) {
        return None;
    }
    let number: f64 = number.parse().ok()?;
    let unit_bytes: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        _ => return None,
    };
    Some((number * unit_bytes as f64) as u64)
}

fn wrong_setting(settings: &str) -> Option<String> {
    let mut depth = 0_i32;
    let is_comma = |letter: char| {
        depth += i32::from(letter == '[') - i32::from(letter == ']');
        letter == ',' && depth == 0
    };
    settings.split(is_comma).find_map(|setting| {
        let is_right = setting.trim().split_once(':').is_some_and(|(name, value)| {
            let is_name = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_';
            !name.is_empty() && name.chars().all(is_name) && !value.trim().is_empty()
        });
        (!is_right).then(|| format!("`{}` is not of the form name:value", setting.trim()))
    })
}

/// Requests that are valid individually and together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests(Vec<Request>);

impl Requests {
    /// Refuses unknown, invalid, duplicate or conflicting requests. The result is in the order of the catalogue.
    pub fn checked(requests: Vec<Request>) -> Result<Self, Refusal> {
        for (place, request) in requests.iter().enumerate() {
            request.check()?;
            for other in &requests[..place] {
                exclude(other, request)?;
            }
        }
        let mut ordered = requests;
        let tricks = &Catalogue::builtin().tricks;
        ordered.sort_by_key(|request| tricks.iter().position(|it| it.name == request.name));
        Ok(Self(ordered))
    }

    pub fn as_slice(&self) -> &[Request] {
        &self.0
    }

    pub fn into_vec(self) -> Vec<Request> {
        self.0
    }
}

fn exclude(one: &Request, other: &Request) -> Result<(), Refusal> {
    if one.name == other.name {
        return Err(Refusal::new(
            format!("the trick `{}` is asked for twice", one.name),
            "leave one of them out",
        ));
    }
    let found = Catalogue::builtin()
        .conflicts_of(&one.name)
        .find(|(name, conflict)| {
            *name == other.name
                && conflict.when.iter().all(|(option, value)| {
                    [one, other]
                        .iter()
                        .any(|request| request.value(option) == Some(value))
                })
        });
    match found {
        None => Ok(()),
        Some((_, conflict)) => Err(Refusal::new(
            format!(
                "{} and {} exclude each other: {}",
                one.name, other.name, conflict.because
            ),
            conflict.instead.clone(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str) -> Request {
        let (name, options) = text.split_once(' ').unwrap_or((text, ""));
        let mut request = Request::named(name);
        for option in options.split_whitespace() {
            let (name, value) = option.split_once('=').expect("name=value");
            request.options.insert(name.to_owned(), value.to_owned());
        }
        request
    }

    fn checked(texts: &[&str]) -> Result<Requests, Refusal> {
        Requests::checked(texts.iter().map(|text| request(text)).collect())
    }

    #[test]
    fn a_trick_without_its_amount_is_the_same_in_every_amount() {
        let kind = |text: &str| request(text).without_amounts();
        for (one, other) in [
            ("chunking chunks=4", "chunking chunks=8"),
            ("checkpointing blocks=3", "checkpointing blocks=auto"),
            ("lora rank=4", "lora rank=8"),
        ] {
            assert_eq!(kind(one), kind(other));
        }
        assert_ne!(
            kind("checkpointing blocks=3 keep=matmuls"),
            kind("checkpointing blocks=3 keep=nothing")
        );
    }

    #[test]
    fn flags_become_requests() {
        for (flag, value, expected) in [
            ("--chunks", "4", "chunking chunks=4"),
            ("--amp", "fp16", "autocast dtype=fp16"),
            ("--inplace", "", "inplace-activations"),
            ("--optimizer", "fused", "optimizer-form form=fused"),
            ("--optimizer", "8bit", "eight-bit-optimizer"),
            ("--optimizer", "in-backward", "optimizer-in-backward"),
            ("--offload-activations", "", "offload-activations"),
            (
                "--offload-activations",
                "4MiB",
                "offload-activations threshold=4MiB",
            ),
        ] {
            assert_eq!(
                Request::of_flag(flag, value),
                Ok(request(expected)),
                "{flag} {value}"
            );
        }
        let refusal = Request::of_flag("--optimizer", "lion").expect_err("unknown");
        assert!(refusal.alternative.contains("adafactor"), "{refusal:?}");
    }

    #[test]
    fn wrong_values_are_refused_with_the_reason() {
        for (text, reason) in [
            ("chunking chunks=0", "a whole number from 1 on"),
            ("chunking chunks=+4", "a whole number from 1 on"),
            ("chunking pieces=4", "has no option `pieces`"),
            ("autocast dtype=fp8", "it is bf16 or fp16"),
            ("checkpointing blocks=0", "does nothing"),
            ("offload-activations threshold=much", "a size such as 1MiB"),
            (
                "allocator settings=expandable_segments",
                "not of the form name:value",
            ),
            ("chunky", "there is no trick `chunky`"),
        ] {
            let refusal = checked(&[text]).expect_err(text);
            assert!(refusal.reason.contains(reason), "{text}: {refusal:?}");
        }
        for text in [
            "checkpointing blocks=3",
            "checkpointing blocks=encoder.layer.*,Decoder",
            "offload-activations threshold=1.5MB",
            "allocator settings=expandable_segments:True,max_split_size_mb:128",
            "allocator settings=roundup_power2_divisions:[256:1,512:2,>:4]",
        ] {
            checked(&[text]).unwrap_or_else(|refusal| panic!("{text}: {refusal:?}"));
        }
    }

    #[test]
    fn tricks_that_exclude_each_other_are_refused_in_either_order() {
        for conflict in &Catalogue::builtin().conflicts {
            let with_options = |name: &String| {
                let mut request = Request::named(name);
                let trick = Catalogue::builtin().find(name).expect("in the catalogue");
                for (option, value) in &conflict.when {
                    if trick.option(option).is_some() {
                        request.options.insert(option.clone(), value.clone());
                    }
                }
                request
            };
            let pair: Vec<Request> = conflict.between.iter().map(with_options).collect();
            let reversed = pair.iter().rev().cloned().collect();
            for requests in [pair, reversed] {
                let refusal = Requests::checked(requests).expect_err("a conflict");
                assert!(refusal.reason.contains(&conflict.because), "{refusal:?}");
                assert_eq!(refusal.alternative, conflict.instead);
            }
        }
    }

    #[test]
    fn a_conflict_that_depends_on_an_option_holds_for_that_value_only() {
        assert!(checked(&["autocast dtype=fp16", "optimizer-in-backward"]).is_err());
        assert!(checked(&["autocast dtype=bf16", "optimizer-in-backward"]).is_ok());
        assert!(checked(&["autocast", "optimizer-in-backward"]).is_ok());
    }

    #[test]
    fn a_size_is_a_number_with_a_unit_that_python_knows_too() {
        for (size, expected) in [
            ("1MiB", Some(1 << 20)),
            ("1.5 MB", Some(1_500_000)),
            ("4096", Some(4096)),
            ("2GiB", Some(2 << 30)),
            (".5GiB", None),
            ("1.", None),
            ("1TiB", None),
            ("much", None),
        ] {
            assert_eq!(bytes_of_size(size), expected, "{size}");
        }
    }

    #[test]
    fn a_trick_is_asked_for_once_and_the_order_is_the_catalogues() {
        let twice = checked(&["chunking", "chunking chunks=3"]).expect_err("twice");
        assert!(twice.reason.contains("twice"));
        let ordered = checked(&["autocast", "checkpointing"]).expect("no conflict");
        assert_eq!(
            ordered,
            checked(&["checkpointing", "autocast"]).expect("no conflict")
        );
    }
}
