//! The largest blocks, as slices for as long as they lived.

use std::collections::BTreeMap;
use std::io::{self, Write};

use ghostgpu_ledger::{Place, Places};
use ghostgpu_recording::{Allocation, AllocationId, CardMemory, Category, Recording};
use ghostgpu_text::human;

use super::lanes::{Lane, Lanes};
use super::packets::{Argument, Happening, Packets};
use super::segments::push_pool;
use super::selection::BlockSelection;
use crate::text;

pub(super) struct BlockSlices<'a> {
    recording: &'a Recording,
    card: &'a CardMemory,
    places: Places<'a>,
    lanes: Lanes,
    pub(super) selection: BlockSelection,
    drawn: BTreeMap<AllocationId, Drawn>,
}

#[derive(Debug, Clone, Copy)]
struct Drawn {
    lane: Lane,
    is_waiting: bool,
}

impl<'a> BlockSlices<'a> {
    pub(super) fn new(
        recording: &'a Recording,
        card: &'a CardMemory,
        lanes: Lanes,
        selection: BlockSelection,
    ) -> Self {
        Self {
            recording,
            card,
            places: Places::of(recording, card),
            lanes,
            selection,
            drawn: BTreeMap::new(),
        }
    }

    pub(super) fn begin(
        &mut self,
        id: AllocationId,
        time_ns: u64,
        packets: &mut Packets<'_, impl Write>,
    ) -> io::Result<()> {
        let Some(one) = self.card.allocations.get(id.0 as usize) else {
            return Ok(());
        };
        if !self.selection.draws(one.requested_bytes) {
            return Ok(());
        }
        let lane = self.lanes.take(packets)?;
        let is_waiting = false;
        self.drawn.insert(id, Drawn { lane, is_waiting });
        let names = &self.recording.names;
        let text = |list: &'a [String], at: u32| list.get(at as usize).map_or("", |text| text);
        let module = names.modules.get(one.module.0 as usize);
        let category = match one.category {
            Category::Unknown => "",
            category => category.title(),
        };
        let mut arguments = vec![
            ("requested_bytes", Argument::Number(one.requested_bytes)),
            ("block_bytes", Argument::Number(one.block_bytes)),
            ("address", Argument::Address(one.address)),
        ];
        match one.allocated_at {
            Some(event) => arguments.push(("event", Argument::Number(event.into()))),
            None => arguments.push(("allocated", Argument::Text("before the recording".into()))),
        }
        for (name, value) in [
            ("category", category),
            ("name", text(&names.texts, one.name.0)),
            ("module", module.map_or("", |module| &module.path)),
            ("operator", text(&names.operators, one.operator.0)),
        ] {
            if !value.is_empty() {
                arguments.push((name, Argument::Text(value.into())));
            }
        }
        let pool = self.card.pools.get(one.pool.0 as usize);
        push_pool(&mut arguments, pool.copied().unwrap_or_default());
        if text::frames(names, one.stack).next().is_some() {
            arguments.push(("stack", Argument::Stack(one.stack)));
        }
        packets.begin(&Happening {
            track: self.lanes.track(lane),
            time_ns,
            name: &self.name(one),
            arguments: &arguments,
        })
    }

    /// It was given back, and another stream may still use it.
    pub(super) fn wait(
        &mut self,
        id: AllocationId,
        time_ns: u64,
        packets: &mut Packets<'_, impl Write>,
    ) -> io::Result<()> {
        match self.drawn.get_mut(&id) {
            Some(drawn) if !drawn.is_waiting => {
                drawn.is_waiting = true;
                packets.begin(&Happening {
                    track: self.lanes.track(drawn.lane),
                    time_ns,
                    name: "waits for another stream",
                    arguments: &[],
                })
            }
            _ => Ok(()),
        }
    }

    pub(super) fn end(
        &mut self,
        id: AllocationId,
        time_ns: u64,
        packets: &mut Packets<'_, impl Write>,
    ) -> io::Result<()> {
        let Some(drawn) = self.drawn.remove(&id) else {
            return Ok(());
        };
        let track = self.lanes.track(drawn.lane);
        if drawn.is_waiting {
            packets.end(track, time_ns)?;
        }
        packets.end(track, time_ns)?;
        self.lanes.give_back(drawn.lane);
        Ok(())
    }

    /// A block's size, and the line or operator that made it.
    fn name(&self, one: &Allocation) -> String {
        let size = human(one.requested_bytes);
        let place = self.places.place(one);
        match &place {
            Place::Line(id) => match self.places.frame(*id) {
                Some(frame) => format!("{size} {}", text::short_frame(frame)),
                None => size,
            },
            Place::NoStack { .. } | Place::Older => match one.category {
                Category::Unknown => size,
                _ => format!("{size} {}", self.places.label(&place)),
            },
        }
    }
}
