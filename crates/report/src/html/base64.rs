//! Bytes as text that can be embedded in a page.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let value = group
            .iter()
            .chain(&[0, 0])
            .take(3)
            .fold(0_usize, |value, byte| value << 8 | usize::from(*byte));
        for place in 0..4 {
            text.push(if place <= group.len() {
                char::from(ALPHABET[value >> (18 - 6 * place) & 63])
            } else {
                '='
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_encodes_as_the_standard_shows() {
        let examples = ["", "f", "fo", "foo", "foob", "fooba", "foobar"];
        let expected = [
            "", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy",
        ];
        assert_eq!(examples.map(|each| encode(each.as_bytes())), expected);
    }

    #[test]
    fn every_letter_is_reached() {
        assert_eq!(encode(&[0xff, 0xef, 0xbe]), "/+++");
    }
}
