//! The lines around a possible message, with line breaks and whitespace removed.
//!
//! Terminals wrap lines anywhere, editors at spaces, and boxes pad them. Without whitespace the text is
//! the same in all of these cases, so the patterns in [`crate::families`] contain none. A window is read
//! twice: once with line breaks after short lines, and once without any, since a table or a quotation may
//! be narrow.

/// A terminal does not wrap lines shorter than this: what follows is a new line.
const SHORTEST_WRAPPED: usize = 40;

/// The longest part of a message that is kept for display.
const LONGEST_TEXT: usize = 1200;

/// Some lines of one writer.
#[derive(Debug)]
pub struct Window<'a> {
    lines: Vec<&'a str>,
    squeezed: String,
    /// Where each line begins in `squeezed`.
    starts: Vec<usize>,
    /// The last line in which a message may begin.
    last_line: usize,
}

impl<'a> Window<'a> {
    /// `last_line` is the last in which messages may begin.
    pub fn new(lines: Vec<&'a str>, last_line: usize) -> Self {
        Self::with_breaks_below(SHORTEST_WRAPPED, lines, last_line)
    }

    /// The same text with all lines joined; `None` where nothing would differ.
    pub fn without_breaks(&self) -> Option<Self> {
        let mut characters = self.lines.split_last()?.1.iter();
        let has_short = characters.any(|line| line.chars().count() < SHORTEST_WRAPPED);
        has_short.then(|| Self::with_breaks_below(0, self.lines.clone(), self.last_line))
    }

    fn with_breaks_below(width_of_short: usize, lines: Vec<&'a str>, last_line: usize) -> Self {
        let mut squeezed = String::with_capacity(lines.iter().map(|line| line.len()).sum());
        let mut starts = Vec::with_capacity(lines.len());
        for line in &lines {
            starts.push(squeezed.len());
            let mut width = 0;
            for character in line.chars() {
                width += 1;
                if !is_blank(character) {
                    squeezed.push(character);
                }
            }
            if width < width_of_short {
                squeezed.push('\n');
            }
        }
        Self {
            lines,
            squeezed,
            starts,
            last_line,
        }
    }

    /// Whether a message may begin here.
    pub fn is_wanted(&self, start: usize) -> bool {
        start < self.start_of(self.last_line + 1)
    }

    /// All lines joined, without whitespace. Line breaks remain only after short lines.
    pub fn squeezed(&self) -> &str {
        &self.squeezed
    }

    pub fn lines(&self) -> &[&'a str] {
        &self.lines
    }

    /// The lines in which a message may begin: what begins later has a window of its own.
    pub fn wanted_lines(&self) -> std::ops::Range<usize> {
        0..self.lines.len().min(self.last_line.saturating_add(1))
    }

    /// A line without the sides of boxes and the marks of Markdown around it.
    pub fn undressed(&self, index: usize) -> &'a str {
        let line = self.lines.get(index).copied().unwrap_or_default();
        line.trim_matches(is_blank)
    }

    /// The line that contains an offset of the squeezed text.
    pub fn line_at(&self, offset: usize) -> usize {
        self.starts
            .partition_point(|start| *start <= offset)
            .saturating_sub(1)
    }

    /// Where a line begins in the squeezed text.
    pub fn start_of(&self, line: usize) -> usize {
        self.starts
            .get(line)
            .copied()
            .unwrap_or(self.squeezed.len())
    }

    /// The readable text between two offsets of the squeezed one, on one line.
    pub fn readable(&self, start: usize, end: usize) -> String {
        let first = self.line_at(start);
        let last = self.line_at(end.saturating_sub(1).max(start));
        let lines = self.lines.get(first..=last).unwrap_or_default();
        // Lines that a terminal wrapped all have the same width, and are joined again.
        let widths: Vec<usize> = lines.iter().map(|line| line.chars().count()).collect();
        let full = widths
            .split_last()
            .map(|(_, full)| full)
            .unwrap_or_default();
        // A prefix that was removed makes the first one shorter.
        let (first_width, rest) = full
            .split_first()
            .map_or((0, full), |(one, rest)| (*one, rest));
        let width = rest.first().copied().unwrap_or(first_width);
        let is_cut = rest.iter().all(|each| *each == width)
            && first_width <= width
            && width >= SHORTEST_WRAPPED;
        let mut text = String::new();
        for (index, line) in lines.iter().enumerate() {
            let is_first = index == 0;
            let begin = match is_first {
                true => skip_unblank(line, start.saturating_sub(self.start_of(first))),
                false => 0,
            };
            let stop = match index + 1 == lines.len() {
                true => skip_unblank(line, end.saturating_sub(self.start_of(last))),
                false => line.len(),
            };
            let piece = line.get(begin..stop.max(begin)).unwrap_or_default();
            if !is_first && !is_cut {
                text.push(' ');
            }
            text.push_str(piece);
            if text.len() > LONGEST_TEXT {
                break;
            }
        }
        let words: Vec<&str> = text
            .split(is_blank)
            .filter(|word| !word.is_empty())
            .collect();
        words.join(" ").chars().take(LONGEST_TEXT).collect()
    }
}

/// The offset in a line after the given number of bytes of its squeezed text.
fn skip_unblank(line: &str, bytes: usize) -> usize {
    let mut seen = 0;
    for (index, character) in line.char_indices() {
        if seen >= bytes && !is_blank(character) {
            return index;
        }
        if !is_blank(character) {
            seen += character.len_utf8();
        }
    }
    line.len()
}

/// Whitespace, the sides of boxes and tables, and the marks of Markdown.
fn is_blank(character: char) -> bool {
    character.is_whitespace() || matches!(character, '│' | '┃' | '▎' | '|' | '`' | '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_lines_are_one_text_and_short_lines_are_not() {
        let window = Window::new(
            vec![
                "RuntimeError: CUDA out of memory. Tried to al",
                "locate 20.00 MiB",
                "next",
            ],
            usize::MAX - 1,
        );
        assert_eq!(
            window.squeezed(),
            "RuntimeError:CUDAoutofmemory.Triedtoallocate20.00MiB\nnext\n"
        );
        assert_eq!(window.line_at(0), 0);
        assert_eq!(window.line_at(46), 1);
        assert_eq!(window.line_at(10_000), 2);
    }

    #[test]
    fn the_readable_text_is_joined_the_way_it_was_wrapped() {
        let cut = Window::new(
            vec![
                "RuntimeError: CUDA out of memory. Tried to al",
                "locate 20.00 MiB",
            ],
            usize::MAX - 1,
        );
        let end = cut.squeezed().len();
        assert_eq!(
            cut.readable(13, end),
            "CUDA out of memory. Tried to allocate 20.00 MiB"
        );
        let boxed = Window::new(
            vec![
                "│ OutOfMemoryError: CUDA out of memory. Tried to allocate      │",
                "│ 20.00 MiB (GPU 0; 8.00 GiB total capacity; 12.19 GiB already │",
                "│ allocated)",
            ],
            usize::MAX - 1,
        );
        assert_eq!(
            boxed.readable(17, boxed.squeezed().len()),
            "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 8.00 GiB total capacity; 12.19 \
             GiB already allocated)"
        );
    }
}
