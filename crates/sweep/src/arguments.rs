//! `--arg --batch-size=8,16,32`: a script argument with its values, and all combinations of several arguments.

use std::ffi::OsString;

use ghostgpu_answers::sweep::SweptArgument;
use ghostgpu_rehearse::{Failure, with_value};

const HINT: &str = "an argument and its values are written `--arg --batch-size=8,16,32`";

/// The arguments, each with its values.
pub fn swept_arguments(typed: &[String]) -> Result<Vec<SweptArgument>, Failure> {
    let mut arguments: Vec<SweptArgument> = Vec::new();
    for text in typed {
        let argument = parse(text)?;
        if arguments.iter().any(|known| known.name == argument.name) {
            let message = format!("the argument {} is given twice", argument.name);
            return Err(Failure::new(message).with_hint(HINT));
        }
        arguments.push(argument);
    }
    Ok(arguments)
}

fn parse(text: &str) -> Result<SweptArgument, Failure> {
    let refused = |message: String| Err(Failure::new(message).with_hint(HINT));
    let Some((name, values)) = text.split_once('=') else {
        return refused(format!("`--arg {text}` has no values"));
    };
    if name.trim_start_matches('-').is_empty() {
        return refused(format!("`--arg {text}` names no argument"));
    }
    let mut kept: Vec<String> = Vec::new();
    for value in values.split(',').map(str::trim) {
        if value.is_empty() {
            return refused(match values.trim().is_empty() {
                true => format!("`--arg {text}` has no values"),
                false => format!("a value is missing in `--arg {text}`"),
            });
        }
        if !kept.iter().any(|known| known == value) {
            kept.push(value.to_owned());
        }
    }
    Ok(SweptArgument {
        name: name.to_owned(),
        values: kept,
    })
}

/// Every combination of values; the last argument varies fastest.
pub fn combinations(arguments: &[SweptArgument]) -> Vec<Vec<String>> {
    let none = vec![Vec::new()];
    arguments.iter().fold(none, |begun, argument| {
        let with_each = begun.iter().flat_map(|values| {
            let each = argument.values.iter();
            each.map(move |value| [values.as_slice(), std::slice::from_ref(value)].concat())
        });
        with_each.collect()
    })
}

/// The command line with one value for each argument.
pub fn with_values(
    words: &[OsString],
    arguments: &[SweptArgument],
    values: &[String],
) -> Vec<OsString> {
    let pairs = arguments.iter().zip(values);
    pairs.fold(words.to_vec(), |words, (argument, value)| {
        // Hydra's arguments have no hyphens, and form one word with their value.
        match argument.name.starts_with('-') {
            true => with_value(&words, &argument.name, value),
            false => with_value(&words, &format!("{}=", argument.name), value),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(typed: &[&str]) -> Result<Vec<SweptArgument>, String> {
        let typed: Vec<String> = typed.iter().map(|&text| text.to_owned()).collect();
        swept_arguments(&typed).map_err(|failure| failure.to_string())
    }

    #[test]
    fn every_combination_of_values_becomes_a_command_line() {
        let arguments = arguments(&["--batch-size=8, 16,8", "data.length=512,1k"]).expect("valid");
        let words: Vec<OsString> = ["train.py", "--batch-size", "4", "--amp"]
            .map(OsString::from)
            .to_vec();
        let lines: Vec<String> = combinations(&arguments)
            .iter()
            .map(|values| with_values(&words, &arguments, values))
            .map(|words| words.join(std::ffi::OsStr::new(" ")))
            .map(|line| line.to_string_lossy().into_owned())
            .collect();
        assert_eq!(
            lines,
            [
                "train.py --batch-size 8 --amp data.length=512",
                "train.py --batch-size 8 --amp data.length=1k",
                "train.py --batch-size 16 --amp data.length=512",
                "train.py --batch-size 16 --amp data.length=1k",
            ]
        );
        assert_eq!(combinations(&[]), [Vec::<String>::new()]);
    }

    #[test]
    fn what_names_no_argument_or_no_values_is_refused() {
        for (typed, message) in [
            (&["--batch-size"][..], "`--arg --batch-size` has no values"),
            (&["--batch-size="], "`--arg --batch-size=` has no values"),
            (
                &["--batch-size=8,,16"],
                "a value is missing in `--arg --batch-size=8,,16`",
            ),
            (&["=8"], "`--arg =8` names no argument"),
            (&["--=8"], "`--arg --=8` names no argument"),
            (&["--n=1", "--n=2"], "the argument --n is given twice"),
        ] {
            assert_eq!(arguments(typed), Err(message.to_owned()));
        }
    }
}
