//! Which cards an export shows, and when.

use ghostgpu_ledger::{CardLedger, Moment};
use ghostgpu_recording::{Allocation, CardMemory, Recording, Source};

use crate::error::ReportError;

/// When to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum At {
    /// When there was most, on each card for itself.
    #[default]
    Peak,
    /// After the last event.
    End,
    /// After one event of one card; other cards are left out.
    Event { card: u32, event: usize },
}

/// Which cards, and when.
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

/// The bytes that an allocation counts for in a profile: those that are known exactly. In a rehearsal that is the block,
/// so that the sum is PyTorch's own "allocated"; in a snapshot what was asked for, since the sizes of blocks that are
/// gone are known only at least.
pub(crate) fn counted_bytes(recording: &Recording, one: &Allocation) -> u64 {
    match recording.about.source {
        Source::Rehearsal => one.block_bytes,
        Source::Snapshot => one.requested_bytes,
    }
}
