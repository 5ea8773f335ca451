//! Amounts of memory: parsing and formatting.

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

/// Reads `11GiB`, `11GB` (decimal), `24564MiB`, `11g` (a lone letter is binary) or plain bytes.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits_end = text
        .find(|character: char| !character.is_ascii_digit() && character != '.' && character != '_')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits_end);
    let number = number.replace('_', "");
    let unit_bytes = unit_bytes(unit.trim())
        .ok_or_else(|| format!("`{}` is not a unit, use GiB, MiB, GB or MB", unit.trim()))?;
    let bytes = match number.split_once('.') {
        None => number
            .parse::<u64>()
            .map_err(|_| "a size is a number and a unit, such as 11GiB".to_owned())?
            .checked_mul(unit_bytes),
        // A fraction of a unit need not be exact: 11.63GiB stands for "about that much".
        Some(_) => number
            .parse::<f64>()
            .map_err(|_| "a size is a number and a unit, such as 11GiB".to_owned())
            .map(|value| (value * unit_bytes as f64).round())
            .map(|value| (value < u64::MAX as f64).then_some(value as u64))?,
    };
    match bytes {
        None => Err("that is more memory than 64 bits can count".to_owned()),
        Some(0) => Err("a size is more than 0 bytes".to_owned()),
        Some(bytes) => Ok(bytes),
    }
}

/// No card of this century has less memory than this, so a smaller number probably lacks its unit.
const LEAST_CARD_BYTES: u64 = 16 * MIB;
/// Far more than any card has, and the most that the addresses of a virtual one allow.
const MOST_CARD_BYTES: u64 = 16 * TIB;

/// Reads a card's memory, as [`parse_size`] does, and refuses what no card can have.
pub fn parse_card_memory(text: &str) -> Result<u64, String> {
    let bytes = parse_size(text)?;
    let typed = text.trim();
    if bytes > MOST_CARD_BYTES {
        return Err(format!(
            "{} is more than any card has: at most {} can be simulated",
            human(bytes),
            human(MOST_CARD_BYTES)
        ));
    }
    if bytes >= LEAST_CARD_BYTES {
        return Ok(bytes);
    }
    let has_unit = typed.contains(|character: char| character.is_ascii_alphabetic());
    // People think of cards in GiB, and nvidia-smi writes MiB.
    let unit = if bytes < 1_000 { "GiB" } else { "MiB" };
    Err(match has_unit {
        true => format!("{} is less than any card has", human(bytes)),
        false => format!(
            "{typed} without a unit is {} bytes: did you mean {typed}{unit}?",
            grouped(bytes)
        ),
    })
}

fn unit_bytes(unit: &str) -> Option<u64> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "" | "b" | "byte" | "bytes" => 1,
        "k" | "kib" => KIB,
        "m" | "mib" => MIB,
        "g" | "gib" => GIB,
        "t" | "tib" => TIB,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return None,
    })
}

/// The size in the largest unit that leaves at least one: `1.50 GiB`, `20.00 MiB`, `512 bytes`.
pub fn human(bytes: u64) -> String {
    with_decimals(bytes, 2)
}

/// The size with one decimal, for narrow columns: `1.5 GiB`, `20.0 MiB`, `512 bytes`.
pub fn human_in_few(bytes: u64) -> String {
    with_decimals(bytes, 1)
}

fn with_decimals(bytes: u64, decimals: usize) -> String {
    let (unit_bytes, unit) = match bytes {
        TIB.. => (TIB, "TiB"),
        GIB.. => (GIB, "GiB"),
        MIB.. => (MIB, "MiB"),
        KIB.. => (KIB, "KiB"),
        1 => return "1 byte".to_owned(),
        _ => return format!("{bytes} bytes"),
    };
    format!("{:.decimals$} {unit}", bytes as f64 / unit_bytes as f64)
}

/// A change with its sign: `+1.50 GiB`, `-20.00 MiB`, `0`.
pub fn signed_change(before: u64, after: u64) -> String {
    match after.abs_diff(before) {
        0 => "0".to_owned(),
        bytes if after < before => format!("-{}", human(bytes)),
        bytes => format!("+{}", human(bytes)),
    }
}

/// `10,866,913,280`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 step`, `3 steps`, `1,000 steps`.
pub fn counted(number: u64, one: &str, many: &str) -> String {
    let word = if number == 1 { one } else { many };
    format!("{} {word}", grouped(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_and_decimal_units_are_told_apart() {
        for (text, bytes) in [
            ("11GiB", 11 << 30),
            ("11gib", 11 << 30),
            ("11g", 11 << 30),
            ("11 GiB", 11 << 30),
            ("11GB", 11_000_000_000),
            ("24564MiB", 24564 << 20),
            ("1.5GiB", 3 << 29),
            ("80k", 80 << 10),
            ("1TiB", 1 << 40),
            ("12_884_901_888", 12 << 30),
            ("1024", 1024),
            ("7b", 7),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_size_is_refused() {
        for text in [
            "",
            "GiB",
            "11XB",
            "-1GiB",
            "0",
            "0GiB",
            "1.2.3GiB",
            "99999999TiB",
            "1e3",
            ".",
            "1..GiB",
        ] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_have_two_decimals_in_the_largest_unit_that_leaves_at_least_one() {
        let cases = include_str!("../sizes.tsv");
        for line in cases.lines().filter(|line| !line.starts_with('#')) {
            let (bytes, text) = line.split_once('\t').expect("two columns");
            assert_eq!(human(bytes.parse().expect("a number")), text);
        }
        assert_eq!(human(u64::MAX), "16777216.00 TiB");
    }

    #[test]
    fn narrow_sizes_have_one_decimal() {
        assert_eq!(human_in_few(3 << 29), "1.5 GiB");
        assert_eq!(human_in_few(100), "100 bytes");
    }

    #[test]
    fn one_thing_is_counted_in_the_singular() {
        assert_eq!(counted(1, "step", "steps"), "1 step");
        assert_eq!(counted(0, "step", "steps"), "0 steps");
        assert_eq!(counted(1_000, "step", "steps"), "1,000 steps");
    }

    #[test]
    fn a_change_has_a_sign_unless_there_is_none() {
        assert_eq!(signed_change(30, 0), "-30 bytes");
        assert_eq!(signed_change(0, 2 << 20), "+2.00 MiB");
        assert_eq!(signed_change(7, 7), "0");
    }

    #[test]
    fn digits_are_grouped_by_three() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(10_866_913_280), "10,866,913,280");
    }

    #[test]
    fn a_cards_memory_is_what_a_card_can_have() {
        for (text, bytes) in [
            ("16GiB", 16 << 30),
            ("24564MiB", 24_564 << 20),
            ("11811160064", 11 << 30),
            ("16TiB", 16 << 40),
        ] {
            assert_eq!(parse_card_memory(text), Ok(bytes), "{text}");
        }
        for (text, message) in [
            ("16", "16 without a unit is 16 bytes: did you mean 16GiB?"),
            (
                "11.6",
                "11.6 without a unit is 12 bytes: did you mean 11.6GiB?",
            ),
            (
                "24564",
                "24564 without a unit is 24,564 bytes: did you mean 24564MiB?",
            ),
            ("12KiB", "12.00 KiB is less than any card has"),
            (
                "999999TB",
                "909493.79 TiB is more than any card has: at most 16.00 TiB can be simulated",
            ),
            ("0", "a size is more than 0 bytes"),
            (
                "16 apples",
                "`apples` is not a unit, use GiB, MiB, GB or MB",
            ),
        ] {
            assert_eq!(parse_card_memory(text), Err(message.to_owned()), "{text}");
        }
    }
}
