//! Every allocation of a card, and all names, as columns, which the page reads after it has drawn the overview.
//!
//! A training repeats itself, so addresses, sizes and origins (category, name, module, operator, stack) are stored once
//! each, and an allocation is five small numbers.

use std::collections::HashMap;
use std::hash::Hash;

use ghostgpu_ledger::{Groups, OwnerModules, PhaseSums, Place, Places};
use ghostgpu_recording::{Allocation, CardMemory, FrameOwner, Names, Recording};
use serde_json::json;

use super::section::{Coding, Section};
use crate::text;

/// Values in the order in which they were first seen, each once.
struct Interned<T> {
    places: HashMap<T, u32>,
    values: Vec<T>,
}

impl<T: Copy + Eq + Hash> Interned<T> {
    fn new() -> Self {
        Self {
            places: HashMap::new(),
            values: Vec::new(),
        }
    }

    fn place(&mut self, value: T) -> u64 {
        let next = self.values.len() as u32;
        let place = *self.places.entry(value).or_insert(next);
        if place == next {
            self.values.push(value);
        }
        u64::from(place)
    }
}

/// Category, name, module, operator, stack, pool and, if there is no stack, the stage, which is part of the place then.
type Origin = [u32; 7];

fn origin_of(allocation: &Allocation, card: &CardMemory) -> Origin {
    let stage = match allocation.stack.0 {
        0 => allocation
            .allocated_at
            .and_then(|event| card.phase_of(event))
            .map_or(0, |phase| phase.stage as u32 + 1),
        _ => 0,
    };
    [
        allocation.category as u32,
        allocation.name.0,
        allocation.module.0,
        allocation.operator.0,
        allocation.stack.0,
        allocation.pool.0,
        stage,
    ]
}

/// The modules that own something, in the order in which they were first seen, and the labels of places, which are the
/// same as in the terminal. A parameter with its gradient and state belongs to its module wherever it was made.
pub(super) struct Owners<'a> {
    modules: OwnerModules<'a>,
    paths: Interned<&'a str>,
    places: Vec<String>,
    place_numbers: HashMap<String, u64>,
}

impl<'a> Owners<'a> {
    pub fn of(names: &'a Names) -> Self {
        let mut paths = Interned::new();
        // Number 0 is "outside any module".
        paths.place("");
        Self {
            modules: OwnerModules::of(names),
            paths,
            places: Vec::new(),
            place_numbers: HashMap::new(),
        }
    }

    fn words(&mut self, places: &Places<'_>, allocation: &Allocation) -> u64 {
        let place = places.place(allocation);
        let words = match &place {
            Place::Line(id) => {
                let frame = places.frame(*id);
                let file = frame.map_or("", |frame| frame.file.as_str());
                let words = places.label(&place);
                match words.strip_prefix(file) {
                    Some(rest) => format!("{}{rest}", text::shown_file(file)),
                    None => words,
                }
            }
            _ => places.label(&place),
        };
        let next = self.places.len() as u64;
        let number = *self.place_numbers.entry(words.clone()).or_insert(next);
        if number == next {
            self.places.push(words);
        }
        number
    }

    fn place(&mut self, allocation: &Allocation) -> u64 {
        self.paths.place(self.modules.path_of(allocation))
    }
}

