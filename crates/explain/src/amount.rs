//! Amounts of memory as messages print them, with their rounding error.

use serde::Serialize;

/// A printed number of bytes, and how far the true value may be from it.
///
/// PyTorch prints two decimals: `9.18 GiB` may be off by 5 MiB. Sums of such figures are compared within
/// their rounding, not to the byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Amount {
    pub bytes: u64,
    /// Half of the last printed digit.
    #[serde(rename = "rounded_by_bytes")]
    pub off_by: u64,
}

impl Amount {
    /// An amount that was printed in bytes.
    pub fn exact(bytes: u64) -> Self {
        Self { bytes, off_by: 0 }
    }

    /// The sum, with both rounding errors.
    pub fn plus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            off_by: self.off_by.saturating_add(other.off_by),
        }
    }

    /// The difference, with both rounding errors; `None` where it is negative by more than they explain.
    pub fn minus(self, other: Self) -> Option<Self> {
        let off_by = self.off_by.saturating_add(other.off_by);
        let is_below = self.bytes.saturating_add(off_by) < other.bytes;
        (!is_below).then(|| Self {
            bytes: self.bytes.saturating_sub(other.bytes),
            off_by,
        })
    }

    /// Certainly more than `other`, whatever was rounded.
    pub fn exceeds(self, other: Self) -> bool {
        self.bytes.saturating_sub(self.off_by) > other.bytes.saturating_add(other.off_by)
    }
}

impl std::fmt::Display for Amount {
    /// In the largest suitable unit, with two decimals.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&ghostgpu_text::human(self.bytes))
    }
}

/// Reads an amount at the start of `text`; spaces between number and unit are allowed.
///
/// All units are powers of two, including the `GB` of MPS and old TensorFlow. A value too large for any
/// machine (2^64 - 1 bytes, which PyTorch prints for "unknown") is not an amount.
pub fn read_amount(text: &str) -> Option<(Amount, &str)> {
    let (digits, decimals, rest) = read_number(text)?;
    let rest = rest.trim_start_matches(' ');
    let (unit_bytes, rest) = read_unit(rest)?;
    amount_of(digits, decimals, unit_bytes).map(|amount| (amount, rest))
}

/// Like [`read_amount`], with a default unit for numbers that have none.
pub fn read_amount_in(text: &str, unit_bytes: u64) -> Option<Amount> {
    if let Some((amount, _)) = read_amount(text) {
        return Some(amount);
    }
    let (digits, decimals, _) = read_number(text)?;
    amount_of(digits, decimals, unit_bytes)
}

/// Larger amounts are not real: 1 EiB.
const MOST: u128 = 1 << 60;

fn amount_of(digits: u128, decimals: u32, unit_bytes: u64) -> Option<Amount> {
    let scale = 10u128.pow(decimals);
    let unit = u128::from(unit_bytes);
    let bytes = (digits.checked_mul(unit)? + scale / 2) / scale;
    let off_by = match unit_bytes {
        1 => 0,
        _ => unit.div_ceil(2 * scale),
    };
    (bytes < MOST).then_some(Amount {
        bytes: bytes as u64,
        off_by: off_by as u64,
    })
}

/// All digits as one number, how many of them are decimals, and the rest of the text.
fn read_number(text: &str) -> Option<(u128, u32, &str)> {
    let mut digits: u128 = 0;
    let mut decimals = None;
    let mut has_groups = false;
    let mut count = 0;
    let mut end = 0;
    let bytes = text.as_bytes();
    for (index, &byte) in bytes.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                count += 1;
                // A number with more digits is not an amount of memory.
                if count > 24 {
                    return None;
                }
                digits = digits * 10 + u128::from(byte - b'0');
                decimals = decimals.map(|decimals: u32| decimals + 1);
                end = index + 1;
            }
            b'.' if decimals.is_none() && count > 0 => decimals = Some(0),
            // `4,294,967,296`, as CuPy prints it.
            b',' if decimals.is_none() && count > 0 && is_group(&bytes[index + 1..]) => {
                has_groups = true;
            }
            // `15,370,88`: groups that somebody put in by hand.
            b',' if has_groups && decimals.is_none() && is_fraction(&bytes[index + 1..]) => {}
            // `7,79`: a decimal comma, from the machine's locale.
            b',' if decimals.is_none() && count > 0 && is_fraction(&bytes[index + 1..]) => {
                decimals = Some(0);
            }
            _ => break,
        }
    }
    // `201. GiB`, as NumPy prints three digits.
    if decimals == Some(0) && bytes.get(end) == Some(&b'.') {
        end += 1;
    }
    (count > 0).then(|| (digits, decimals.unwrap_or(0), &text[end..]))
}

