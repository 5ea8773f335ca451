//! Calls that wait for each other on the cards although all of them have been made.
//!
//! A stream runs one call after the other. So two ranks that both send before they receive hang on real cards, as do
//! ranks that use two groups in different order, and the host of none of them waits for anything that never comes. Each
//! call's log says what has to be over before the call can begin: what its stream has waited for, and the thread that
//! made it. A call is over when it and its counterparts have begun. What can never be over, whatever else the ranks
//! call, stands in a circle.
//!
//! Nothing is taken to wait that does not have to: calls of one NCCL group begin together, the root of a broadcast needs
//! nobody, and small messages fit into NCCL's buffers.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::Path;

use ghostgpu_session::files::RANKS_FOLDER;

use crate::call::{Call, Channel, Function};
use crate::communicator::{Member, Record, job_rank};
use crate::log::Reader;
use crate::machine::ProcessId;
use crate::trouble::Trouble;

/// Longer jobs are not looked at: nobody wants to wait for it.
const MOST_CALLS: usize = 2_000_000;

/// One rank in one communicator, and what it called there.
#[derive(Debug)]
struct Log {
    communicator: String,
    rank: u32,
    member: Member,
    calls: Vec<Call>,
}

/// A circle among the calls of a run that has ended, if there is one.
pub fn find_circle(run_dir: &Path) -> Option<Trouble> {
    let logs = read_logs(run_dir)?;
    // Collectives of one communicator have the same order everywhere.
    let is_simple = |log: &Log| {
        let mut after = log.calls.iter().flat_map(|call| &call.after);
        after.all(|earlier| {
            earlier.communicator.is_none() && earlier.channel == Channel::Collectives
        })
    };
    if logs.iter().all(is_simple) {
        return None;
    }
    Calls::of(&logs).circle()
}

fn read_logs(run_dir: &Path) -> Option<Vec<Log>> {
    let folders = std::fs::read_dir(run_dir.join(RANKS_FOLDER)).ok()?;
    let mut logs = Vec::new();
    let mut calls = 0;
    for folder in folders.flatten().filter(|entry| entry.path().is_dir()) {
        let communicator = folder.file_name().into_string().ok()?;
        for file in std::fs::read_dir(folder.path()).ok()?.flatten() {
            let name = file.file_name().into_string().ok()?;
            let Some(rank) = name.strip_suffix(".log").and_then(|it| it.parse().ok()) else {
                continue;
            };
            let records = Reader::new(file.path()).read::<Record>().ok()?;
            let mut records = records.into_iter().map(|(record, _)| record);
            let Some(Record::Joined(member)) = records.next() else {
                continue;
            };
            let called = records.filter_map(|record| match record {
                Record::Called(call) => Some(call),
                Record::Joined(_) => None,
            });
            let log = Log {
                communicator: communicator.clone(),
                rank,
                member,
                calls: called.collect(),
            };
            calls += log.calls.len();
            if calls > MOST_CALLS {
                return None;
            }
            logs.push(log);
        }
    }
    // Of several circles, the same is found whatever the order of the folder: names of communicators differ from run to
    // run.
    logs.sort_by_cached_key(|log| {
        let first = log.calls.first().map(ToString::to_string);
        (job_rank(log.rank, &log.member), first)
    });
    Some(logs)
}

/// A communicator by its place in `Calls`, a rank of it, and a call of that rank's.
type Key = (usize, u32, Channel, u64);

/// All calls of a run.
struct Calls<'a> {
    /// Each with the log that it is in.
    calls: Vec<(&'a Log, &'a Call)>,
    /// By node, the nodes that come first. A call is two nodes: that it has begun, and that it is over.
    first: Vec<Vec<usize>>,
}

const fn begun(call: usize) -> usize {
    2 * call
}

const fn over(call: usize) -> usize {
    2 * call + 1
}

impl<'a> Calls<'a> {
    fn of(logs: &'a [Log]) -> Self {
        let mut names: HashMap<&str, usize> = HashMap::new();
        for log in logs {
            let next = names.len();
            names.entry(&log.communicator).or_insert(next);
        }
        // Ranks are numbered anew in every communicator.
        let mut ranks: BTreeMap<(ProcessId, usize), u32> = BTreeMap::new();
        let mut calls = Vec::new();
        let mut keys: Vec<Key> = Vec::new();
        let mut found: HashMap<Key, usize> = HashMap::new();
        for log in logs {
            let communicator = names[log.communicator.as_str()];
            ranks.insert((log.member.process, communicator), log.rank);
            let mut counts: HashMap<Channel, u64> = HashMap::new();
            for call in &log.calls {
                let channel = channel_of(call);
                let number = counts.entry(channel).or_default();
                let key = (communicator, log.rank, channel, *number);
                *number += 1;
                found.insert(key, calls.len());
                keys.push(key);
                calls.push((log, call));
            }
        }
        let mut first = vec![Vec::new(); 2 * calls.len()];
        for (place, (log, call)) in calls.iter().enumerate() {
            let (communicator, rank, _, number) = keys[place];
            let earlier = call.after.iter().filter_map(|earlier| {
                let (communicator, rank) = match &earlier.communicator {
                    Some(name) => {
                        let communicator = *names.get(name.as_str())?;
                        let own = ranks.get(&(log.member.process, communicator))?;
                        (communicator, *own)
                    }
                    None => (communicator, rank),
                };
                let key = (communicator, rank, earlier.channel, earlier.number);
                found.get(&key).copied()
            });
            first[begun(place)] = earlier.map(over).collect();
            let needed = counterparts(call, rank, number, log.member.size);
            let needed = needed.into_iter().filter_map(|(other, channel, number)| {
                found.get(&(communicator, other, channel, number)).copied()
            });
            first[over(place)] = needed.map(begun).chain([begun(place)]).collect();
        }
        Self { calls, first }
    }

