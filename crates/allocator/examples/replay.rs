//! Replays a recording of a real card, as `ground_truth/allocator/as_text.py` writes it, and says
//! whether every entry, segment and statistic came out:
//!
//!     cargo run --release -p ghostgpu-allocator --example replay -- FILE...

use std::collections::BTreeMap;
use std::process::ExitCode;

use ghostgpu_allocator::replay::{Context, Environment, Operation, Recording, exact};
use ghostgpu_allocator::{
    Action, Address, BlockState, BlockView, PoolId, PoolKind, Release, SegmentView, Settings,
    Stats, StreamId,
};

/// `num_sync_all_streams` counts flushes that released nothing, which leave no entry.
const NOT_IN_A_HISTORY: [&str; 1] = ["num_sync_all_streams"];

struct File {
    recording: Recording,
    environment: Environment,
    /// At each `snapshot` entry, and at the end.
    stats: BTreeMap<String, Vec<i64>>,
}

fn main() -> ExitCode {
    let mut different = false;
    for path in std::env::args().skip(1) {
        let answer = std::fs::read_to_string(&path)
            .map_err(|error| error.to_string())
            .and_then(|text| read(&text))
            .and_then(|file| check(&file));
        different |= answer.is_err();
        match answer {
            Ok(text) => println!("{path}: {text}"),
            Err(text) => println!("{path}: different: {text}"),
        }
    }
    if different {
        ExitCode::from(3)
    } else {
        ExitCode::SUCCESS
    }
}

fn check(file: &File) -> Result<String, String> {
    let replay = exact(&file.recording, &file.environment);
    for warning in &replay.warnings {
        println!("  note: {warning}");
    }
    if let Some(difference) = replay.difference {
        return Err(difference.to_string());
    }
    let release = file.environment.release;
    let mut compared = 0;
    let readings: Vec<&Stats> = replay
        .stats_at_snapshots
        .iter()
        .chain([&replay.stats])
        .collect();
    for (number, stats) in readings.iter().enumerate() {
        for (key, here) in stats.named(release) {
            let Some(there) = file.stats.get(&key).and_then(|values| values.get(number)) else {
                continue;
            };
            if here != *there && !NOT_IN_A_HISTORY.contains(&key.as_str()) {
                return Err(format!(
                    "reading {number}: {key} is {here} here, {there} on the card"
                ));
            }
            compared += 1;
        }
    }
    if replay.segments != file.recording.segments {
        return Err("other segments at the end".to_owned());
    }
    Ok(format!(
        "same: {} entries, {} segment events, {} segments at the end, {compared} statistics",
        replay.entries,
        replay.segment_events.len(),
        replay.segments.len(),
    ))
}

fn read(text: &str) -> Result<File, String> {
    let mut file = File {
        recording: Recording::default(),
        environment: Environment::new(Release::REFERENCE, Settings::default()),
        stats: BTreeMap::new(),
    };
    for (number, line) in text.lines().enumerate() {
        read_line(&mut file, line)
            .ok_or_else(|| format!("line {}: cannot be read: {line}", number + 1))?;
    }
    file.environment.capacity_bytes = file.environment.total_bytes;
    Ok(file)
}

fn read_line(file: &mut File, line: &str) -> Option<()> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let parts: Vec<&str> = rest.split(' ').collect();
    let whole = |index: usize| parts.get(index)?.parse::<u64>().ok();
    let environment = &mut file.environment;
    match word {
        "release" => environment.release = rest.parse().ok()?,
        "settings" => {
            environment.settings = Settings::parse(rest, environment.release).ok()?;
        }
        "total" => environment.total_bytes = Some(whole(0)?),
        "limit" => environment.limit_bytes = Some(whole(0)?),
        "t" => file.recording.operations.push(Operation {
            action: Action::from_name(parts[0])?,
            address: Address(whole(1)?),
            bytes: whole(2)?,
            context: Context {
                stream: StreamId(whole(3)?),
                pool: None,
            },
        }),
        "s" => {
            let (a, b) = parts.get(4)?.split_once(',')?;
            let pool = PoolId(a.parse().ok()?, b.parse().ok()?);
            let segment = read_segment(&parts, pool)?;
            file.recording.segments.push(segment);
        }
        "+" => {
            let values: Option<Vec<i64>> =
                parts[1..].iter().map(|part| part.parse().ok()).collect();
            file.stats.insert(parts[0].to_owned(), values?);
        }
        _ => return None,
    }
    Some(())
}

fn read_segment(parts: &[&str], pool: PoolId) -> Option<SegmentView> {
    let whole = |index: usize| parts.get(index)?.parse::<u64>().ok();
    let mut segment = SegmentView {
        address: Address(whole(0)?),
        total_size: whole(1)?,
        allocated_size: 0,
        active_size: 0,
        requested_size: 0,
        stream: StreamId(whole(2)?),
        kind: if *parts.get(3)? == "small" {
            PoolKind::Small
        } else {
            PoolKind::Large
        },
        pool,
        is_expandable: *parts.get(5)? == "1",
        blocks: Vec::new(),
    };
    let mut address = segment.address;
    for block in parts.get(6)?.split(',') {
        let mut words = block.split(':');
        let (size, requested_size) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let state = match words.next()? {
            "active_allocated" => BlockState::Allocated,
            "inactive" => BlockState::Inactive,
            _ => BlockState::PendingFree,
        };
        if state == BlockState::Allocated {
            segment.allocated_size += size;
        }
        if state != BlockState::Inactive {
            segment.active_size += size;
            segment.requested_size += requested_size;
        }
        segment.blocks.push(BlockView {
            address,
            size,
            requested_size,
            state,
        });
        address = address.plus(size);
    }
    Some(segment)
}
