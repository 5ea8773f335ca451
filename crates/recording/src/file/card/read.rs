//! Reading the section of one card.

use std::io::BufRead;

use super::super::error::FileError;
use super::super::unpacked::Unpacked;
use super::{
    ALLOCATE, FREE, FREE_REQUESTED, IS_EXPANDABLE, IS_SMALL, OTHER, OUT_OF_MEMORY, RELEASE, RESERVE,
};
use crate::allocation::{Allocation, AllocationId, Category};
use crate::events::{ChangeId, Event, Failure, FailureId, Pool, PoolId, SegmentChange};
use crate::names::{ModuleId, NameId, Names, OperatorId, StackId};
use crate::phases::{NamedRange, Phase, Stage};
use crate::recording::CardMemory;

pub(in crate::file) fn read_card(
    input: &mut Unpacked<'_, impl BufRead>,
    names: &Names,
) -> Result<CardMemory, FileError> {
    let index = input.short()?;
    let outside_bytes = input.number()?;
    let pools = input.list(read_pool)?;
    let mut before = 0;
    let reserved_before = input.list(|input| {
        let change = read_segment(input, before)?;
        before = change.address;
        Ok(change)
    })?;
    let mut allocations = read_allocations(input, names, pools.len())?;
    let events = read_events(input, &mut allocations)?;
    let mut changes = Vec::new();
    let mut failures = Vec::new();
    let mut before = 0;
    for event in &events {
        if matches!(event, Event::Reserve(_) | Event::Release(_)) {
            input.charge(size_of::<SegmentChange>())?;
            let change = read_segment(input, before)?;
            before = change.address;
            changes.push(change);
        }
    }
    for event in &events {
        if matches!(event, Event::OutOfMemory(_)) {
            input.charge(size_of::<Failure>())?;
            failures.push(read_failure(input)?);
        }
    }
    let began_us = input.number()?;
    let mut times_us = Vec::new();
    let mut before = 0;
    for _ in 0..events.len() {
        before = input.difference(before)?;
        input.charge(size_of::<u64>())?;
        times_us.push(before);
    }
    let phases = read_phases(input)?;
    let ranges = input.list(read_range)?;
    let card = CardMemory {
        // Section 6 has the rank.
        rank: None,
        nccl_bytes: 0,
        index,
        outside_bytes,
        pools,
        reserved_before,
        allocations,
        events,
        changes,
        failures,
        began_us,
        times_us,
        phases,
        ranges,
    };
    card.check(names).map_err(|what| FileError::Inconsistent {
        offset: input.offset,
        what,
    })?;
    Ok(card)
}

fn read_segment(
    input: &mut Unpacked<'_, impl BufRead>,
    before: u64,
) -> Result<SegmentChange, FileError> {
    let (address, bytes) = (input.difference(before)?, input.number()?);
    let pool = PoolId(input.short()?);
    let kind = input.byte()?;
    if kind > IS_SMALL + IS_EXPANDABLE {
        return Err(input.wrong(format!("no kind of segment has number {kind}")));
    }
    Ok(SegmentChange {
        address,
        bytes,
        pool,
        is_small: kind & IS_SMALL != 0,
        is_expandable: kind & IS_EXPANDABLE != 0,
    })
}

/// Whether an optional value follows.
fn read_presence(input: &mut Unpacked<'_, impl BufRead>) -> Result<bool, FileError> {
    match input.byte()? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(input.wrong(format!("{other} is neither yes nor no"))),
    }
}

fn read_pool(input: &mut Unpacked<'_, impl BufRead>) -> Result<Pool, FileError> {
    let stream = input.number()?;
    let number = match read_presence(input)? {
        true => Some((input.number()?, input.number()?)),
        false => None,
    };
    Ok(Pool { stream, number })
}

fn read_failure(input: &mut Unpacked<'_, impl BufRead>) -> Result<Failure, FileError> {
    let requested_bytes = input.number()?;
    let driver_free_bytes = match read_presence(input)? {
        true => Some(input.number()?),
        false => None,
    };
    Ok(Failure {
        requested_bytes,
        driver_free_bytes,
        pool: PoolId(input.short()?),
        stack: StackId(input.short()?),
    })
}

