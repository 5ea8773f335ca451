//! Writing the section of one card.

use std::io;

use super::super::packed::Packed;
use super::{
    ALLOCATE, FREE, FREE_REQUESTED, IS_EXPANDABLE, IS_SMALL, OTHER, OUT_OF_MEMORY, RELEASE, RESERVE,
};
use crate::allocation::Allocation;
use crate::events::{Event, Failure, Pool, SegmentChange};
use crate::phases::{NamedRange, Phase};
use crate::recording::CardMemory;

pub(in crate::file) fn write_card(card: &CardMemory, out: &mut Packed) -> io::Result<()> {
    out.number(card.index.into())?;
    out.number(card.outside_bytes)?;
    write_pools(&card.pools, out)?;
    out.number(card.reserved_before.len() as u64)?;
    write_segments(&card.reserved_before, out)?;
    write_allocations(&card.allocations, out)?;
    write_events(&card.events, out)?;
    // One per event that reserves or releases, in order.
    write_segments(&card.changes, out)?;
    for failure in &card.failures {
        write_failure(failure, out)?;
    }
    out.number(card.began_us)?;
    let mut before = 0;
    for time_us in &card.times_us {
        out.difference(*time_us, before)?;
        before = *time_us;
    }
    write_phases(&card.phases, out)?;
    write_ranges(&card.ranges, out)
}

fn write_pools(pools: &[Pool], out: &mut Packed) -> io::Result<()> {
    out.number(pools.len() as u64)?;
    for pool in pools {
        out.number(pool.stream)?;
        match pool.number {
            None => out.byte(0)?,
            Some((first, second)) => {
                out.byte(1)?;
                out.number(first)?;
                out.number(second)?;
            }
        }
    }
    Ok(())
}

fn write_failure(failure: &Failure, out: &mut Packed) -> io::Result<()> {
    out.number(failure.requested_bytes)?;
    match failure.driver_free_bytes {
        None => out.byte(0)?,
        Some(bytes) => {
            out.byte(1)?;
            out.number(bytes)?;
        }
    }
    out.number(failure.pool.0.into())?;
    out.number(failure.stack.0.into())
}

fn write_segments(segments: &[SegmentChange], out: &mut Packed) -> io::Result<()> {
    let mut before = 0;
    for segment in segments {
        out.difference(segment.address, before)?;
        out.number(segment.bytes)?;
        out.number(segment.pool.0.into())?;
        out.byte(
            u8::from(segment.is_small) * IS_SMALL + u8::from(segment.is_expandable) * IS_EXPANDABLE,
        )?;
        before = segment.address;
    }
    Ok(())
}

fn write_allocations(all: &[Allocation], out: &mut Packed) -> io::Result<()> {
    out.number(all.len() as u64)?;
    write_differences(all, |one| one.address, out)?;
    for one in all {
        out.number(one.requested_bytes)?;
    }
    for one in all {
        out.number(one.block_bytes - one.requested_bytes)?;
    }
    for one in all {
        out.byte(one.category as u8)?;
    }
    write_differences(all, |one| one.name.0.into(), out)?;
    write_differences(all, |one| one.module.0.into(), out)?;
    write_differences(all, |one| one.operator.0.into(), out)?;
    write_differences(all, |one| one.stack.0.into(), out)?;
    write_differences(all, |one| one.pool.0.into(), out)
}

fn write_differences(
    all: &[Allocation],
    value: fn(&Allocation) -> u64,
    out: &mut Packed,
) -> io::Result<()> {
    let mut before = 0;
    for one in all {
        out.difference(value(one), before)?;
        before = value(one);
    }
    Ok(())
}

fn write_events(events: &[Event], out: &mut Packed) -> io::Result<()> {
    out.number(events.len() as u64)?;
    for event in events {
        out.byte(match event {
            Event::Allocate(_) => ALLOCATE,
            Event::Free(_) => FREE,
            Event::Reserve(_) => RESERVE,
            Event::Release(_) => RELEASE,
            Event::OutOfMemory(_) => OUT_OF_MEMORY,
            Event::FreeRequested(_) => FREE_REQUESTED,
            Event::Other => OTHER,
        })?;
    }
    // Usually each is the successor of the previous one.
    let mut expected = 0;
    for event in events {
        if let Event::Allocate(id) = event {
            out.difference(id.0.into(), expected)?;
            expected = u64::from(id.0) + 1;
        }
    }
    // What is freed was usually allocated shortly before.
    let mut newest = 0;
    for event in events {
        match event {
            Event::Allocate(id) => newest = id.0.into(),
            Event::Free(id) | Event::FreeRequested(id) => {
                out.difference(newest, id.0.into())?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn write_phases(phases: &[Phase], out: &mut Packed) -> io::Result<()> {
    out.number(phases.len() as u64)?;
    let (mut step, mut first_event) = (0, 0);
    for phase in phases {
        out.byte(phase.stage as u8)?;
        out.difference(phase.step.into(), step)?;
        out.difference(phase.first_event.into(), first_event)?;
        (step, first_event) = (phase.step.into(), phase.first_event.into());
    }
    Ok(())
}

fn write_ranges(ranges: &[NamedRange], out: &mut Packed) -> io::Result<()> {
    out.number(ranges.len() as u64)?;
    for range in ranges {
        out.number(range.name.0.into())?;
        out.number(range.begin_us)?;
        match range.end_us {
            None => out.byte(0)?,
            Some(end_us) => {
                out.byte(1)?;
                out.number(end_us)?;
            }
        }
    }
    Ok(())
}