/// The allocations in the order in which they began, and the segments.
pub(super) fn card_section(
    recording: &Recording,
    card: &CardMemory,
    phases: &[PhaseSums],
    groups: &Groups,
    owners: &mut Owners<'_>,
) -> Section {
    let places = Places::of(recording, card);
    let mut order: Vec<u32> = (0..card.allocations.len() as u32).collect();
    let allocation = |id: &u32| &card.allocations[*id as usize];
    // 0 is "older than the recording", so these come first; the stable sort keeps equals in their order.
    let begin = |id: &u32| {
        allocation(id)
            .allocated_at
            .map_or(0, |event| u64::from(event) + 1)
    };
    order.sort_by_key(begin);

    let mut addresses: Vec<u64> = order.iter().map(|id| allocation(id).address).collect();
    addresses.sort_unstable();
    addresses.dedup();
    let mut sizes = Interned::<(u64, u64)>::new();
    let mut origins = Interned::<Origin>::new();
    let size_of: Vec<u64> = order
        .iter()
        .map(|id| sizes.place((allocation(id).requested_bytes, allocation(id).block_bytes)))
        .collect();
    let mut owner_of = Vec::new();
    let mut group_of = Vec::new();
    let mut words_of = Vec::new();
    let origins_of: Vec<u64> = order
        .iter()
        .map(|id| {
            let place = origins.place(origin_of(allocation(id), card));
            if owner_of.len() < origins.values.len() {
                owner_of.push(owners.place(allocation(id)));
                group_of.push(groups.group(allocation(id)) as u64);
                words_of.push(owners.words(&places, allocation(id)));
            }
            place
        })
        .collect();
    let place_of_address = |id: &u32| {
        let place = addresses.binary_search(&allocation(id).address);
        place.unwrap_or_default() as u64
    };
    let lifetime = |id: &u32| {
        let end = allocation(id).freed_at.map(|event| u64::from(event) + 1);
        end.map_or(0, |end| end.saturating_sub(begin(id)))
    };

    let mut section = Section::default();
    section.column("begin", Coding::Delta, order.iter().map(begin));
    section.column("lifetime", Coding::Plain, order.iter().map(lifetime));
    section.column("address", Coding::Delta, order.iter().map(place_of_address));
    section.column("size", Coding::Plain, size_of);
    section.column("origin", Coding::Plain, origins_of);
    section.column("addresses", Coding::Delta, addresses.iter().copied());
    let requested = sizes.values.iter().map(|size| size.0);
    section.column("requested_bytes", Coding::Plain, requested);
    section.column(
        "block_bytes",
        Coding::Plain,
        sizes.values.iter().map(|size| size.1),
    );
    for (place, name) in [(1, "name"), (3, "operator"), (4, "stack"), (5, "pool")] {
        let values = origins.values.iter().map(|origin| u64::from(origin[place]));
        section.column(&format!("origin_{name}"), Coding::Plain, values);
    }
    section.column("origin_group", Coding::Plain, group_of);
    section.column("origin_module", Coding::Plain, owner_of);
    section.column("origin_place", Coding::Plain, words_of);
    let streams = card.pools.iter().map(|pool| pool.stream);
    section.column("pool_stream", Coding::Plain, streams);
    // 0 is the default pool, or one that was not recorded.
    let numbers = card.pools.iter().map(|pool| match pool.number {
        None | Some((0, 0)) => 0,
        Some((graph, user)) => graph.max(user),
    });
    section.column("pool_number", Coding::Plain, numbers);
    add_segments(&mut section, card);
    add_phase_sums(&mut section, phases);
    section
}

/// What was allocated, freed and kept in each phase.
fn add_phase_sums(section: &mut Section, phases: &[PhaseSums]) {
    let mut add = |name: &str, value: &dyn Fn(&PhaseSums) -> u64| {
        let name = format!("phase_{name}");
        section.column(&name, Coding::Delta, phases.iter().map(value));
    };
    add("before", &|it| it.before_bytes);
    add("came", &|it| it.came_bytes);
    add("went", &|it| it.went_bytes);
    add("stayed", &|it| it.stayed_bytes);
    add("peak", &|it| it.peak_allocated_bytes);
    add("peak_event", &|it| it.peak.event().unwrap_or(0) as u64);
}

/// The kinds are: 0 existed before, 1 was reserved, 2 was released.
fn add_segments(section: &mut Section, card: &CardMemory) {
    let before = card.reserved_before.iter().map(|change| (0, 0, *change));
    let later = card.segment_changes().map(|(event, is_reserved, change)| {
        (if is_reserved { 1 } else { 2 }, event.into(), change)
    });
    let changes: Vec<_> = before.chain(later).collect();
    section.column("segment_kind", Coding::Plain, changes.iter().map(|it| it.0));
    section.column(
        "segment_event",
        Coding::Delta,
        changes.iter().map(|it| it.1),
    );
    section.column(
        "segment_address",
        Coding::Delta,
        changes.iter().map(|it| it.2.address),
    );
    section.column(
        "segment_bytes",
        Coding::Plain,
        changes.iter().map(|it| it.2.bytes),
    );
}

/// The names that the numbers of origins refer to.
pub(super) fn names_section(
    names: &Names,
    owners: &Owners<'_>,
) -> Result<Section, serde_json::Error> {
    let mut section = Section::default();
    section.say("texts", &names.texts)?;
    section.say("operators", &names.operators)?;
    let modules: Vec<_> = owners
        .paths
        .values
        .iter()
        .map(|path| json!([path, owners.modules.class(path)]))
        .collect();
    section.say("modules", modules)?;
    let frames: Vec<_> = names
        .frames
        .iter()
        .map(|frame| {
            let owner = match frame.owner {
                FrameOwner::User => 0,
                FrameOwner::Package => 1,
                FrameOwner::Torch => 2,
                FrameOwner::Native => 3,
            };
            json!([
                text::shown_file(&frame.file),
                frame.line,
                frame.function,
                owner,
                text::package(&frame.file)
            ])
        })
        .collect();
    section.say("frames", frames)?;
    section.say("places", &owners.places)?;
    section.column(
        "stack_lengths",
        Coding::Plain,
        names.stacks.iter().map(|stack| stack.len() as u64),
    );
    let frames = names.stacks.iter().flatten().map(|id| u64::from(id.0));
    section.column("stack_frames", Coding::Plain, frames);
    Ok(section)
}
