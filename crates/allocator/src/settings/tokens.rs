//! Splits a settings text into tokens, and reads numbers as C++ does.

/// `,` `:` `[` `]`, and the text between them without whitespace.
pub(super) fn cut(text: &str, is_blank: fn(char) -> bool) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut current = String::new();
    for letter in text.chars() {
        if matches!(letter, ',' | ':' | '[' | ']') {
            if !current.is_empty() {
                tokens.push(std::mem::take(&mut current));
            }
            tokens.push(letter.to_string());
        } else if !is_blank(letter) {
            current.push(letter);
        }
    }
    if !current.is_empty() {
        tokens.push(current);
    }
    tokens
}

/// Why a number could not be read: there is none, or it does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadNumber {
    None,
    OutOfRange,
}

fn integer_prefix(text: &str) -> Option<(bool, &str)> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let end = digits
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(digits.len());
    (end > 0).then(|| (negative, &digits[..end]))
}

/// `std::stoull`: the longest prefix; a minus sign wraps.
pub(super) fn unsigned(text: &str) -> Result<u64, BadNumber> {
    let (negative, digits) = integer_prefix(text).ok_or(BadNumber::None)?;
    let value: u64 = digits.parse().map_err(|_| BadNumber::OutOfRange)?;
    Ok(if negative {
        value.wrapping_neg()
    } else {
        value
    })
}

/// `std::stoi`, put into an unsigned size: the longest prefix, 32 bits, negative values wrap.
pub(super) fn int_as_size(text: &str) -> Result<u64, BadNumber> {
    let (negative, digits) = integer_prefix(text).ok_or(BadNumber::None)?;
    let value: i64 = digits.parse().map_err(|_| BadNumber::OutOfRange)?;
    let value = if negative { -value } else { value };
    let value = i32::try_from(value).map_err(|_| BadNumber::OutOfRange)?;
    Ok(i64::from(value) as u64)
}

/// `std::stod`: the longest prefix that is a decimal number.
pub(super) fn double(text: &str) -> Result<f64, BadNumber> {
    (1..=text.len())
        .rev()
        .filter(|&end| text.is_char_boundary(end))
        .find_map(|end| text[..end].parse::<f64>().ok())
        .ok_or(BadNumber::None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_cxx_reads_them() {
        assert_eq!(unsigned("64;foo"), Ok(64));
        assert_eq!(unsigned("-1"), Ok(u64::MAX));
        assert_eq!(unsigned("abc"), Err(BadNumber::None));
        assert_eq!(unsigned("99999999999999999999"), Err(BadNumber::OutOfRange));
        assert_eq!(int_as_size("-1"), Ok(u64::MAX));
        assert_eq!(int_as_size("4294967296"), Err(BadNumber::OutOfRange));
        assert_eq!(double("0.5abc"), Ok(0.5));
        assert_eq!(double("x"), Err(BadNumber::None));
    }

    #[test]
    fn signs_and_brackets_are_tokens_of_their_own() {
        assert_eq!(
            cut("a: [1:2 ,>:3]", char::is_whitespace).join(" "),
            "a : [ 1 : 2 , > : 3 ]"
        );
    }
}
