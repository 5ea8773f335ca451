//! Finds a card by the name that people type, and suggests cards if there is none of that name.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::catalogue::Card;

/// Words in product names that do not distinguish cards.
const SERIES_WORDS: [&str; 9] = [
    "nvidia",
    "geforce",
    "tesla",
    "quadro",
    "gtx",
    "rtx",
    "generation",
    "edition",
    "gpu",
];

/// How many cards an error suggests.
const SUGGESTIONS: usize = 3;

/// Why a name does not identify a card.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LookupError {
    #[error("the card name is empty")]
    Empty,
    #[error("unknown card `{name}`")]
    Unknown {
        name: String,
        /// The nearest cards, best first; each is found by this name.
        nearest: Vec<String>,
    },
    #[error("`{name}` is made by {vendor}, and only NVIDIA cards run CUDA")]
    NotCuda { name: String, vendor: &'static str },
    #[error(
        "`{name}` has compute capability {capability}, for which current CUDA and PyTorch have no \
         code"
    )]
    TooOld {
        name: String,
        capability: &'static str,
    },
}

impl LookupError {
    /// What to do next, for the `hint:` line.
    pub fn hint(&self) -> String {
        match self {
            Self::Unknown { nearest, .. } if !nearest.is_empty() => {
                let quoted: Vec<String> = nearest.iter().map(|name| format!("`{name}`")).collect();
                let (last, others) = quoted.split_last().expect("checked to be non-empty");
                if others.is_empty() {
                    format!("did you mean {last}? `ghostgpu gpus` lists all cards")
                } else {
                    format!(
                        "did you mean {} or {last}? `ghostgpu gpus` lists all cards",
                        others.join(", ")
                    )
                }
            }
            _ => "`ghostgpu gpus` lists all cards".to_owned(),
        }
    }
}

/// Every name in the catalogue, in the form that lookups compare.
#[derive(Debug)]
pub(crate) struct NameIndex {
    /// From key to position in the catalogue.
    cards_by_key: BTreeMap<String, usize>,
}

impl NameIndex {
    /// Indexes the names of `cards`.
    ///
    /// An alias is deliberate and takes precedence over everything else. Our own names come next, then the
    /// driver's, which several cards can share, and last all of these with the card's memory
    /// appended (`3090-24gb`).
    pub(crate) fn new(cards: &[Card]) -> Self {
        let mut cards_by_key = BTreeMap::new();
        let mut claim = |key: String, index: usize| {
            cards_by_key.entry(key).or_insert(index);
        };
        for (index, card) in cards.iter().enumerate() {
            card.aliases
                .iter()
                .for_each(|alias| claim(key(alias), index));
        }
        for (index, card) in cards.iter().enumerate() {
            claim(key(card.name), index);
        }
        for (index, card) in cards.iter().enumerate() {
            claim(key(card.driver_name), index);
        }
        for (index, card) in cards.iter().enumerate() {
            for name in names(card) {
                claim(format!("{}{}", key(name), card.board_gib), index);
            }
        }
        Self { cards_by_key }
    }

    /// The position of the card that `name` means.
    pub(crate) fn find(&self, name: &str, cards: &[Card]) -> Result<usize, LookupError> {
        let typed = name.trim();
        let wanted = key(typed);
        if wanted.is_empty() {
            return Err(LookupError::Empty);
        }
        if let Some(&index) = self.cards_by_key.get(&wanted) {
            return Ok(index);
        }
        if let Some(index) = self.find_with_short_unit(&wanted, cards) {
            return Ok(index);
        }
        let name = typed.to_owned();
        if let Some(vendor) = vendor_without_cuda(typed) {
            return Err(LookupError::NotCuda { name, vendor });
        }
        if let Some(capability) = kepler_capability(&wanted) {
            return Err(LookupError::TooOld { name, capability });
        }
        Err(LookupError::Unknown {
            name,
            nearest: nearest(&wanted, cards),
        })
    }

    /// `a100-80g`: a `g` for the unit counts only after the card's own memory size, because names
    /// like A10G end in one too.
    fn find_with_short_unit(&self, wanted: &str, cards: &[Card]) -> Option<usize> {
        let without_unit = wanted.strip_suffix('g')?;
        let &index = self.cards_by_key.get(without_unit)?;
        without_unit
            .ends_with(&cards[index].board_gib.to_string())
            .then_some(index)
    }
}

