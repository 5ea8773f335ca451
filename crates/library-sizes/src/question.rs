//! One line of a table: a function with the arguments that decide, and what it answered.

use std::fmt::{self, Display, Write};

/// A function and the arguments on which its answer depends, in words: `m=64 n=64 lda=64`.
///
/// Handles and addresses are left out. Equal questions are equal texts.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Question {
    pub function: String,
    pub arguments: String,
}

impl Question {
    pub fn new(function: &str) -> Self {
        Self {
            function: function.to_owned(),
            arguments: String::new(),
        }
    }

    /// Adds an argument. Texts must be without spaces: a space ends the argument.
    pub fn add(&mut self, name: &str, value: impl Display) -> &mut Self {
        append(&mut self.arguments, name, value);
        self
    }

    /// The value of a numeric argument.
    pub fn number(&self, name: &str) -> Option<i64> {
        value_of(&self.arguments, name)?.parse().ok()
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        value_of(&self.arguments, name)
    }

    /// The arguments' names and values.
    pub fn arguments(&self) -> impl Iterator<Item = (&str, &str)> {
        parts(&self.arguments)
    }
}

impl Display for Question {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}({})", self.function, self.arguments)
    }
}

/// What a function answered, in words: `elements=8320`, `device_bytes=512 host_bytes=0`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Answer(pub String);

impl Answer {
    pub fn add(&mut self, name: &str, value: impl Display) -> &mut Self {
        append(&mut self.0, name, value);
        self
    }

    pub fn number(&self, name: &str) -> Option<i64> {
        self.text(name)?.parse().ok()
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        value_of(&self.0, name)
    }

    /// The parts that are numbers.
    pub fn numbers(&self) -> impl Iterator<Item = (&str, i64)> {
        parts(&self.0).filter_map(|(name, value)| Some((name, value.parse().ok()?)))
    }

    /// This answer with the parts of `newer` added, or in place of those that both have.
    pub fn updated_with(&self, newer: &Self) -> Self {
        let mut updated = Self::default();
        for (name, value) in parts(&self.0) {
            updated.add(name, newer.text(name).unwrap_or(value));
        }
        for (name, value) in parts(&newer.0) {
            if self.text(name).is_none() {
                updated.add(name, value);
            }
        }
        updated
    }
}

impl Display for Answer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

fn append(text: &mut String, name: &str, value: impl Display) {
    if !text.is_empty() {
        text.push(' ');
    }
    // Writing to a string cannot fail.
    let _ = write!(text, "{name}={value}");
}

fn value_of<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    parts(text).find_map(|(word, value)| (word == name).then_some(value))
}

fn parts(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split(' ').filter_map(|word| word.split_once('='))
}

/// Numbers as `8x256x256`, the way shapes are written in a table.
pub(crate) fn joined(numbers: &[i64]) -> String {
    let words: Vec<String> = numbers.iter().map(i64::to_string).collect();
    words.join("x")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_found_again_by_name() {
        let mut question = Question::new("cusolverDnSgetrf_bufferSize");
        question.add("m", 64).add("n", 32).add("a", "csr(4,4)");
        assert_eq!(question.arguments, "m=64 n=32 a=csr(4,4)");
        assert_eq!(question.number("n"), Some(32));
        assert_eq!(question.number("a"), None);
        assert_eq!(question.text("a"), Some("csr(4,4)"));
        assert_eq!(question.text("lda"), None);
    }

    #[test]
    fn an_answer_in_parts_is_put_together() {
        let first = Answer("workspace_bytes=64".to_owned());
        let second = first.updated_with(&Answer("reserve_bytes=8".to_owned()));
        assert_eq!(second.0, "workspace_bytes=64 reserve_bytes=8");
        let third = second.updated_with(&Answer("workspace_bytes=32".to_owned()));
        assert_eq!(third.0, "workspace_bytes=32 reserve_bytes=8");
    }

    #[test]
    fn an_answer_can_hold_several_numbers() {
        let mut answer = Answer::default();
        answer.add("device_bytes", 512).add("host_bytes", 0);
        assert_eq!(answer.to_string(), "device_bytes=512 host_bytes=0");
        assert_eq!(answer.number("host_bytes"), Some(0));
    }
}
