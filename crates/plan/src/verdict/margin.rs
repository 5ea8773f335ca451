//! How much of a card must be left for a job to count as fitting.

use ghostgpu_device::{DeviceSheet, Uncertainty};
use ghostgpu_rehearse::Prepared;

/// How much of a card must be left, as the user specifies it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Margin {
    Bytes(u64),
    /// Of the card's memory.
    Percent(f64),
}

impl Margin {
    /// The margin on a card of this size.
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
    /// How far the card may differ from its data sheet.
    pub uncertainty: Option<&'a Uncertainty>,
    /// What others use of it.
    pub reserve_bytes: u64,
    /// The margin that the user asked for; without one, it is the card's uncertainty.
    pub margin: Option<Margin>,
    /// The installed torch, in case no process reports its own.
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

    /// The part of the card that the job may use.
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
