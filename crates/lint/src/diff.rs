//! What fixes would change, as a unified diff.

use similar::TextDiff;

/// The changes of one file, for `patch -p0`; empty if there are none.
pub fn unified(path: &str, before: &str, after: &str) -> String {
    if before == after {
        return String::new();
    }
    TextDiff::from_lines(before, after)
        .unified_diff()
        .context_radius(3)
        .header(path, path)
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changes_is_shown() {
        assert_eq!(unified("a.py", "x\n", "x\n"), "");
        let shown = unified("a.py", "1\n2\n3\n4\n5\nx", "1\n2\n3\n4\n5\ny");
        assert_eq!(
            shown,
            "--- a.py\n+++ a.py\n@@ -3,4 +3,4 @@\n 3\n 4\n 5\n-x\n\\ No newline at end of file\n+y\n\\ No newline at end of file\n"
        );
    }
}
