//! Escapes text for the page, because names in a recording are untrusted.

use std::fmt;

/// Displays its text escaped for HTML, also inside quoted attributes.
pub(super) struct Escaped<'a>(pub &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => formatter.write_str("&amp;")?,
                '<' => formatter.write_str("&lt;")?,
                '>' => formatter.write_str("&gt;")?,
                '"' => formatter.write_str("&quot;")?,
                '\'' => formatter.write_str("&#39;")?,
                // Ends the text early in some readers, and is invisible in all.
                '\0' => formatter.write_str("\u{fffd}")?,
                other => write!(formatter, "{other}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_that_could_begin_or_end_a_tag_or_an_attribute() {
        let text = Escaped("</script><img src=x onerror='a'>\"&\0").to_string();
        assert_eq!(
            text,
            "&lt;/script&gt;&lt;img src=x onerror=&#39;a&#39;&gt;&quot;&amp;\u{fffd}"
        );
    }
}
