//! Lines inside one line, as in JSON logs and in Python's `repr`: with `\n` for line breaks.

use std::sync::LazyLock;

use memchr::memmem;
use regex::Regex;

/// A word that is a path on Windows has backslashes of its own.
static WINDOWS_PATH: LazyLock<Option<Regex>> = LazyLock::new(|| {
    crate::families::compile(r#"(?:\b[A-Za-z]:|(?:^|[\s"'=(])(?:\.{1,2}|~))\\[^\s"'|<>]*"#)
});

/// The lines that are escaped in one line; `None` for any other line.
pub fn escaped_lines(line: &[u8]) -> Option<Vec<String>> {
    memmem::find(line, br"\n")?;
    let text = String::from_utf8_lossy(line);
    let paths: Vec<_> = WINDOWS_PATH.as_ref()?.find_iter(&text).collect();
    let is_path = |at: usize| paths.iter().any(|path| path.range().contains(&at));
    // A frame after it decides, whatever its words look like.
    let is_traceback = text.contains(r#"\n  File \""#) || text.contains(r#"\n  File ""#);
    let breaks = memmem::find_iter(line, br"\n");
    let mut real = breaks.filter(|at| is_traceback || !is_path(*at)).peekable();
    real.peek()?;
    let mut lines = vec![String::new()];
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let last = lines.last_mut()?;
        if character != '\\' || (!is_traceback && is_path(at)) {
            last.push(character);
            continue;
        }
        // JSON inside JSON: several backslashes for one escape.
        while characters.next_if(|(_, next)| *next == '\\').is_some() {}
        match characters.next().map(|(_, escaped)| escaped) {
            Some('n') => lines.push(String::new()),
            Some('r') | None => {}
            Some('t') => last.push('\t'),
            Some(other @ ('"' | '\'' | '/')) => last.push(other),
            Some('u') => {
                let digits: String = characters.clone().take(4).map(|(_, digit)| digit).collect();
                let code = u32::from_str_radix(&digits, 16)
                    .ok()
                    .and_then(char::from_u32);
                match code.filter(|_| digits.len() == 4) {
                    Some(code) => {
                        last.push(code);
                        characters.nth(3);
                    }
                    None => last.push_str("\\u"),
                }
            }
            Some(other) => last.extend(['\\', other]),
        }
    }
    lines.retain(|line| !line.trim().is_empty());
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
    fn a_message_in_json_is_taken_apart_however_often_it_was_escaped() {
        for line in [
            r#"{"error": "out of memory\n- Free memory: 1GB"}"#,
            r#"{"error": "out of memory\\n- Free memory: 1GB"}"#,
            r#"{"error": "out of memory\\\\n- Free memory: \u0031GB"}"#,
        ] {
            let lines = escaped_lines(line.as_bytes()).expect("two lines");
            assert_eq!(
                lines,
                [r#"{"error": "out of memory"#, r#"- Free memory: 1GB"}"#]
            );
        }
    }

    #[test]
    fn other_lines_stay_as_they_are() {
        assert_eq!(escaped_lines(br#"  File "C:\new\table.py", line 3"#), None);
        assert_eq!(escaped_lines(br"D:\a\nets\net.py in D:\nn"), None);
        assert_eq!(escaped_lines(b"  File \"a.py\", line 3"), None);
        assert_eq!(escaped_lines(b""), None);
    }
}
