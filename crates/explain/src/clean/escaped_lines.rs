//! A traceback inside one line, as in JSON logs: with `\\n` for line breaks.

use memchr::memmem;

/// The lines of a traceback that is escaped in one line; `None` for any other line.
pub fn escaped_lines(line: &[u8]) -> Option<Vec<String>> {
    // A path such as `C:\new` has the same two characters: only a frame after them decides.
    let is_escaped = memmem::find(line, br#"\n  File \""#).is_some();
    let is_quoted = memmem::find(line, br#"\n  File ""#).is_some();
    if !is_escaped && !is_quoted {
        return None;
    }
    let text = String::from_utf8_lossy(line);
    let mut lines = vec![String::new()];
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let last = lines.last_mut()?;
        if character != '\\' {
            last.push(character);
            continue;
        }
        match characters.next() {
            Some('n') => lines.push(String::new()),
            Some('r') | None => {}
            Some('t') => last.push('\t'),
            // A backslash, a quotation mark, or something that was not escaped.
            Some(other @ ('\\' | '"' | '\'' | '/')) => last.push(other),
            Some(other) => last.extend(['\\', other]),
        }
    }
    lines.retain(|line| !line.is_empty());
    Some(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceback_in_json_is_taken_apart() {
        let line =
            br#"{"msg": "Traceback:\n  File \"a.py\", line 3, in f\n    x = 1\nRuntimeError: y"}"#;
        assert_eq!(
            escaped_lines(line).expect("a traceback"),
            [
                r#"{"msg": "Traceback:"#,
                r#"  File "a.py", line 3, in f"#,
                "    x = 1",
                r#"RuntimeError: y"}"#,
            ]
        );
    }

    #[test]
    fn other_lines_stay_as_they_are() {
        assert_eq!(escaped_lines(br"  File \new\table.py"), None);
        assert_eq!(escaped_lines(b"  File \"a.py\", line 3"), None);
        assert_eq!(escaped_lines(b""), None);
    }
}
