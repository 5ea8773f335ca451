//! The catalogue of tricks, from the file that Python reads too.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

const FILE: &str = include_str!("../../../python/ghostgpu/tricks/catalogue.json");

static BUILTIN: LazyLock<Catalogue> =
    LazyLock::new(|| serde_json::from_str(FILE).expect("a test reads the catalogue"));

/// All tricks, those closest to the model's own code first, and their conflicts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Catalogue {
    /// What each numeric class means, in words.
    pub numerics: BTreeMap<Numerics, String>,
    pub tricks: Vec<Trick>,
    pub conflicts: Vec<Conflict>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trick {
    pub name: String,
    pub summary: String,
    pub saves: String,
    pub costs: String,
    pub numerics: Numerics,
    /// The command-line flag. Several tricks may share one, with different values.
    pub flag: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<FlagValue>,
    pub options: Vec<OptionSheet>,
}

/// What a trick does to losses and gradients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Numerics {
    /// The same operations on the same numbers.
    Identical,
    /// The same mathematics in another order.
    Rounding,
    /// Fewer bits.
    Precision,
    /// Another training.
    Training,
}

impl fmt::Display for Numerics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Identical => "identical",
            Self::Rounding => "rounding",
            Self::Precision => "precision",
            Self::Training => "training",
        })
    }
}

/// What follows a flag.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum FlagValue {
    /// A word that selects the trick.
    Word { word: String },
    /// The value of an option.
    Option {
        option: String,
        /// How it is shown in help.
        shown: String,
        #[serde(default)]
        is_optional: bool,
    },
}

/// One option of a trick.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OptionSheet {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: OptionType,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    pub default: String,
    pub help: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OptionType {
    /// A whole number from 1 on.
    Count,
    Choice,
    Text,
    /// Bytes, with a unit.
    Size,
    /// `name:value,name:value`.
    AllocatorSettings,
    /// `auto`, a number, or names.
    Blocks,
}

impl OptionType {
    /// Whether it is the amount of a trick, rather than its manner.
    pub fn is_amount(self) -> bool {
        match self {
            Self::Count | Self::Size | Self::Blocks => true,
            Self::Choice | Self::Text | Self::AllocatorSettings => false,
        }
    }
}

/// Two tricks that cannot both be applied.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conflict {
    pub between: [String; 2],
    /// Only if options have these values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub when: BTreeMap<String, String>,
    pub because: String,
    /// What to do about it.
    pub instead: String,
}

impl Conflict {
    /// The other trick, if this is one of the two.
    pub fn other(&self, name: &str) -> Option<&str> {
        match &self.between {
            [one, other] if one == name => Some(other),
            [one, other] if other == name => Some(one),
            _ => None,
        }
    }
}

impl Catalogue {
    pub fn builtin() -> &'static Self {
        &BUILTIN
    }

    pub fn find(&self, name: &str) -> Option<&Trick> {
        self.tricks.iter().find(|trick| trick.name == name)
    }

    /// Every flag once, with the tricks that share it.
    pub fn flags(&self) -> Vec<(&str, Vec<&Trick>)> {
        let mut flags: Vec<(&str, Vec<&Trick>)> = Vec::new();
        for trick in &self.tricks {
            match flags.iter_mut().find(|(flag, _)| *flag == trick.flag) {
                Some((_, tricks)) => tricks.push(trick),
                None => flags.push((&trick.flag, vec![trick])),
            }
        }
        flags
    }

    pub fn conflicts_of<'a>(
        &'a self,
        name: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a Conflict)> {
        self.conflicts
            .iter()
            .filter_map(move |conflict| Some((conflict.other(name)?, conflict)))
    }
}

impl Trick {
    pub fn option(&self, name: &str) -> Option<&OptionSheet> {
        self.options.iter().find(|option| option.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflicts_are_between_tricks_that_exist_and_hold_in_both_directions() {
        let catalogue = Catalogue::builtin();
        assert!(!catalogue.conflicts.is_empty());
        for conflict in &catalogue.conflicts {
            let [one, other] = &conflict.between;
            assert_ne!(one, other);
            for (name, opposite) in [(one, other), (other, one)] {
                assert!(catalogue.find(name).is_some(), "{name}");
                let found = catalogue.conflicts_of(name).any(|(it, _)| it == opposite);
                assert!(found, "{name} and {opposite}");
            }
            for (option, value) in &conflict.when {
                let described = [one, other]
                    .iter()
                    .filter_map(|name| catalogue.find(name)?.option(option))
                    .any(|sheet| sheet.choices.contains(value));
                assert!(described, "{option} = {value}");
            }
        }
    }

    #[test]
    fn no_pair_stands_twice_and_no_name_either() {
        let catalogue = Catalogue::builtin();
        let mut pairs: Vec<_> = catalogue
            .conflicts
            .iter()
            .map(|conflict| {
                let mut pair = conflict.between.clone();
                pair.sort();
                pair
            })
            .collect();
        let mut names: Vec<_> = catalogue.tricks.iter().map(|trick| &trick.name).collect();
        for count in [pairs.len(), names.len()] {
            assert!(count > 0);
        }
        let (pair_count, name_count) = (pairs.len(), names.len());
        pairs.sort();
        pairs.dedup();
        names.sort();
        names.dedup();
        assert_eq!((pairs.len(), names.len()), (pair_count, name_count));
    }

    #[test]
    fn values_of_flags_lead_to_options_and_a_shared_flag_tells_its_tricks_apart() {
        for (flag, tricks) in Catalogue::builtin().flags() {
            assert!(flag.starts_with("--"), "{flag}");
            for trick in &tricks {
                let Some(value) = &trick.value else {
                    assert_eq!(tricks.len(), 1, "{flag}");
                    continue;
                };
                if let FlagValue::Option { option, .. } = value {
                    let sheet = trick.option(option).expect("described");
                    let is_told_apart = tricks.len() == 1 || sheet.kind == OptionType::Choice;
                    assert!(is_told_apart, "{flag}");
                }
            }
        }
    }

    #[test]
    fn every_numeric_class_is_explained_and_used() {
        let catalogue = Catalogue::builtin();
        for class in [
            Numerics::Identical,
            Numerics::Rounding,
            Numerics::Precision,
            Numerics::Training,
        ] {
            assert!(catalogue.numerics.contains_key(&class));
            assert!(catalogue.tricks.iter().any(|trick| trick.numerics == class));
        }
    }
}
