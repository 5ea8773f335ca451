//! The catalogue of cards.

use ghostgpu_device::Card;
use ghostgpu_text::{Table, human};
use serde_json::{Value, json};

use crate::style::{Detail, Style};

/// Adding a field keeps the version; `docs/gpus-json.md` describes them.
const SCHEMA: &str = "ghostgpu.gpus/1";

/// Width of memory and capability, with the gaps around them.
const FIGURES_WIDTH: usize = 26;

/// The name that people type: a single word if there is one.
pub fn short_name(card: &Card) -> String {
    match card.aliases.first() {
        Some(alias) => (*alias).to_owned(),
        None => card.name.replace(' ', "-"),
    }
}

/// The document, which `docs/gpus-json.md` describes.
pub fn json(cards: &[&Card]) -> Value {
    let list: Vec<Value> = cards.iter().map(|card| card_json(card)).collect();
    json!({"schema": SCHEMA, "cards": list})
}

/// The name to type and the memory; `--verbose` shows the rest.
pub fn text(cards: &[&Card], style: Style) -> String {
    match style.detail {
        Detail::Everything => full_table(cards).render(),
        Detail::Screen => short_table(cards, style.width).render(),
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

fn card_json(card: &Card) -> Value {
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
    use crate::style::PLAIN;
    use ghostgpu_device::Catalogue;

    #[test]
    fn the_table_has_one_row_per_card_and_a_heading() {
        let cards: Vec<&Card> = Catalogue::builtin().cards().iter().collect();
        for detail in [Detail::Screen, Detail::Everything] {
            let table = text(&cards, Style { detail, ..PLAIN });
            assert_eq!(table.lines().count(), cards.len() + 1);
        }
        let table = text(&cards, PLAIN);
        let widest = table.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(PLAIN.width), "{widest:?}");
    }
}
