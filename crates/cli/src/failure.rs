//! A failure of ours, or of what we were given: one sentence and, where there is one, a next step.

use std::fmt;

/// The exit code of a usage error and of our own failures.
pub const EXIT_FAILURE: u8 = 2;

/// The exit code of the answer "it does not fit".
pub const EXIT_DOES_NOT_FIT: u8 = 3;

/// An error as the user reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    message: String,
    hint: Option<String>,
}

impl Failure {
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: None,
        }
    }

    /// Adds what the user can do next.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// An error, its causes in one line, and after a blank line its hint.
pub fn render(error: &anyhow::Error) -> String {
    let mut text = format!("ghostgpu: {error:#}\n");
    let hint = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<Failure>())
        .and_then(Failure::hint);
    if let Some(hint) = hint {
        text.push_str(&format!("\nhint: {hint}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_one_sentence_and_then_its_hint() {
        let error = anyhow::Error::new(
            Failure::new("no card is called `3o60`").with_hint("try `ghostgpu gpus`"),
        );
        assert_eq!(
            render(&error),
            "ghostgpu: no card is called `3o60`\n\nhint: try `ghostgpu gpus`\n"
        );
    }

    #[test]
    fn causes_stand_in_the_same_line() {
        let error = anyhow::Error::new(std::io::Error::other("disk full")).context("cannot write");
        assert_eq!(render(&error), "ghostgpu: cannot write: disk full\n");
    }
}
