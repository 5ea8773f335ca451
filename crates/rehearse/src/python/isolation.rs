//! `python -I` and `python -E` ignore the environment and with it the agent, so that checkpoints would be unprotected
//! and steps uncounted. Their effect on the script is achieved in other ways instead.

use std::ffi::OsString;

/// A python's arguments without the options that would keep the agent out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arguments {
    pub words: Vec<OsString>,
    /// The user's `PYTHON…` variables must not reach the script.
    pub ignores_environment: bool,
}

/// Removes `-E`, and replaces `-I` by its other effects.
pub fn without_isolation(words: Vec<OsString>) -> Arguments {
    let mut ignores_environment = false;
    let mut result = Vec::with_capacity(words.len());
    let mut rest = words.into_iter();
    while let Some(word) = rest.next() {
        let Some(letters) = short_options(&word) else {
            // The script, `-`, or a long option: what follows are not python's own options.
            result.push(word);
            break;
        };
        let mut kept = String::from("-");
        let mut is_last = false;
        let mut takes_next = false;
        for (index, letter) in letters.char_indices() {
            match letter {
                'E' => ignores_environment = true,
                'I' => {
                    ignores_environment = true;
                    kept.push('s');
                }
                // The rest of the word, or the next word, belongs to the option.
                'c' | 'm' | 'W' | 'X' => {
                    kept.push_str(&letters[index..]);
                    takes_next = letters[index + 1..].is_empty();
                    is_last = matches!(letter, 'c' | 'm');
                    break;
                }
                other => kept.push(other),
            }
        }
        if kept.len() > 1 {
            result.push(kept.into());
        }
        if takes_next && !is_last {
            result.extend(rest.next());
        }
        if is_last {
            break;
        }
    }
    result.extend(rest);
    Arguments {
        words: result,
        ignores_environment,
    }
}

/// The letters of `-Is`; `None` for a word that is no group of short options.
fn short_options(word: &OsString) -> Option<String> {
    let letters = word.to_str()?.strip_prefix('-')?;
    let is_short = letters.starts_with(|first: char| first.is_ascii_alphabetic());
    is_short.then(|| letters.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(text: &str) -> (String, bool) {
        let words = text.split_whitespace().map(OsString::from).collect();
        let arguments = without_isolation(words);
        let words: Vec<_> = arguments
            .words
            .iter()
            .map(|word| word.to_string_lossy())
            .collect();
        (words.join(" "), arguments.ignores_environment)
    }

    #[test]
    fn isolation_options_are_removed_from_python_but_not_from_the_script() {
        for (before, expected, ignores) in [
            ("train.py -I -E", "train.py -I -E", false),
            ("-I train.py -E", "-s train.py -E", true),
            ("-E train.py", "train.py", true),
            ("-uEB -m pkg -I", "-uB -m pkg -I", true),
            ("-Ic code -E", "-sc code -E", true),
            ("-W ignore -E train.py", "-W ignore train.py", true),
            ("-Wignore -X dev -I -", "-Wignore -X dev -s -", true),
            ("-mE", "-mE", false),
            ("- -I", "- -I", false),
            ("--version", "--version", false),
        ] {
            assert_eq!(after(before), (expected.to_owned(), ignores), "{before}");
        }
    }
}
