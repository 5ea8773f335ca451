//! Writes edits of a cell's code into its JSON, in the file's own style.

use std::ops::Range;

use super::cells::{Code, Piece, raw_byte};
use crate::finding::Edit;

/// What to replace in the JSON, and with what. The edits are relative to the start of the cell's code, in
/// order, and do not overlap.
pub fn edited(json: &str, code: &Code, edits: &[Edit]) -> (Range<usize>, String) {
    match code {
        Code::Text(piece) => (piece.raw.clone(), edited_text(json, piece, edits)),
        Code::Lines { raw, pieces } => (raw.clone(), edited_lines(json, raw, pieces, edits)),
    }
}

fn edited_text(json: &str, piece: &Piece, edits: &[Edit]) -> String {
    let mut text = String::new();
    let mut copied = piece.raw.start;
    for edit in edits {
        let start = raw_byte(json, piece, edit.range.start);
        let quoted = literal(&edit.text, json.is_ascii());
        text.push_str(&json[copied..start]);
        text.push_str(&quoted[1..quoted.len() - 1]);
        copied = raw_byte(json, piece, edit.range.end);
    }
    text.push_str(&json[copied..piece.raw.end]);
    text
}

fn edited_lines(json: &str, raw: &Range<usize>, pieces: &[Piece], edits: &[Edit]) -> String {
    let separator = separator(json, raw, pieces);
    let mut text = match pieces.first() {
        Some(first) => json[raw.start..first.raw.start].to_owned(),
        None => "[".to_owned(),
    };
    let mut is_first = true;
    let mut before: Option<usize> = None;
    for group in groups(pieces, edits) {
        let old = &pieces[group.pieces.clone()];
        let new = match group.edits.is_empty() {
            true => vec![json[old[0].raw.clone()].to_owned()],
            false => new_lines(json, old, &group, &edits[group.edits.clone()]),
        };
        for (index, line) in new.iter().enumerate() {
            // Two adjacent pieces keep their separator.
            let was_side_by_side = index == 0 && before == Some(group.pieces.start);
            if !is_first {
                text.push_str(match was_side_by_side {
                    true => &json[pieces[group.pieces.start - 1].raw.end..old[0].raw.start],
                    false => &separator,
                });
            }
            text.push_str(line);
            is_first = false;
        }
        if !new.is_empty() {
            before = Some(group.pieces.end);
        }
    }
    match pieces.last() {
        Some(last) if !is_first => text.push_str(&json[last.raw.end..raw.end]),
        Some(_) => return "[]".to_owned(),
        None => text.push(']'),
    }
    text
}

/// Pieces that change together, with their edits, or one unchanged piece.
struct Group {
    pieces: Range<usize>,
    edits: Range<usize>,
}

fn groups(pieces: &[Piece], edits: &[Edit]) -> Vec<Group> {
    let mut groups: Vec<Group> = (0..pieces.len())
        .map(|index| Group {
            pieces: index..index + 1,
            edits: 0..0,
        })
        .collect();
    if groups.is_empty() {
        return vec![Group {
            pieces: 0..0,
            edits: 0..edits.len(),
        }];
    }
    for (index, edit) in edits.iter().enumerate() {
        let starts = |group: &Group| pieces[group.pieces.start].code.start;
        let first = groups
            .partition_point(|group| starts(group) <= edit.range.start)
            .saturating_sub(1);
        let last = match edit.range.is_empty() {
            true => first,
            false => groups
                .partition_point(|group| starts(group) < edit.range.end)
                .saturating_sub(1)
                .max(first),
        };
        let had = groups[first..=last]
            .iter()
            .find(|group| !group.edits.is_empty())
            .map_or(index, |group| group.edits.start);
        let joined = Group {
            pieces: groups[first].pieces.start..groups[last].pieces.end,
            edits: had..index + 1,
        };
        groups.splice(first..=last, [joined]);
    }
    groups
}

/// The strings of a group after its edits; an unchanged line is written as it was.
fn new_lines(json: &str, old: &[Piece], group: &Group, edits: &[Edit]) -> Vec<String> {
    let decoded: Vec<String> = old
        .iter()
        .map(|piece| serde_json::from_str(&json[piece.raw.clone()]).unwrap_or_default())
        .collect();
    let start = old.first().map_or(0, |piece| piece.code.start);
    debug_assert!(group.edits.len() == edits.len());
    let whole = decoded.concat();
    let mut text = String::new();
    let mut copied = 0;
    for edit in edits {
        text.push_str(&whole[copied..edit.range.start - start]);
        text.push_str(&edit.text);
        copied = edit.range.end - start;
    }
    text.push_str(&whole[copied..]);
    text.split_inclusive('\n')
        .map(|line| match decoded.iter().position(|old| old == line) {
            Some(index) => json[old[index].raw.clone()].to_owned(),
            None => literal(line, json.is_ascii()),
        })
        .collect()
}

/// The separator between two lines of a list in this style.
fn separator(json: &str, raw: &Range<usize>, pieces: &[Piece]) -> String {
    match pieces {
        [first, second, ..] => json[first.raw.end..second.raw.start].to_owned(),
        [only] => {
            let space = &json[raw.start + 1..only.raw.start];
            match space.is_empty() {
                true => ", ".to_owned(),
                false => format!(",{space}"),
            }
        }
        [] => ", ".to_owned(),
    }
}

/// A JSON string; stays ASCII if the whole file is ASCII.
fn literal(text: &str, is_ascii: bool) -> String {
    let quoted = serde_json::to_string(text).unwrap_or_else(|_| "\"\"".to_owned());
    if !is_ascii || quoted.is_ascii() {
        return quoted;
    }
    let mut escaped = String::new();
    for character in quoted.chars() {
        if character.is_ascii() {
            escaped.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            escaped.push_str(&format!("\\u{unit:04x}"));
        }
    }
    escaped
}
