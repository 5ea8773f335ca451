//! Spans of time as users type them: `90`, `90s`, `5m`, `1h30m`.

use std::time::Duration;

/// Reads a span of time; a number without a unit counts seconds.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    const SHAPE: &str = "a duration is a number and a unit, such as 90s, 5m or 1h30m";
    let text = text.trim();
    if text.is_empty() {
        return Err(SHAPE.to_owned());
    }
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits_end = rest
            .find(|character: char| !character.is_ascii_digit() && character != '.')
            .unwrap_or(rest.len());
        let (number, after_number) = rest.split_at(digits_end);
        let unit_end = after_number
            .find(|character: char| character.is_ascii_digit() || character == '.')
            .unwrap_or(after_number.len());
        let (unit, after_unit) = after_number.split_at(unit_end);
        let unit_seconds = match unit.trim() {
            "ms" => 0.001,
            "" | "s" | "sec" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3_600.0,
            "d" => 86_400.0,
            _ => return Err(SHAPE.to_owned()),
        };
        let value: f64 = number.parse().map_err(|_| SHAPE.to_owned())?;
        let part = Duration::try_from_secs_f64(value * unit_seconds)
            .map_err(|_| "that is too long".to_owned())?;
        total = total
            .checked_add(part)
            .ok_or_else(|| "that is too long".to_owned())?;
        rest = after_unit;
    }
    if total.is_zero() {
        return Err("a timeout of 0 would stop every script".to_owned());
    }
    Ok(total)
}

/// `90 s`, `2.5 s`, `0.2 s`: how a span is written in a sentence.
pub fn seconds(duration: Duration) -> String {
    let tenths = (duration.as_secs_f64() * 10.0).round() / 10.0;
    format!("{tenths} s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_add_up() {
        for (text, milliseconds) in [
            ("90", 90_000),
            ("90s", 90_000),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("500ms", 500),
            ("1.5s", 1_500),
        ] {
            assert_eq!(
                parse_duration(text),
                Ok(Duration::from_millis(milliseconds)),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_not_a_duration_is_refused() {
        for text in [
            "",
            "fast",
            "5x",
            "-3s",
            "0",
            "0s",
            "s",
            "1..5s",
            "99999999999999999999d",
        ] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn spans_are_written_in_seconds() {
        assert_eq!(seconds(Duration::from_secs(90)), "90 s");
        assert_eq!(seconds(Duration::from_millis(240)), "0.2 s");
    }
}