fn read_allocations(
    input: &mut Unpacked<'_, impl BufRead>,
    names: &Names,
    pools: usize,
) -> Result<Vec<Allocation>, FileError> {
    let mut address = 0;
    let mut all = input.list(|input| {
        address = input.difference(address)?;
        Ok(Allocation {
            address,
            requested_bytes: 0,
            block_bytes: 0,
            allocated_at: None,
            freed_at: None,
            category: Category::Temporary,
            name: NameId(0),
            module: ModuleId(0),
            operator: OperatorId(0),
            stack: StackId(0),
            pool: PoolId(0),
        })
    })?;
    for one in &mut all {
        one.requested_bytes = input.number()?;
    }
    for one in &mut all {
        let more = input.number()?;
        one.block_bytes = one
            .requested_bytes
            .checked_add(more)
            .ok_or_else(|| input.wrong("a block is larger than 64 bits can count"))?;
    }
    for one in &mut all {
        let number = usize::from(input.byte()?);
        let found = Category::ALL
            .into_iter()
            .find(|one| *one as usize == number);
        one.category =
            found.ok_or_else(|| input.wrong(format!("no category has number {number}")))?;
    }
    read_numbers(
        input,
        &mut all,
        ("name", names.texts.len()),
        |one, number| {
            one.name = NameId(number);
        },
    )?;
    read_numbers(
        input,
        &mut all,
        ("module", names.modules.len()),
        |one, number| {
            one.module = ModuleId(number);
        },
    )?;
    read_numbers(
        input,
        &mut all,
        ("operator", names.operators.len()),
        |one, number| {
            one.operator = OperatorId(number);
        },
    )?;
    read_numbers(
        input,
        &mut all,
        ("stack", names.stacks.len()),
        |one, number| {
            one.stack = StackId(number);
        },
    )?;
    read_numbers(input, &mut all, ("pool", pools), |one, number| {
        one.pool = PoolId(number);
    })?;
    Ok(all)
}

/// A column of indices into a list of this length.
fn read_numbers(
    input: &mut Unpacked<'_, impl BufRead>,
    all: &mut [Allocation],
    (what, count): (&str, usize),
    set: fn(&mut Allocation, u32),
) -> Result<(), FileError> {
    let mut number = 0;
    for one in all {
        number = input.short_difference(number)?;
        if number as usize >= count {
            return Err(input.wrong(format!("there is no {what} {number}")));
        }
        set(one, number);
    }
    Ok(())
}

fn read_events(
    input: &mut Unpacked<'_, impl BufRead>,
    allocations: &mut [Allocation],
) -> Result<Vec<Event>, FileError> {
    let (mut changes, mut failures) = (0, 0);
    let next = |count: &mut u32| {
        *count = count.wrapping_add(1);
        count.wrapping_sub(1)
    };
    let mut events = input.list(|input| {
        Ok(match input.byte()? {
            ALLOCATE => Event::Allocate(AllocationId(0)),
            FREE => Event::Free(AllocationId(0)),
            RESERVE => Event::Reserve(ChangeId(next(&mut changes))),
            RELEASE => Event::Release(ChangeId(next(&mut changes))),
            OUT_OF_MEMORY => Event::OutOfMemory(FailureId(next(&mut failures))),
            FREE_REQUESTED => Event::FreeRequested(AllocationId(0)),
            OTHER => Event::Other,
            other => return Err(input.wrong(format!("no kind of event has number {other}"))),
        })
    })?;
    if u32::try_from(events.len()).is_err() {
        return Err(input.wrong("there are more events than 32 bits can count"));
    }
    let mut expected = 0;
    for (at, event) in events.iter_mut().enumerate() {
        if let Event::Allocate(id) = event {
            let number = input.difference(expected)?;
            let one = allocation(input, allocations, number)?;
            if one.allocated_at.replace(at as u32).is_some() {
                return Err(input.wrong(format!("allocation {number} begins twice")));
            }
            *id = AllocationId(number as u32);
            expected = number + 1;
        }
    }
    let mut newest = 0;
    for (at, event) in events.iter_mut().enumerate() {
        match event {
            Event::Allocate(id) => newest = u64::from(id.0),
            Event::Free(id) | Event::FreeRequested(id) => {
                // Stored as the difference from the newest.
                let number = newest.wrapping_sub(input.difference(0)?);
                let one = allocation(input, allocations, number)?;
                *id = AllocationId(number as u32);
                let is_end = matches!(event, Event::Free(_));
                if is_end && one.freed_at.replace(at as u32).is_some() {
                    return Err(input.wrong(format!("allocation {number} ends twice")));
                }
            }
            _ => {}
        }
    }
    Ok(events)
}

fn allocation<'a>(
    input: &Unpacked<'_, impl BufRead>,
    allocations: &'a mut [Allocation],
    number: u64,
) -> Result<&'a mut Allocation, FileError> {
    let count = allocations.len();
    let found = usize::try_from(number)
        .ok()
        .and_then(|number| allocations.get_mut(number));
    found.ok_or_else(|| input.wrong(format!("there are {count} allocations, and no {number}")))
}

fn read_range(input: &mut Unpacked<'_, impl BufRead>) -> Result<NamedRange, FileError> {
    let (name, begin_us) = (NameId(input.short()?), input.number()?);
    let end_us = match read_presence(input)? {
        true => Some(input.number()?),
        false => None,
    };
    Ok(NamedRange {
        name,
        begin_us,
        end_us,
    })
}

fn read_phases(input: &mut Unpacked<'_, impl BufRead>) -> Result<Vec<Phase>, FileError> {
    let (mut step, mut first_event) = (0, 0);
    input.list(|input| {
        let number = usize::from(input.byte()?);
        let found = Stage::ALL.into_iter().find(|one| *one as usize == number);
        let stage = found.ok_or_else(|| input.wrong(format!("no stage has number {number}")))?;
        step = input.short_difference(step)?;
        first_event = input.short_difference(first_event)?;
        Ok(Phase {
            stage,
            step,
            first_event,
        })
    })
}
