//! A command line with one argument set to a value, mostly a number.

use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::os::unix::ffi::OsStrExt;

/// The words with `option` set to `number`, in its place or at the end.
///
/// An option that ends with `=` is a word of its own (`batch_size=8`); `--batch-size` has its number in
/// the next word or after a `=`. `python/ghostgpu/agent/forks/argument_size_point.py` does the same.
pub fn with_value(words: &[OsString], option: &str, number: impl Display) -> Vec<OsString> {
    let mut result = words.to_vec();
    let is_key = option.ends_with('=');
    let prefix = match is_key {
        true => option.to_owned(),
        false => format!("{option}="),
    };
    let mut is_set = false;
    for index in 0..words.len() {
        if starts_with(&words[index], &prefix) {
            result[index] = format!("{prefix}{number}").into();
            is_set = true;
        } else if words[index] == option && index + 1 < words.len() {
            result[index + 1] = number.to_string().into();
            is_set = true;
        }
    }
    match (is_set, is_key) {
        (true, _) => {}
        (false, true) => result.push(format!("{option}{number}").into()),
        (false, false) => result.extend([option.into(), number.to_string().into()]),
    }
    result
}

/// The number that the option is set to, if it is present.
pub fn present_value(words: &[OsString], option: &str) -> Option<u64> {
    let prefix = match option.ends_with('=') {
        true => option.to_owned(),
        false => format!("{option}="),
    };
    words.iter().enumerate().rev().find_map(|(index, word)| {
        let text = match word == option {
            true => words.get(index + 1)?.to_str()?,
            false => word.to_str()?.strip_prefix(&prefix)?,
        };
        text.parse().ok()
    })
}

fn starts_with(word: &OsStr, prefix: &str) -> bool {
    word.as_bytes().starts_with(prefix.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn an_argument_is_set_in_its_place_or_at_the_end() {
        for (before, option, after) in [
            ("t.py --lr 1", "--batch-size", "t.py --lr 1 --batch-size 9"),
            (
                "t.py --batch-size 8 -v",
                "--batch-size",
                "t.py --batch-size 9 -v",
            ),
            (
                "t.py --batch-size=8 -v",
                "--batch-size",
                "t.py --batch-size=9 -v",
            ),
            ("t.py -b 8", "-b", "t.py -b 9"),
            (
                "t.py data.batch=8 x=1",
                "data.batch=",
                "t.py data.batch=9 x=1",
            ),
            ("t.py x=1", "batch=", "t.py x=1 batch=9"),
        ] {
            assert_eq!(with_value(&words(before), option, 9), words(after));
        }
    }

    #[test]
    fn the_present_number_is_the_last_one() {
        assert_eq!(present_value(&words("t.py --b 8 --b=4"), "--b"), Some(4));
        assert_eq!(present_value(&words("t.py b=3"), "b="), Some(3));
        assert_eq!(present_value(&words("t.py --b x"), "--b"), None);
        assert_eq!(present_value(&words("t.py --b"), "--b"), None);
    }
}
