//! Why an export failed, in one sentence each.

use std::io;

use thiserror::Error;

/// Why an export failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReportError {
    #[error("cannot write: {0}")]
    Io(#[from] io::Error),
    #[error("there is no device {card}{}", listed(known))]
    NoSuchCard { card: u32, known: Vec<u32> },
    #[error("device {card} has {events} events, and no event {event}")]
    NoSuchEvent {
        card: u32,
        event: usize,
        events: usize,
    },
}

impl From<serde_json::Error> for ReportError {
    /// All map keys of our types are strings, so only writing can fail.
    fn from(error: serde_json::Error) -> Self {
        Self::Io(error.into())
    }
}

fn listed(cards: &[u32]) -> String {
    match cards {
        [] => ": none has memory or events".to_owned(),
        _ => {
            let numbers: Vec<String> = cards.iter().map(ToString::to_string).collect();
            format!(", only {}", numbers.join(", "))
        }
    }
}
