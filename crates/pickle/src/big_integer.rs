//! Integers of any length, decoded from bytes or decimal digits into the shortest two's complement.

/// A decoded integer.
pub(crate) enum Integer {
    Small(i64),
    /// Little-endian two's complement, without redundant sign bytes.
    Big(Vec<u8>),
}

/// Python refuses longer decimal texts too: converting them takes quadratic time.
const MAX_DIGITS: usize = 4300;

/// Decodes the operand of LONG1 and LONG4: little-endian two's complement.
pub(crate) fn from_bytes(bytes: &[u8]) -> Integer {
    let negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    let sign = if negative { 0xff } else { 0 };
    let mut length = bytes.len();
    while length > 0
        && bytes[length - 1] == sign
        && (length < 2 || (bytes[length - 2] & 0x80 != 0) == negative)
    {
        length -= 1;
    }
    if length <= 8 {
        let mut word = [sign; 8];
        word[..length].copy_from_slice(&bytes[..length]);
        Integer::Small(i64::from_le_bytes(word))
    } else {
        Integer::Big(bytes[..length].to_vec())
    }
}

/// Decodes the operand of INT and LONG: decimal digits.
pub(crate) fn from_digits(text: &[u8]) -> Option<Integer> {
    let text = std::str::from_utf8(text).ok()?.trim();
    if let Ok(small) = text.parse::<i64>() {
        return Some(Integer::Small(small));
    }
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.is_empty() || digits.len() > MAX_DIGITS {
        return None;
    }
    let mut bytes: Vec<u8> = Vec::new();
    for digit in digits.chars() {
        let mut carry = digit.to_digit(10)?;
        for byte in &mut bytes {
            let sum = u32::from(*byte) * 10 + carry;
            *byte = sum as u8;
            carry = sum >> 8;
        }
        if carry > 0 {
            bytes.push(carry as u8);
        }
    }
    bytes.push(0);
    if negative {
        let mut carry = true;
        for byte in &mut bytes {
            let (sum, over) = (!*byte).overflowing_add(u8::from(carry));
            *byte = sum;
            carry = over;
        }
    }
    Some(from_bytes(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small(integer: Integer) -> i64 {
        match integer {
            Integer::Small(value) => value,
            Integer::Big(bytes) => panic!("{bytes:?} is not small"),
        }
    }

    #[test]
    fn bytes_that_repeat_the_sign_do_not_make_an_integer_big() {
        assert_eq!(small(from_bytes(&[])), 0);
        assert_eq!(small(from_bytes(&[0xff])), -1);
        assert_eq!(small(from_bytes(&[0xff; 20])), -1);
        assert_eq!(small(from_bytes(&[5, 0, 0, 0, 0, 0, 0, 0, 0, 0])), 5);
        assert_eq!(small(from_bytes(&i64::MIN.to_le_bytes())), i64::MIN);
    }

    #[test]
    fn an_unsigned_64_bit_integer_needs_a_ninth_byte() {
        let mut bytes = u64::MAX.to_le_bytes().to_vec();
        bytes.push(0);
        assert!(matches!(from_bytes(&bytes), Integer::Big(same) if same == bytes));
    }

    #[test]
    fn digits_give_the_same_integer_as_bytes() {
        let Some(Integer::Big(bytes)) = from_digits(b"-18446744073709551616") else {
            panic!("not big");
        };
        assert_eq!(bytes, [0, 0, 0, 0, 0, 0, 0, 0, 0xff]);
        assert_eq!(
            small(from_digits(b"-9223372036854775808").unwrap()),
            i64::MIN
        );
        assert!(from_digits(b"12x").is_none());
        assert!(from_digits(&[b'9'; 5000]).is_none());
    }
}
