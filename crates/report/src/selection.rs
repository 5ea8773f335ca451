//! Which cards an export shows, and at which moment.

use ghostgpu_ledger::{CardLedger, Moment};
use ghostgpu_recording::{Allocation, CardMemory, Recording, Source};

use crate::error::ReportError;

/// The moment to export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum At {
    /// Each card at its own peak.
    #[default]
    Peak,
    /// After the last event.
    End,
    /// After one event of one card; other cards are left out.
    Event { card: u32, event: usize },
}

/// Which cards to export, and at which moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Selection {
    pub at: At,
    /// Only this card.
    pub card: Option<u32>,
}

/// The cards that are exported, in order.
pub(crate) fn cards(
    recording: &Recording,
    only: Option<u32>,
) -> Result<Vec<&CardMemory>, ReportError> {
    let chosen: Vec<&CardMemory> = recording
        .cards
        .iter()
        .filter(|card| only.is_none_or(|only| card.index == only))
        .collect();
    match only {
        Some(card) if chosen.is_empty() => Err(ReportError::NoSuchCard {
            card,
            known: recording.cards.iter().map(|card| card.index).collect(),
        }),
        _ => Ok(chosen),
    }
}

/// The cards with their moments.
pub(crate) fn chosen(
    recording: &Recording,
    selection: Selection,
) -> Result<Vec<(CardLedger<'_>, Moment)>, ReportError> {
    let only = match selection.at {
        At::Event { card, .. } => Some(card),
        At::Peak | At::End => selection.card,
    };
    cards(recording, only)?
        .into_iter()
        .map(|card| {
            let ledger = CardLedger::new(recording, card);
            let moment = match selection.at {
                At::Peak => ledger.peak().moment,
                At::End => ledger.end().moment,
                At::Event { event, .. } if event < card.events.len() => Moment(event + 1),
                At::Event { card: index, event } => {
                    return Err(ReportError::NoSuchEvent {
                        card: index,
                        event,
                        events: card.events.len(),
                    });
                }
            };
            Ok((ledger, moment))
        })
        .collect()
}

/// The bytes that an allocation counts for in a profile, which must be known exactly. In a rehearsal these are block
/// bytes, so that the sum is PyTorch's own "allocated"; in a snapshot requested bytes, because the size of a freed block
/// is unknown.
pub(crate) fn counted_bytes(recording: &Recording, one: &Allocation) -> u64 {
    match recording.about.source {
        Source::Rehearsal => one.block_bytes,
        Source::Snapshot => one.requested_bytes,
    }
}
