//! The catalogue of tricks.

use ghostgpu_text::{columns, wrap};
use ghostgpu_tricks::{Catalogue, FlagValue, Numerics, Trick};
use serde_json::{Value, json};

use crate::style::{Detail, Style};

/// Adding a field keeps the version; `docs/tricks.md` describes them.
const SCHEMA: &str = "ghostgpu.tricks/1";

const CLASSES: [Numerics; 4] = [
    Numerics::Identical,
    Numerics::Rounding,
    Numerics::Precision,
    Numerics::Training,
];

/// The document, which `docs/tricks.md` describes.
pub fn json(catalogue: &Catalogue, tricks: &[&Trick]) -> Value {
    let conflicts: Vec<_> = catalogue
        .conflicts
        .iter()
        .filter(|conflict| {
            tricks
                .iter()
                .any(|trick| conflict.other(&trick.name).is_some())
        })
        .collect();
    json!({
        "schema": SCHEMA,
        "numerics": catalogue.numerics,
        "tricks": tricks,
        "conflicts": conflicts,
    })
}

/// All tricks, by what they do to the numbers.
pub fn text(catalogue: &Catalogue, style: Style) -> String {
    if style.detail == Detail::Quiet {
        let names = catalogue
            .tricks
            .iter()
            .map(|trick| format!("{}\n", trick.name));
        return names.collect();
    }
    let all: Vec<&Trick> = catalogue.tricks.iter().collect();
    if style.detail == Detail::Everything {
        return in_full(catalogue, &all, style);
    }
    let widest = all.iter().map(|trick| columns(&typed(trick))).max();
    let indent = widest.unwrap_or_default() + 4;
    let mut text = String::new();
    for class in CLASSES {
        let meaning = catalogue.numerics.get(&class).map_or("", String::as_str);
        text.push_str(&format!("{class}: {meaning}\n"));
        for trick in all.iter().filter(|trick| trick.numerics == class) {
            let lines = wrap(&trick.summary, style.width.saturating_sub(indent));
            for (place, line) in lines.iter().enumerate() {
                let left = match place {
                    0 => typed(trick),
                    _ => String::new(),
                };
                let padding = indent - 2 - columns(&left);
                text.push_str(&format!("  {left}{}{line}\n", " ".repeat(padding)));
            }
        }
        text.push('\n');
    }
    text.push_str(
        "ghostgpu tricks NAME says what one saves and costs, and what it conflicts with.\n",
    );
    text
}

/// A full description of tricks.
pub fn in_full(catalogue: &Catalogue, tricks: &[&Trick], style: Style) -> String {
    let described: Vec<String> = tricks
        .iter()
        .map(|trick| one_in_full(catalogue, trick, style.width))
        .collect();
    described.join("\n")
}

fn one_in_full(catalogue: &Catalogue, trick: &Trick, width: usize) -> String {
    let headline = format!("{}: {}", trick.name, trick.summary);
    let mut text = wrap(&headline, width).join("\n") + "\n";
    let mut row = |label: &str, value: &str| {
        for (place, line) in wrap(value, width.saturating_sub(INDENT)).iter().enumerate() {
            let label = if place == 0 { label } else { "" };
            text.push_str(&format!("  {label:<11}{line}\n"));
        }
    };
    row("option", &typed(trick));
    row("saves", &trick.saves);
    row("costs", &trick.costs);
    let meaning = catalogue
        .numerics
        .get(&trick.numerics)
        .map_or("", String::as_str);
    row("numbers", &format!("{}: {meaning}", trick.numerics));
    for (place, option) in trick.options.iter().enumerate() {
        let label = if place == 0 { "in a plan" } else { "" };
        let default = &option.default;
        row(
            label,
            &format!("{} = \"{default}\": {}", option.name, option.help),
        );
    }
    for (place, (other, conflict)) in catalogue.conflicts_of(&trick.name).enumerate() {
        let label = if place == 0 { "not with" } else { "" };
        let when: String = conflict
            .when
            .iter()
            .map(|(option, value)| format!(" ({option} = {value})"))
            .collect();
        let because = &conflict.because;
        row(
            label,
            &format!("{other}{when}: {because}; {}", conflict.instead),
        );
    }
    text
}

const INDENT: usize = 13;

/// The flag with its value.
fn typed(trick: &Trick) -> String {
    match &trick.value {
        None => trick.flag.clone(),
        Some(FlagValue::Word { word }) => format!("{} {word}", trick.flag),
        Some(FlagValue::Option {
            option,
            shown,
            is_optional,
        }) => {
            let choices = trick.option(option).map(|sheet| sheet.choices.join("|"));
            let value = choices
                .filter(|all| !all.is_empty())
                .unwrap_or_else(|| shown.clone());
            match is_optional {
                true => format!("{}[={value}]", trick.flag),
                false => format!("{} {value}", trick.flag),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::PLAIN;

    #[test]
    fn every_trick_on_a_terminal_of_80_columns() {
        let shown = text(Catalogue::builtin(), PLAIN);
        assert!(shown.lines().all(|line| columns(line) <= 80), "{shown}");
        insta::assert_snapshot!(shown);
    }

    #[test]
    fn one_trick_in_full() {
        let catalogue = Catalogue::builtin();
        let tricks = ["autocast", "checkpointing"].map(|name| catalogue.find(name).expect("there"));
        let shown = in_full(catalogue, &tricks, PLAIN);
        assert!(shown.lines().all(|line| columns(line) <= 80), "{shown}");
        insta::assert_snapshot!(shown);
    }

    #[test]
    fn the_document_has_the_conflicts_of_what_is_shown() {
        let catalogue = Catalogue::builtin();
        let one = json(catalogue, &[catalogue.find("no-limit").expect("there")]);
        assert_eq!(one["tricks"].as_array().map(Vec::len), Some(1));
        assert_eq!(
            one["conflicts"][0]["between"],
            json!(["leave-room", "no-limit"])
        );
        assert_eq!(one["schema"], SCHEMA);
    }
}
