//! `ghostgpu gpus`: the catalogue of cards.

use ghostgpu_device::{Card, Catalogue};
use serde_json::{Value, json};

use super::answer_options::{AnswerOptions, in_json};
use crate::failure::Failure;
use crate::terminal::{Detail, Look};
use ghostgpu_text::{Table, human};

/// A field that is added keeps the version; `docs/gpus-json.md` describes them.
const SCHEMA: &str = "ghostgpu.gpus/1";

/// Width of memory and capability, with the gaps around them.
const FIGURES_WIDTH: usize = 26;

/// List the cards that a script can be rehearsed on
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Where figures come from (--verbose):
  measured    software read them on a real card of this name
  published   they stand in a data sheet or a public table
  derived     a rule that was fitted to other cards computed them

Examples:
  ghostgpu gpus              every card
  ghostgpu gpus 30           cards with `30` in their name
  ghostgpu gpus --json       the same for programs, with exact bytes")]
pub struct Arguments {
    /// Show only cards whose name or alias contains this text
    #[arg(value_name = "FILTER")]
    filter: Option<String>,

    #[command(flatten)]
    answer: AnswerOptions,
}

pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    let catalogue = Catalogue::builtin();
    let cards: Vec<&Card> = catalogue
        .cards()
        .iter()
        .filter(|card| {
            let filter = arguments.filter.as_deref();
            filter.is_none_or(|text| matches(card, text))
        })
        .collect();
    if let (true, Some(filter)) = (cards.is_empty(), &arguments.filter) {
        return Err(
            Failure::new(format!("no card has `{filter}` in its name or aliases"))
                .with_hint("`ghostgpu gpus` lists all cards")
                .into(),
        );
    }
    let document = || {
        let list: Vec<Value> = cards.iter().map(|card| as_json(card)).collect();
        in_json(&json!({"schema": SCHEMA, "cards": list}))
    };
    let output = arguments.answer.prepare()?;
    output.answer(|look| as_table(&cards, look), document)?;
    Ok(0)
}

/// Case, spaces and hyphens do not matter.
fn matches(card: &Card, filter: &str) -> bool {
    let simplified = |text: &str| -> String {
        text.chars()
            .filter(|character| character.is_alphanumeric())
            .flat_map(char::to_lowercase)
            .collect()
    };
    let wanted = simplified(filter);
    [card.name, card.driver_name]
        .iter()
        .chain(&card.aliases)
        .any(|name| simplified(name).contains(&wanted))
}

/// What one looks for: the name to type and the memory; the rest with `--verbose`.
fn as_table(cards: &[&Card], look: Look) -> String {
    match look.detail {
        Detail::Everything => full_table(cards).render(),
        Detail::Screen => short_table(cards, look.width).render(),
        Detail::Quiet => cards
            .iter()
            .map(|card| format!("{}\n", card.name))
            .collect(),
    }
}

fn short_table(cards: &[&Card], width: usize) -> Table {
    let mut table = Table::new(&["card", ">memory", ">capability", "also called"]);
    let names = cards.iter().map(|card| card.name.chars().count());
    let beside = names.max().unwrap_or_default() + FIGURES_WIDTH;
    for card in cards {
        table.push(vec![
            card.name.to_owned(),
            human(card.total_bytes),
            card.capability.to_string(),
            first_names(&card.aliases, width.saturating_sub(beside)),
        ]);
    }
    table
}

/// As many of the names as there is room for.
fn first_names(names: &[&str], width: usize) -> String {
    let mut text = String::new();
    for name in names {
        let separator = if text.is_empty() { "" } else { ", " };
        if !text.is_empty() && text.chars().count() + 2 + name.chars().count() > width {
            break;
        }
        text.push_str(separator);
        text.push_str(name);
    }
    text
}

fn full_table(cards: &[&Card]) -> Table {
    let mut table = Table::new(&[
        "card",
        ">memory",
        ">capability",
        ">SMs",
        "memory is",
        "properties are",
        "context is",
        "also called",
    ]);
    for card in cards {
        table.push(vec![
            card.name.to_owned(),
            human(card.total_bytes),
            card.capability.to_string(),
            card.multiprocessors.to_string(),
            card.memory_provenance.to_string(),
            card.properties_provenance.to_string(),
            card.overhead_provenance.to_string(),
            card.aliases.join(", "),
        ]);
    }
    table
}

fn as_json(card: &Card) -> Value {
    json!({
        "name": card.name,
        "driver_name": card.driver_name,
        "aliases": card.aliases,
        "total_bytes": card.total_bytes,
        "capability": card.capability.to_string(),
        "multiprocessors": card.multiprocessors,
        "context_bytes": card.context_bytes,
        "memory_provenance": card.memory_provenance.as_str(),
        "properties_provenance": card.properties_provenance.as_str(),
        "context_provenance": card.overhead_provenance.as_str(),
        "note": card.note,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::PLAIN;

    #[test]
    fn a_filter_ignores_case_spaces_and_hyphens() {
        let card = Catalogue::builtin().find("3060").expect("in the catalogue");
        assert!(matches(card, "rtx 3060"));
        assert!(matches(card, "RTX-3060"));
        assert!(!matches(card, "h200"));
    }

    #[test]
    fn the_table_has_one_row_per_card_and_a_heading() {
        let cards: Vec<&Card> = Catalogue::builtin().cards().iter().collect();
        for detail in [Detail::Screen, Detail::Everything] {
            let table = as_table(&cards, Look { detail, ..PLAIN });
            assert_eq!(table.lines().count(), cards.len() + 1);
        }
        let table = as_table(&cards, PLAIN);
        let widest = table.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(PLAIN.width), "{widest:?}");
    }
}
