//! `--gpu 3090,4090,a100`: several cards of the catalogue.

use ghostgpu_device::{Card, Catalogue};

use crate::failure::Failure;

/// The named cards, in this order, each once.
pub fn cards_named(names: &str) -> Result<Vec<&'static Card>, Failure> {
    let mut cards: Vec<&Card> = Vec::new();
    for name in names.split(',') {
        if name.trim().is_empty() {
            return Err(
                Failure::new(format!("a card's name is missing in `{names}`"))
                    .with_hint("separate names by commas, such as `--gpu 3090,4090,a100`"),
            );
        }
        let card = Catalogue::builtin()
            .find(name)
            .map_err(|error| Failure::new(error.to_string()).with_hint(error.hint()))?;
        if !cards.iter().any(|known| known.name == card.name) {
            cards.push(card);
        }
    }
    Ok(cards)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_keep_their_order_and_stand_once() {
        let cards = cards_named("4090, h200,RTX 4090").expect("cards");
        let names: Vec<&str> = cards.iter().map(|card| card.name).collect();
        assert_eq!(names, ["RTX 4090", "H200"]);
    }

    #[test]
    fn an_unknown_card_is_refused_with_the_nearest_names_and_an_empty_one_with_an_example() {
        let refused = |names: &str| cards_named(names).expect_err("refused");
        let failure = refused("3090,409o");
        assert_eq!(failure.to_string(), "unknown card `409o`");
        assert!(failure.hint().is_some_and(|hint| hint.contains("4090")));
        for names in ["", "3090,", ",", "3090,,4090"] {
            assert!(refused(names).to_string().contains("missing"), "{names}");
        }
    }
}
