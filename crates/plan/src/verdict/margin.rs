//! How much of a card has to be left for a job to fit with room.

use ghostgpu_device::{DeviceSheet, Uncertainty};
use ghostgpu_rehearse::Prepared;

/// How much of a card has to be left, as the user says it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Margin {
    Bytes(u64),
    /// Of the card's memory.
    Percent(f64),
}

impl Margin {
    /// The margin on a card of that size.
    pub fn bytes_of(self, total_bytes: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Percent(percent) => (total_bytes as f64 * percent / 100.0) as u64,
        }
    }
}

/// The card that a job is judged on.
#[derive(Clone, Debug)]
pub struct OnCard<'a> {
    pub sheet: &'a DeviceSheet,
    pub count: usize,
    /// How far it may be off its sheet.
    pub uncertainty: Option<&'a Uncertainty>,
    /// What others hold of it.
    pub reserve_bytes: u64,
    /// Asked for; else the margin is what is uncertain about the card.
    pub margin: Option<Margin>,
    /// The installed torch, where no process says so.
    pub torch: Option<&'a str>,
}

impl<'a> OnCard<'a> {
    /// The cards of a job.
    pub fn of(prepared: &'a Prepared, margin: Option<Margin>) -> Self {
        Self {
            sheet: prepared.card(),
            count: prepared.card_count(),
            uncertainty: prepared.uncertainty.as_ref(),
            reserve_bytes: prepared.reserve_bytes,
            margin,
            torch: prepared.torch.as_ref().map(|torch| torch.version.as_str()),
        }
    }

    /// What the job may have of it.
    pub fn capacity_bytes(&self) -> u64 {
        self.sheet.total_bytes.saturating_sub(self.reserve_bytes)
    }

    pub fn margin_bytes(&self) -> u64 {
        match self.margin {
            Some(margin) => margin.bytes_of(self.sheet.total_bytes),
            None => self.uncertainty.map_or(0, |uncertainty| uncertainty.bytes),
        }
    }

    /// Why there is a margin, in a few words.
    pub(super) fn margin_because(&self) -> &str {
        match (self.margin, self.uncertainty) {
            (None, Some(uncertainty)) => &uncertainty.because,
            _ => "--margin asks for it",
        }
    }
}
