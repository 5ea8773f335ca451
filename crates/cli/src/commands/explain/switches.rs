//! Switches of the user's own script that save memory, found in its text.

use std::path::Path;

use ghostgpu_explain::Effect;

/// A switch that the script has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// As the script spells it: `--gradient-checkpointing`.
    pub word: String,
    pub effect: Effect,
}

/// More of a script is not looked at.
const LONGEST_SCRIPT: u64 = 1 << 20;

const KNOWN: [(&str, Effect); 12] = [
    ("gradient-checkpointing", Effect::Identical),
    ("grad-checkpointing", Effect::Identical),
    ("activation-checkpointing", Effect::Identical),
    ("use-checkpoint", Effect::Identical),
    ("use-checkpointing", Effect::Identical),
    ("checkpointing", Effect::Identical),
    ("bf16", Effect::Precision),
    ("fp16", Effect::Precision),
    ("amp", Effect::Precision),
    ("use-amp", Effect::Precision),
    ("mixed-precision", Effect::Precision),
    ("half", Effect::Precision),
];

pub fn switches(script: &Path, words: &[std::ffi::OsString]) -> Vec<Switch> {
    let is_small = std::fs::metadata(script).is_ok_and(|data| data.len() <= LONGEST_SCRIPT);
    let text = match is_small {
        true => std::fs::read_to_string(script).unwrap_or_default(),
        false => String::new(),
    };
    let given: Vec<String> = words
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    in_text(&text)
        .into_iter()
        .filter(|switch| !given.iter().any(|word| word.starts_with(&switch.word)))
        .collect()
}

/// Options that are switched on by their name alone.
fn in_text(text: &str) -> Vec<Switch> {
    let mut found: Vec<Switch> = Vec::new();
    for (at, _) in text.match_indices("--") {
        let rest = &text[at..];
        let end = rest
            .find(|character: char| {
                !character.is_ascii_alphanumeric() && !matches!(character, '-' | '_')
            })
            .unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        let is_quoted = behind.starts_with(['"', '\'']);
        let is_switch = behind.split(')').next().is_some_and(|call| {
            call.contains("store_true") || call.contains("BooleanOptionalAction")
        });
        let name = word
            .trim_start_matches('-')
            .replace('_', "-")
            .to_lowercase();
        let known = KNOWN.iter().find(|(known, _)| *known == name);
        if let (true, true, Some((_, effect))) = (is_quoted, is_switch, known) {
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
    fn what_is_given_already_is_not_tried_again() {
        let folder = tempfile::tempdir().expect("folder");
        let script = folder.path().join("train.py");
        std::fs::write(&script, "p.add_argument('--amp', action='store_true')").expect("file");
        assert_eq!(switches(&script, &[]).len(), 1);
        assert_eq!(switches(&script, &["--amp".into()]), []);
        assert_eq!(switches(Path::new("missing.py"), &[]), []);
    }
}