fn is_group(after_comma: &[u8]) -> bool {
    after_comma.len() >= 3
        && after_comma[..3].iter().all(u8::is_ascii_digit)
        && !after_comma.get(3).is_some_and(u8::is_ascii_digit)
}

fn is_fraction(after_comma: &[u8]) -> bool {
    let digits = after_comma.iter().take_while(|byte| byte.is_ascii_digit());
    (1..=2).contains(&digits.count())
}

/// Longer names before their own prefixes.
const UNITS: [(&str, u64); 21] = [
    ("bytes", 1),
    ("byte", 1),
    ("字节", 1),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("pib", 1 << 50),
    ("kb", 1 << 10),
    ("mb", 1 << 20),
    ("gb", 1 << 30),
    ("tb", 1 << 40),
    ("ki", 1 << 10),
    ("mi", 1 << 20),
    ("gi", 1 << 30),
    ("k", 1 << 10),
    ("m", 1 << 20),
    ("g", 1 << 30),
    ("t", 1 << 40),
    ("p", 1 << 50),
    ("b", 1),
];

fn read_unit(text: &str) -> Option<(u64, &str)> {
    UNITS.iter().find_map(|(name, bytes)| {
        let head = text.get(..name.len())?;
        head.eq_ignore_ascii_case(name)
            .then(|| (*bytes, &text[name.len()..]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;

    #[test]
    fn amounts_are_read_in_every_unit_that_messages_use() {
        for (text, bytes) in [
            ("20.00 MiB", 20 * MIB),
            ("20.00MiB)", 20 * MIB),
            ("1024.00 KiB", MIB),
            ("0 bytes free", 0),
            ("5.56 GB,", 5_970_004_541),
            ("7406166528 bytes.", 7_406_166_528),
            ("4,294,967,296 bytes", 4_294_967_296),
            ("32.00MiB (33554432B)", 32 * MIB),
            ("3.45G", 3_704_409_293),
            ("53312244kB", 53_312_244 << 10),
            ("1.25TiB", 5 << 38),
            ("7,50 GiB", 15 << 29),
            ("153,700,88kB", 15_370_088 << 10),
        ] {
            let found = read_amount(text).map(|(amount, _)| amount.bytes);
            assert_eq!(found, Some(bytes), "{text}");
        }
    }

    #[test]
    fn text_that_is_not_an_amount_is_not_read() {
        for text in [
            "",
            "GiB",
            "12 apples",
            "17179869184.00 GiB",
            "999999999999999999999999999999 GiB",
            ".",
        ] {
            assert_eq!(read_amount(text), None, "{text}");
        }
    }

    #[test]
    fn rounding_is_half_of_the_last_digit() {
        let amount = |text| read_amount(text).map(|found| found.0).expect("an amount");
        assert_eq!(amount("1.00 GiB").off_by, (GIB / 200) + 1);
        assert_eq!(amount("24 GiB").off_by, GIB / 2);
        assert_eq!(amount("24 bytes").off_by, 0);
    }

    #[test]
    fn a_difference_below_zero_is_one_only_beyond_rounding() {
        let (small, large) = (
            Amount {
                bytes: 10,
                off_by: 1,
            },
            Amount {
                bytes: 12,
                off_by: 1,
            },
        );
        assert_eq!(
            small.minus(large),
            Some(Amount {
                bytes: 0,
                off_by: 2
            })
        );
        assert_eq!(small.minus(Amount::exact(12)), None);
        assert!(!large.exceeds(small));
        assert!(Amount::exact(13).exceeds(small));
    }
}