/// All names a card has been given.
fn names(card: &Card) -> impl Iterator<Item = &'static str> + '_ {
    card.aliases
        .iter()
        .copied()
        .chain([card.name, card.driver_name])
}

/// The form in which names are compared: letters and digits only, in lower case, without series
/// words, without the unit of a memory size, and with one word for laptops.
pub(crate) fn key(name: &str) -> String {
    let letters = letters_and_digits(name).replace("mobile", "laptop");
    let letters = without_memory_unit(&letters);
    let stripped = SERIES_WORDS
        .iter()
        .fold(letters.clone(), |rest, word| rest.replace(word, ""));
    if stripped.contains(|letter: char| letter.is_ascii_digit()) {
        stripped
    } else {
        // Without a number the series word is what tells a TITAN RTX from a TITAN V.
        letters.replace("nvidia", "")
    }
}

fn letters_and_digits(name: &str) -> String {
    name.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|letter| letter.to_ascii_lowercase())
        .collect()
}

/// Drops `gb` and `gib` after a digit: `80gb` is `80`, while the `gb` of GB200 stays.
fn without_memory_unit(letters: &str) -> String {
    let mut kept = String::with_capacity(letters.len());
    let mut rest = letters;
    while let Some(letter) = rest.chars().next() {
        let unit = ["gib", "gb"]
            .into_iter()
            .find(|unit| rest.starts_with(unit));
        match unit {
            Some(unit) if kept.ends_with(|before: char| before.is_ascii_digit()) => {
                rest = &rest[unit.len()..];
            }
            _ => {
                kept.push(letter);
                rest = &rest[letter.len_utf8()..];
            }
        }
    }
    kept
}

/// The names of the cards whose keys are nearest to what was typed.
fn nearest(wanted: &str, cards: &[Card]) -> Vec<String> {
    let looks_like = with_lookalikes_folded(wanted);
    let mut ranked: Vec<((usize, usize), &'static str)> = cards
        .iter()
        .filter_map(|card| {
            names(card)
                .map(|name| {
                    let candidate = key(name);
                    let folded = with_lookalikes_folded(&candidate);
                    (
                        edit_distance(&looks_like, &folded),
                        edit_distance(wanted, &candidate),
                    )
                })
                .min()
                .map(|distance| (distance, card.name))
        })
        .collect();
    // The sort is stable: cards at the same distance stay in the catalogue's order.
    ranked.sort_by_key(|&(distance, _)| distance);
    ranked
        .into_iter()
        .take(SUGGESTIONS)
        .map(|(_, name)| name.to_owned())
        .collect()
}

/// Replaces letters that look like digits by those digits, so that `3o60` is close to 3060.
fn with_lookalikes_folded(key: &str) -> String {
    key.chars()
        .map(|letter| match letter {
            'o' => '0',
            'i' | 'l' => '1',
            other => other,
        })
        .collect()
}

/// The cost of adding or removing a letter, or swapping two neighbours: the usual typing errors.
const SLIP: usize = 2;
/// The cost of replacing a letter by another, a less common error.
const REPLACEMENT: usize = 3;

/// The cost of turning one text into the other by adding, removing, swapping and replacing letters.
fn edit_distance(from: &str, to: &str) -> usize {
    let from: Vec<char> = from.chars().collect();
    let to: Vec<char> = to.chars().collect();
    // Three rows of the usual table: the distances from what was read of `from` to each prefix of `to`.
    let mut before = vec![0; to.len() + 1];
    let mut row: Vec<usize> = (0..=to.len()).map(|added| added * SLIP).collect();
    for (read, &letter) in from.iter().enumerate() {
        let mut next = vec![(read + 1) * SLIP; to.len() + 1];
        for (column, &wanted) in to.iter().enumerate() {
            let replaced = match letter == wanted {
                true => row[column],
                false => row[column] + REPLACEMENT,
            };
            let slipped = row[column + 1].min(next[column]) + SLIP;
            let mut distance = replaced.min(slipped);
            let is_swapped =
                read > 0 && column > 0 && (from[read - 1], letter) == (wanted, to[column - 1]);
            if is_swapped {
                distance = distance.min(before[column - 1] + SLIP);
            }
            next[column + 1] = distance;
        }
        before = std::mem::replace(&mut row, next);
    }
    row[to.len()]
}

/// The vendor of a card of this name, if its cards do not run CUDA.
fn vendor_without_cuda(name: &str) -> Option<&'static str> {
    let letters = letters_and_digits(name);
    let contains = |words: &[&str]| words.iter().any(|word| letters.contains(word));
    let is_number_after = |prefix: &str, suffixes: &[&str]| {
        letters.strip_prefix(prefix).is_some_and(|rest| {
            let suffix = rest.trim_start_matches(|letter: char| letter.is_ascii_digit());
            rest.len() - suffix.len() >= 2 && suffixes.contains(&suffix)
        })
    };
    let is_apple_chip = letters.strip_prefix('m').is_some_and(|rest| {
        let kind = rest.strip_prefix(|digit: char| digit.is_ascii_digit() && digit != '0');
        kind.is_some_and(|kind| matches!(kind, "" | "pro" | "max" | "ultra"))
    });

    if contains(&[
        "amd",
        "radeon",
        "instinct",
        "firepro",
        "strixhalo",
        "gfx9",
        "gfx1",
    ]) || is_number_after("mi", &["", "x", "a"])
        || is_number_after("rx", &["", "xt", "xtx", "gre", "m"])
        || is_number_after("", &["xt", "xtx", "gre"])
    {
        Some("AMD")
    } else if contains(&["apple", "metal"]) || is_apple_chip {
        Some("Apple")
    } else if contains(&["intel", "gaudi"])
        || is_number_after("arca", &["", "m"])
        || is_number_after("arcb", &[""])
        || ["a380", "a580", "a750", "a770", "b570", "b580"].contains(&letters.as_str())
    {
        Some("Intel")
    } else if contains(&["tpu"]) {
        Some("Google")
    } else {
        None
    }
}

