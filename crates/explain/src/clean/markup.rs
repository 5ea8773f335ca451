//! Tags and character references of HTML, as pasted from web pages, wikis and bug trackers.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memchr2;
use regex::{Captures, Regex};

/// Only tags that format text: messages have angle brackets of their own (`</torch_123>`).
static TAG: LazyLock<Option<Regex>> = LazyLock::new(|| {
    crate::families::compile(
        r"(?i)</?(?:a|b|blockquote|br|center|code|dd|div|dl|dt|em|font|h[1-6]|hr|i|kbd|li|mark|ol|p|pre|s|samp|small|span|strong|sub|sup|table|tbody|td|th|thead|tr|tt|u|ul|var)(?:\s[^<>]{0,300})?/?>",
    )
});
static REFERENCE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    crate::families::compile(r"&(?:#(\d{1,6})|#[xX]([0-9a-fA-F]{1,5})|(\w{2,6}));")
});

/// The line as a browser would show it: tags become spaces, references the characters they stand for.
pub fn without_markup(line: &str) -> Cow<'_, str> {
    if memchr2(b'<', b'&', line.as_bytes()).is_none() {
        return Cow::Borrowed(line);
    }
    let (Some(tag), Some(reference)) = (TAG.as_ref(), REFERENCE.as_ref()) else {
        return Cow::Borrowed(line);
    };
    match tag.replace_all(line, " ") {
        Cow::Borrowed(same) => reference.replace_all(same, character),
        Cow::Owned(plain) => Cow::Owned(reference.replace_all(&plain, character).into_owned()),
    }
}

fn character(found: &Captures) -> String {
    let number = |group: usize, radix: u32| {
        let digits = found.get(group)?.as_str();
        char::from_u32(u32::from_str_radix(digits, radix).ok()?)
    };
    let named = || {
        Some(match found.get(3)?.as_str().to_ascii_lowercase().as_str() {
            "lt" => '<',
            "gt" => '>',
            "amp" => '&',
            "quot" => '"',
            "apos" => '\'',
            "nbsp" => ' ',
            _ => return None,
        })
    };
    match number(1, 10).or_else(|| number(2, 16)).or_else(named) {
        // A line stays a line.
        Some(found) if found.is_control() => " ".to_owned(),
        Some(found) => found.to_string(),
        None => found[0].to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_and_references_are_shown_as_a_browser_does() {
        for (line, expected) in [
            ("<td>out of&nbsp;memory</td>", " out of memory "),
            ("a <b class=\"x\">20.00&#32;MiB</b>", "a  20.00 MiB "),
            ("1<br/>2", "1 2"),
            (
                "allocated &gt;&gt; reserved &amp; more",
                "allocated >> reserved & more",
            ),
        ] {
            assert_eq!(without_markup(line), expected);
        }
    }

    #[test]
    fn angle_brackets_of_messages_stay() {
        for line in [
            "unable to open shared memory object </torch_12_34>",
            "File \"<string>\", line 1, in <module>",
            "std::vector<int> & more; a < b && c > d",
            "[00:01<00:09,  1.00it/s]",
        ] {
            assert_eq!(without_markup(line), line);
        }
    }
}
