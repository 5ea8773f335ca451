//! Arguments of the user's own script that save memory, found in its text: switches, and lengths.

use std::ffi::OsString;

use ghostgpu_explain::Effect;
use ghostgpu_rehearse::present_value;

/// A switch that the script has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// As the script spells it: `--gradient-checkpointing`.
    pub word: String,
    pub effect: Effect,
}

// Checkpointing changes rounding: the repeated forward pass may use other kernels, and updates batch norm's statistics
// twice.
const KNOWN: [(&str, Effect); 12] = [
    ("gradient-checkpointing", Effect::Rounding),
    ("grad-checkpointing", Effect::Rounding),
    ("activation-checkpointing", Effect::Rounding),
    ("use-checkpoint", Effect::Rounding),
    ("use-checkpointing", Effect::Rounding),
    ("checkpointing", Effect::Rounding),
    ("bf16", Effect::Precision),
    ("fp16", Effect::Precision),
    ("amp", Effect::Precision),
    ("use-amp", Effect::Precision),
    ("mixed-precision", Effect::Precision),
    ("half", Effect::Precision),
];

/// An argument that says how long or how large a sample is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Length {
    /// As the script spells it: `--seq-len`.
    pub word: String,
    /// Its current value.
    pub value: u64,
}

const LENGTHS: [&str; 18] = [
    "seq-len",
    "seq-length",
    "sequence-length",
    "max-seq-len",
    "max-seq-length",
    "max-length",
    "max-len",
    "max-source-length",
    "block-size",
    "context-length",
    "context-len",
    "image-size",
    "img-size",
    "imgsz",
    "input-size",
    "crop-size",
    "train-crop-size",
    "resolution",
];

/// The argument that sets the length of samples: one that the user gave, else one that the script declares with a
/// number as its default.
pub fn length(text: &str, words: &[OsString]) -> Option<Length> {
    let given = words.iter().find_map(|word| {
        let word = word.to_str()?.split('=').next()?;
        let value = present_value(words, word)?;
        is_length(word).then(|| Length {
            word: word.to_owned(),
            value,
        })
    });
    let known = given.or_else(|| declared_length(text));
    known.filter(|length| length.value >= 2)
}

fn is_length(word: &str) -> bool {
    word.starts_with("--") && LENGTHS.contains(&plain_name(word).as_str())
}

/// `--Max_Seq_Length` is `max-seq-length`.
fn plain_name(word: &str) -> String {
    word.trim_start_matches('-')
        .replace('_', "-")
        .to_lowercase()
}

fn declared_length(text: &str) -> Option<Length> {
    let declarations = declarations(text).into_iter();
    let mut lengths = declarations.filter(|(word, _)| is_length(word));
    lengths.find_map(|(word, call)| {
        // The help text may contain the word "default" too.
        let value = call.split("default").skip(1).find_map(whole_number)?;
        Some(Length {
            word: word.to_owned(),
            value,
        })
    })
}

/// `512` of ` = 512, help=`.
fn whole_number(text: &str) -> Option<u64> {
    let number = text.trim_start().strip_prefix('=')?.trim_start();
    let end = number
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(number.len());
    let is_whole = !number[end..].starts_with(['.', 'e', '_']);
    number[..end].parse().ok().filter(|_| is_whole)
}

/// Switches that the script declares and the user did not give.
pub fn switches(text: &str, words: &[OsString]) -> Vec<Switch> {
    let given: Vec<String> = words
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    in_text(text)
        .into_iter()
        .filter(|switch| !given.iter().any(|word| word.starts_with(&switch.word)))
        .collect()
}

/// Options that are switched on by their name alone.
fn in_text(text: &str) -> Vec<Switch> {
    let mut found: Vec<Switch> = Vec::new();
    for (word, call) in declarations(text) {
        let is_switch = call.contains("store_true") || call.contains("BooleanOptionalAction");
        let name = plain_name(word);
        let known = KNOWN.iter().find(|(known, _)| *known == name);
        if let (true, Some((_, effect))) = (is_switch, known) {
            let switch = Switch {
                word: word.to_owned(),
                effect: *effect,
            };
            if !found.contains(&switch) {
                found.push(switch);
            }
        }
    }
    found
}

/// Every quoted option with the text after it, up to the end of the call.
fn declarations(text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("--") {
        let rest = &text[at..];
        let end = rest
            .find(|character: char| {
                !character.is_ascii_alphanumeric() && !matches!(character, '-' | '_')
            })
            .unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        if behind.starts_with(['"', '\'']) {
            found.push((word, behind.split(')').next().unwrap_or(behind)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_found_by_their_declarations() {
        let text = r#"
            # --bf16 would be nice
            parser.add_argument("--gradient_checkpointing", action="store_true", help="x")
            parser.add_argument('--amp', action='store_true')
            parser.add_argument("--fp16", type=int)
        "#;
        let words: Vec<String> = in_text(text)
            .into_iter()
            .map(|switch| switch.word)
            .collect();
        assert_eq!(words, ["--gradient_checkpointing", "--amp"]);
    }

    #[test]
    fn switches_that_the_user_gave_are_left_out() {
        let text = "p.add_argument('--amp', action='store_true')";
        assert_eq!(switches(text, &[]).len(), 1);
        assert_eq!(switches(text, &["--amp".into()]), []);
        assert_eq!(switches("", &[]), []);
    }

    #[test]
    fn a_length_is_what_was_given_or_what_is_declared() {
        let declared = r#"
            parser.add_argument("--epochs", type=int, default=3)
            parser.add_argument("--max_seq_length", help="default: see below", default=512, type=int)
            parser.add_argument("--image-size", default=224)
        "#;
        /// The script's text, its arguments, and the expected length.
        type Case<'a> = (&'a str, &'a [&'a str], Option<(&'a str, u64)>);
        let cases: [Case; 7] = [
            (declared, &[], Some(("--max_seq_length", 512))),
            (declared, &["--image-size=448"], Some(("--image-size", 448))),
            ("", &["--block_size", "1024"], Some(("--block_size", 1024))),
            ("", &["--epochs", "3"], None),
            ("p.add_argument('--seq-len', default=1.5)", &[], None),
            ("p.add_argument('--seq-len', default=LENGTH)", &[], None),
            ("p.add_argument('--seq-len', default=1)", &[], None),
        ];
        for (text, words, expected) in cases {
            let words: Vec<OsString> = words.iter().map(|&word| word.into()).collect();
            let found = length(text, &words);
            let found = found
                .as_ref()
                .map(|length| (length.word.as_str(), length.value));
            assert_eq!(found, expected, "{text} {words:?}");
        }
    }
}