/// The compute capability of the Tesla cards of 2012 to 2014, which people still own.
fn kepler_capability(key: &str) -> Option<&'static str> {
    match key {
        "k10" => Some("3.0"),
        "k20" | "k20m" | "k20c" | "k20x" | "k40" | "k40m" | "k40c" => Some("3.5"),
        "k80" => Some("3.7"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_words_separators_and_units_do_not_reach_the_key() {
        for name in [
            "3060-12",
            "RTX 3060 12GB",
            "nvidia_geforce-rtx 3060 12 GiB",
            " rtx3060 12gb ",
        ] {
            assert_eq!(key(name), "306012", "{name}");
        }
    }

    #[test]
    fn a_name_without_a_number_keeps_its_series_word() {
        assert_eq!(key("NVIDIA TITAN RTX"), "titanrtx");
        assert_eq!(key("TITAN V"), "titanv");
    }

    #[test]
    fn gb_in_front_of_a_number_is_part_of_the_name() {
        assert_eq!(key("GB200"), "gb200");
        assert_eq!(key("GH200 480GB"), "gh200480");
    }

    #[test]
    fn edit_distance_counts_slips_and_replacements() {
        for (from, to, slips, replacements) in [
            ("", "h200", 4, 0),
            ("h200", "h200", 0, 0),
            ("h20", "h200", 1, 0),
            ("h2o0", "h200", 0, 1),
            ("3090ti", "3080", 2, 1),
            ("3600", "3060", 1, 0),
            ("0360", "3060", 1, 0),
        ] {
            let expected = slips * SLIP + replacements * REPLACEMENT;
            assert_eq!(edit_distance(from, to), expected, "{from} to {to}");
        }
    }

    #[test]
    fn other_vendors_are_recognised_by_their_product_names() {
        for (name, vendor) in [
            ("MI300X", "AMD"),
            ("Instinct MI250", "AMD"),
            ("Radeon RX 7900 XTX", "AMD"),
            ("rx 6800", "AMD"),
            ("7900xtx", "AMD"),
            ("M3 Max", "Apple"),
            ("m1", "Apple"),
            ("Apple M2 Ultra", "Apple"),
            ("Arc A770", "Intel"),
            ("gaudi3", "Intel"),
            ("TPU v5e", "Google"),
        ] {
            assert_eq!(vendor_without_cuda(name), Some(vendor), "{name}");
        }
        for name in [
            "m40", "m60", "rtx 3060", "a100", "titan x", "mx450", "a10", "b200",
        ] {
            assert_eq!(vendor_without_cuda(name), None, "{name}");
        }
    }
}
