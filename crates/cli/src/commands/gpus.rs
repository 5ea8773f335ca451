//! `ghostgpu gpus`: the catalogue of cards.

use ghostgpu_answers::{gpus, in_json};
use ghostgpu_device::{Card, Catalogue};

use super::answer_options::AnswerOptions;
use crate::failure::Failure;

/// List the cards that a script can be rehearsed on
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Where figures come from (--verbose):
  measured    read by software on a real card of this name
  published   taken from a data sheet or a public table
  derived     computed by a rule fitted to other cards

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
    let output = arguments.answer.prepare()?;
    output.answer(
        |style| gpus::text(&cards, style),
        || in_json(&gpus::json(&cards)),
    )?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_ignores_case_spaces_and_hyphens() {
        let card = Catalogue::builtin().find("3060").expect("in the catalogue");
        assert!(matches(card, "rtx 3060"));
        assert!(matches(card, "RTX-3060"));
        assert!(!matches(card, "h200"));
    }
}
