//! `--margin`: how much of a card must be left.

use ghostgpu_plan::verdict::Margin;
use ghostgpu_text::parse_size;

/// A size, or a part of the card: `1GiB`, `5%`.
pub fn parse_margin(text: &str) -> Result<Margin, String> {
    // `parse_size` refuses 0, which is a valid margin.
    if text.trim() == "0" {
        return Ok(Margin::Bytes(0));
    }
    let Some(number) = text.trim().strip_suffix('%') else {
        return parse_size(text)
            .map(Margin::Bytes)
            .map_err(|problem| format!("{problem}; a part of the card is written `5%`"));
    };
    let percent: f64 = number
        .trim()
        .parse()
        .map_err(|_| format!("`{number}` is not a number"))?;
    match (0.0..100.0).contains(&percent) {
        true => Ok(Margin::Percent(percent)),
        false => Err("a part of the card is between 0% and 100%".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_margin_is_a_size_or_a_part_of_the_card() {
        for (text, expected) in [
            ("1GiB", Some(Margin::Bytes(1 << 30))),
            ("5%", Some(Margin::Percent(5.0))),
            ("2.5 %", Some(Margin::Percent(2.5))),
            ("0", Some(Margin::Bytes(0))),
            ("0%", Some(Margin::Percent(0.0))),
            ("100%", None),
            ("-1%", None),
            ("NaN%", None),
            ("a lot", None),
            ("%", None),
        ] {
            assert_eq!(parse_margin(text).ok(), expected, "{text}");
        }
    }
}
