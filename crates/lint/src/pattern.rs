//! File name patterns: `build`, `*_test.py`, `vendor/**`.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};

/// One pattern. Without a slash it matches any file or folder of that name; with one, a path below the
/// configuration's folder. A folder includes everything in it.
#[derive(Debug, Clone)]
pub struct Pattern {
    matcher: GlobMatcher,
    is_path: bool,
}

impl Pattern {
    /// `Err` says what is wrong with it.
    pub fn new(text: &str) -> Result<Self, String> {
        let plain = text.trim_start_matches("./").trim_end_matches('/');
        let is_path = plain.contains('/');
        let matcher = GlobBuilder::new(plain.trim_start_matches('/'))
            .literal_separator(true)
            .build()
            .map_err(|error| error.kind().to_string())?
            .compile_matcher();
        Ok(Self { matcher, is_path })
    }

    /// Whether a path, relative to the configuration's folder, matches.
    pub fn matches(&self, path: &Path) -> bool {
        match self.is_path {
            true => path.ancestors().any(|path| self.matcher.is_match(path)),
            false => path.iter().any(|name| self.matcher.is_match(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_names_or_paths() {
        let cases = [
            ("build", "a/build/x.py", true),
            ("build", "a/builds/x.py", false),
            ("*_test.py", "a/b/model_test.py", true),
            ("x.py", "x.py", true),
            ("vendor/", "a/vendor/x.py", true),
            ("a/vendor", "a/vendor/deep/x.py", true),
            ("a/vendor", "b/a/vendor/x.py", false),
            ("./a/*.py", "a/x.py", true),
            ("a/*.py", "a/b/x.py", false),
            ("a/**", "a/b/x.py", true),
            ("**/gen/*.py", "a/b/gen/x.py", true),
            ("/setup.py", "setup.py", true),
        ];
        for (pattern, path, expected) in cases {
            let found = Pattern::new(pattern)
                .expect(pattern)
                .matches(Path::new(path));
            assert_eq!(found, expected, "{pattern} on {path}");
        }
        assert!(Pattern::new("a[").is_err());
    }
}
