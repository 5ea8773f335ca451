//! Sentences on one line each.

use ghostgpu_text::{Sheet, columns};

/// At most this many are shown, even if there is room for more.
const MOST_SENTENCES: usize = 4;

/// Adds the first sentences, each on one line, and the number of the others.
pub fn add(sheet: &mut Sheet, label: &str, sentences: &[String]) {
    add_at_most(sheet, label, sentences, MOST_SENTENCES);
}

/// The same with at most `most` sentences.
pub fn add_at_most(sheet: &mut Sheet, label: &str, sentences: &[String], most: usize) {
    let width = sheet.text_width();
    let most = most.min(MOST_SENTENCES);
    let shown = match sentences.len() {
        // A line that says "1 more" takes as much room as the sentence itself.
        count if count == most + 1 => count,
        _ => most,
    };
    let mut lines: Vec<String> = sentences
        .iter()
        .take(shown)
        .map(|sentence| one_line(sentence, width))
        .collect();
    let more = sentences.len().saturating_sub(shown);
    if more > 0 {
        lines.push(format!("… {more} more: --verbose"));
    }
    sheet.section(label, lines);
}

/// A sentence on one line. If it is too long, it is cut after a clause, or else after a word, and ends with `…`.
pub fn one_line(sentence: &str, width: usize) -> String {
    const ENDS_OF_CLAUSES: [&str; 6] = [": ", "; ", ", so ", ", because ", " because ", " ("];
    let all_columns = width;
    let sentence: String = sentence.split_whitespace().collect::<Vec<_>>().join(" ");
    if columns(&sentence) <= width {
        return sentence;
    }
    // Wide characters take two columns, so fewer of them fit.
    let width = (width * sentence.chars().count() / columns(&sentence)).min(width);
    // Room for a space and `…`.
    let room = width.saturating_sub(2);
    let cut = sentence
        .char_indices()
        .nth(room + 1)
        .map_or(sentence.len(), |(at, _)| at);
    let head = &sentence[..cut];
    let clause = ENDS_OF_CLAUSES
        .iter()
        .filter_map(|end| head.rfind(end))
        .max()
        .filter(|&at| head[..at].chars().count() * 2 > width);
    let at = clause.or_else(|| head.rfind(' ')).unwrap_or(0);
    match at {
        0 => ghostgpu_text::shortened(&sentence, all_columns, all_columns),
        at => format!("{} …", head[..at].trim_end_matches([',', ';', ':', ' '])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_sentence_ends_after_a_clause_or_a_word() {
        for (sentence, expected) in [
            ("short enough", "short enough"),
            (
                "no pivot is zero because the matrix is taken to be regular",
                "no pivot is zero …",
            ),
            (
                "all tensors on the card are taken to be as long as can be",
                "all tensors on the card are …",
            ),
            (
                "a: b that goes on for more than the line is wide",
                "a: b that goes on for more …",
            ),
            (
                "averyveryverylongwordthatdoesnotend-anywhere",
                "averyveryverylongwordthatdoes…",
            ),
        ] {
            assert_eq!(one_line(sentence, 30), expected);
        }
    }

    #[test]
    fn sentences_that_are_not_shown_are_counted() {
        let shown = |count: usize| {
            let mut sheet = Sheet::default();
            let sentences: Vec<String> = (0..count).map(|each| format!("s{each}")).collect();
            add(&mut sheet, "assumes", &sentences);
            sheet
                .render()
                .lines()
                .map(|line| line[15..].to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(shown(2), ["s0", "s1"]);
        assert_eq!(shown(5), ["s0", "s1", "s2", "s3", "s4"]);
        assert_eq!(shown(6), ["s0", "s1", "s2", "s3", "… 2 more: --verbose"]);
    }
}
