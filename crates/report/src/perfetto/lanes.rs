//! Slices that overlap, laid out on tracks where they do not.
//!
//! Perfetto closes the innermost slice of a track first, whatever it is called; lives of blocks end in
//! any order. So each takes the lowest track that is free. The tracks have one name, under which the
//! viewer shows them as one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};

use super::packets::{Packets, TrackUuid};

/// Tracks of one kind of slice on one device.
#[derive(Debug)]
pub(crate) struct Lanes {
    name: String,
    description: &'static str,
    parent: TrackUuid,
    rank: u64,
    tracks: Vec<TrackUuid>,
    free: BinaryHeap<Reverse<usize>>,
}

/// A track of [`Lanes`] that is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lane(usize);

impl Lanes {
    pub(crate) fn new(
        name: String,
        description: &'static str,
        parent: TrackUuid,
        rank: u64,
    ) -> Self {
        Self {
            name,
            description,
            parent,
            rank,
            tracks: Vec::new(),
            free: BinaryHeap::new(),
        }
    }

    /// Takes the lowest track that is free; a new one is announced first.
    pub(crate) fn take(&mut self, packets: &mut Packets<'_, impl Write>) -> io::Result<Lane> {
        if let Some(Reverse(lane)) = self.free.pop() {
            return Ok(Lane(lane));
        }
        let track = packets.slice_track(&self.name, self.description, self.parent, self.rank)?;
        self.tracks.push(track);
        Ok(Lane(self.tracks.len() - 1))
    }

    pub(crate) fn give_back(&mut self, lane: Lane) {
        self.free.push(Reverse(lane.0));
    }

    pub(crate) fn track(&self, lane: Lane) -> TrackUuid {
        self.tracks[lane.0]
    }
}