    /// The nodes that can never come, because they come after each other.
    fn never(&self) -> Vec<bool> {
        let mut missing: Vec<usize> = self.first.iter().map(Vec::len).collect();
        let mut next: Vec<Vec<usize>> = vec![Vec::new(); self.first.len()];
        for (node, first) in self.first.iter().enumerate() {
            first.iter().for_each(|&each| next[each].push(node));
        }
        let mut ready: Vec<usize> = (0..missing.len()).filter(|&it| missing[it] == 0).collect();
        while let Some(node) = ready.pop() {
            for &later in &next[node] {
                missing[later] -= 1;
                if missing[later] == 0 {
                    ready.push(later);
                }
            }
        }
        missing.into_iter().map(|missing| missing > 0).collect()
    }

    fn circle(&self) -> Option<Trouble> {
        let never = self.never();
        let before = |node: usize| self.first[node].iter().copied().filter(|&it| never[it]);
        // Every one of them has another before it, so going backwards ends in a circle.
        let mut node = never.iter().position(|&it| it)?;
        for _ in 0..never.len() {
            node = before(node).next()?;
        }
        let circle = shortest_way_back(node, before)?;
        let mut waiting = Vec::new();
        let mut has_messages = false;
        for (place, &node) in circle.iter().enumerate() {
            let next = circle[(place + 1) % circle.len()];
            // A call that is not over because another rank has not begun.
            if node % 2 == 1 && next % 2 == 0 && next / 2 != node / 2 {
                let (log, call) = self.calls[node / 2];
                has_messages |= call.function == Function::Send;
                waiting.push((job_rank(log.rank, &log.member), self.in_words(log, call)));
            }
        }
        let first = (0..waiting.len()).min_by_key(|&place| waiting[place].0)?;
        waiting.rotate_left(first);
        Some(match has_messages {
            true => Trouble::CircleOfMessages(waiting),
            false => Trouble::Circle(waiting),
        })
    }

    fn in_words(&self, log: &Log, call: &Call) -> String {
        let of_job = |rank: u32| {
            let mut logs = self.calls.iter().map(|(log, _)| log);
            let other = logs.find(|it| it.communicator == log.communicator && it.rank == rank);
            other.map_or(rank, |other| job_rank(rank, &other.member))
        };
        Call {
            root: call.root.map(of_job),
            after: Vec::new(),
            ..call.clone()
        }
        .to_string()
    }
}

fn channel_of(call: &Call) -> Channel {
    match (call.function, call.root) {
        (Function::Send, Some(to)) => Channel::To(to),
        (Function::Receive, Some(from)) => Channel::From(from),
        _ => Channel::Collectives,
    }
}

/// The calls of other ranks that must have begun before this one can be over.
fn counterparts(call: &Call, rank: u32, number: u64, size: u32) -> Vec<(u32, Channel, u64)> {
    let collective = |other: u32| (other, Channel::Collectives, number);
    let all = || (0..size).filter(|&other| other != rank).map(collective);
    match (call.function, call.root) {
        (Function::Send, Some(to)) if call.needs_receiver() => {
            vec![(to, Channel::From(rank), number)]
        }
        (Function::Send, _) => Vec::new(),
        (Function::Receive, Some(from)) => vec![(from, Channel::To(rank), number)],
        (Function::Broadcast | Function::Scatter, Some(root)) if root != rank => {
            vec![collective(root)]
        }
        (Function::Reduce | Function::Gather, Some(root)) if root == rank => all().collect(),
        (
            Function::Broadcast | Function::Scatter | Function::Reduce | Function::Gather,
            Some(_),
        ) => Vec::new(),
        _ => all().collect(),
    }
}

/// A shortest circle through a node, from it backwards.
fn shortest_way_back<I: Iterator<Item = usize>>(
    from: usize,
    before: impl Fn(usize) -> I,
) -> Option<Vec<usize>> {
    let mut reached_from: HashMap<usize, usize> = HashMap::new();
    let mut queue = VecDeque::from([from]);
    while let Some(node) = queue.pop_front() {
        for next in before(node) {
            if next == from {
                let mut way = vec![node];
                while let Some(&earlier) = way.last().and_then(|last| reached_from.get(last)) {
                    way.push(earlier);
                }
                way.reverse();
                return Some(way);
            }
            if let std::collections::hash_map::Entry::Vacant(entry) = reached_from.entry(next) {
                entry.insert(node);
                queue.push_back(next);
            }
        }
    }
    None
}
