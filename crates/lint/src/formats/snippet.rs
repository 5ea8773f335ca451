//! A line of the user's code with carets below it.

use unicode_width::UnicodeWidthStr;

use crate::source::Source;

/// Longer lines are shown in part.
const WIDEST: usize = 140;
/// How much of a long line is shown before the place.
const BEFORE: usize = 40;

/// The line that contains `range`, and a line of carets below it, both at terminal width.
pub fn snippet(source: &Source, range: &std::ops::Range<usize>) -> (String, String) {
    let line = source.line_at(range.start);
    let start_of_line = source.whole_lines(&(range.start..range.start)).start;
    let start = floor(line, range.start - start_of_line);
    let end = floor(line, range.end.saturating_sub(start_of_line)).max(start);
    // A line of a million characters is only measured in part.
    let is_far = start > 4 * WIDEST || line[..start].width() > WIDEST - BEFORE;
    let (from, has_more_before) = match is_far {
        true => (back(line, start, BEFORE), true),
        false => (0, false),
    };
    let mut shown = String::new();
    let mut carets = String::new();
    if has_more_before {
        shown.push('…');
        carets.push(' ');
    }
    for (at, character) in line[from..].char_indices() {
        if shown.width() >= WIDEST {
            shown.push('…');
            break;
        }
        let piece = visible(character);
        let mark = if (start..end).contains(&(from + at)) {
            "^"
        } else {
            " "
        };
        carets.push_str(&mark.repeat(piece.width()));
        shown.push_str(&piece);
    }
    if start == end {
        carets = " ".repeat(
            line[from..start]
                .chars()
                .map(|it| visible(it).width())
                .sum(),
        );
        carets.push('^');
    }
    (shown.trim_end().to_owned(), carets.trim_end().to_owned())
}

/// User text for one line of a terminal, with control characters escaped.
pub fn tame(text: &str) -> String {
    text.chars().map(visible).collect()
}

fn visible(character: char) -> String {
    match character {
        '\t' => "    ".to_owned(),
        // Bidirectional controls too: they can make a line look like another one.
        '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}'
        | '\u{feff}' => {
            format!("\\u{{{:x}}}", u32::from(character))
        }
        _ if character.is_control() => format!("\\x{:02x}", u32::from(character)),
        _ => character.to_string(),
    }
}

/// The last char boundary that is not after `byte`.
fn floor(line: &str, byte: usize) -> usize {
    let byte = byte.min(line.len());
    (0..=byte)
        .rev()
        .find(|&at| line.is_char_boundary(at))
        .unwrap_or(0)
}

/// The char boundary `count` characters before `byte`.
fn back(line: &str, byte: usize, characters: usize) -> usize {
    line[..byte]
        .char_indices()
        .rev()
        .nth(characters - 1)
        .map_or(0, |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, word: &str) -> (String, String) {
        let source = Source::script(text.as_bytes()).expect("text");
        let start = source.text().find(word).expect("there");
        snippet(&source, &(start..start + word.len()))
    }

    #[test]
    fn carets_are_below_their_place() {
        let (line, carets) = shown("a = 1\n\tx = noisy  # y\n", "noisy");
        assert_eq!(line, "    x = noisy  # y");
        assert_eq!(carets, "        ^^^^^");
    }

    #[test]
    fn wide_characters_get_wide_carets() {
        let (line, carets) = shown("文 = 模型(noisy)\n", "noisy");
        assert_eq!(line, "文 = 模型(noisy)");
        assert_eq!(carets, format!("{}^^^^^", " ".repeat(10)));
    }

    #[test]
    fn a_line_cannot_control_the_terminal() {
        let (line, carets) = shown("x = '\u{1b}[2J\u{202e}'; noisy\n", "noisy");
        assert_eq!(line, "x = '\\x1b[2J\\u{202e}'; noisy");
        assert!(carets.ends_with("^^^^^"));
        assert_eq!(carets.len(), line.len());
    }

    #[test]
    fn a_very_long_line_is_shown_around_its_place() {
        let text = format!(
            "x = [{}noisy, {}]\n",
            "1, ".repeat(100_000),
            "2, ".repeat(100_000)
        );
        let (line, carets) = shown(&text, "noisy");
        assert!(line.width() <= WIDEST + 1, "{line}");
        let at = carets.find('^').expect("carets");
        let pointed: String = line.chars().skip(at).take(5).collect();
        assert_eq!(pointed, "noisy");
    }

    #[test]
    fn a_range_over_several_lines_is_marked_to_the_end_of_its_first() {
        let source = Source::script(b"f(\n  1\n)\n").expect("text");
        let (line, carets) = snippet(&source, &(0..8));
        assert_eq!((line.as_str(), carets.as_str()), ("f(", "^^"));
    }

    #[test]
    fn an_empty_range_has_a_caret() {
        let source = Source::script(b"f(\n").expect("text");
        assert_eq!(snippet(&source, &(2..2)).1, "  ^");
    }
}
