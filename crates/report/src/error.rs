//! Why nothing could be written: one sentence each.

use std::io;

use thiserror::Error;

/// Why an export failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReportError {
    #[error("cannot write: {0}")]
    Io(#[from] io::Error),
    #[error("the snapshot has no device {device}; it has {}", listed(known))]
    NoSuchDevice { device: usize, known: Vec<usize> },
    #[error("device {device} has {events} events, and no event {event}")]
    NoSuchEvent {
        device: usize,
        event: usize,
        events: usize,
    },
}

impl From<serde_json::Error> for ReportError {
    /// Our types have no maps with other keys than texts, so only writing can fail.
    fn from(error: serde_json::Error) -> Self {
        Self::Io(error.into())
    }
}

fn listed(devices: &[usize]) -> String {
    match devices {
        [] => "none with memory or events".to_owned(),
        _ => devices
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", "),
    }
}
