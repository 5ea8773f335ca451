//! A communicator, as one of its ranks sees it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ghostgpu_session::files::{RANK_LEFT_PREFIX, RANKS_FOLDER};
use serde::{Deserialize, Serialize};

use crate::call::{Call, Channel, Function};
use crate::log::{Bytes, Reader, Writer};
use crate::machine::{ProcessId, Surroundings};
use crate::trouble::Trouble;
use crate::waiting::{Missing, Wait};

/// A rank that does not come for so long, while no other comes either, will not come.
const PATIENCE: Duration = Duration::from_secs(300);

/// If the rehearsal has ended a rank, nobody waits longer than this for one that has not come.
const PATIENCE_FOR_THOSE_WHO_LEFT: Duration = Duration::from_secs(5);

/// Who takes part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    pub process: ProcessId,
    /// Its rank in the whole job, where that is known.
    pub job_rank: Option<u32>,
    /// How many ranks it was told there are.
    pub size: u32,
    /// Which machine it takes itself to be on.
    pub host: String,
    /// The card, as the bus knows it.
    pub bus: String,
    /// The line of the script at which it takes part, as `train.py:41`; empty where it is not known.
    pub line: String,
}

/// The rank in the whole job of a communicator's rank.
pub(crate) fn job_rank(rank: u32, member: &Member) -> u32 {
    member.job_rank.unwrap_or(rank)
}

#[derive(Serialize, Deserialize)]
pub(crate) enum Record {
    Joined(Member),
    Called(Call),
}

/// A call of this rank's, to wait for or to ask about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ticket {
    /// The so-many-th collective.
    Collective(u64),
    /// The so-many-th message from a rank.
    Message { from: u32, number: u64 },
    /// The so-many-th message to a rank.
    Sent { to: u32, number: u64 },
}

impl Ticket {
    /// Which of the rank's calls in its communicator this is.
    pub fn place(self) -> (Channel, u64) {
        match self {
            Self::Collective(number) => (Channel::Collectives, number),
            Self::Message { from, number } => (Channel::From(from), number),
            Self::Sent { to, number } => (Channel::To(to), number),
        }
    }

    pub fn at(channel: Channel, number: u64) -> Self {
        match channel {
            Channel::Collectives => Self::Collective(number),
            Channel::From(from) => Self::Message { from, number },
            Channel::To(to) => Self::Sent { to, number },
        }
    }
}

/// What is known of one rank.
#[derive(Debug)]
struct Peer {
    reader: Reader,
    member: Option<Member>,
    collectives: Vec<(Call, Bytes)>,
    messages: BTreeMap<u32, Vec<(Call, Bytes)>>,
    /// How many messages it has asked for, by sender.
    receptions: BTreeMap<u32, u64>,
    /// How many of its collectives were compared with ours.
    compared: usize,
    /// How many of its messages to us were compared with what we receive.
    compared_messages: usize,
    /// False of one that is not run, or that the rehearsal has ended.
    is_awaited: bool,
}

#[derive(Debug)]
struct Inner {
    own: Writer,
    /// All ranks, this one included.
    peers: Vec<Peer>,
    collectives: Vec<Call>,
    receptions: BTreeMap<u32, Vec<Call>>,
    sent: BTreeMap<u32, Vec<Call>>,
}

#[derive(Debug)]
pub struct Communicator {
    folder: PathBuf,
    name: String,
    rank: u32,
    own: Member,
    /// Ranks of the job that are not run. They are silent: nobody waits for them.
    absent: BTreeSet<u32>,
    inner: Mutex<Inner>,
}

impl Communicator {
    /// Takes part as `rank`, without waiting for the others. Those who are `absent` will never come.
    pub fn join(
        run_dir: &Path,
        name: &str,
        rank: u32,
        own: Member,
        absent: BTreeSet<u32>,
    ) -> Result<Self, Trouble> {
        let folder = run_dir.join(RANKS_FOLDER);
        let logs = folder.join(name);
        std::fs::create_dir_all(&logs)?;
        let path_of = |rank: u32| logs.join(format!("{rank}.log"));
        if path_of(rank).exists() {
            return Err(Trouble::SameRank { rank });
        }
        let peers = (0..own.size).map(|rank| Peer {
            reader: Reader::new(path_of(rank)),
            member: None,
            collectives: Vec::new(),
            messages: BTreeMap::new(),
            receptions: BTreeMap::new(),
            compared: 0,
            compared_messages: 0,
            is_awaited: !absent.contains(&rank),
        });
        let peers: Vec<Peer> = peers.collect();
        let mut writer = Writer::create(&path_of(rank))?;
        writer.append(&Record::Joined(own.clone()), &[])?;
        Ok(Self {
            folder,
            name: name.to_owned(),
            rank,
            absent,
            inner: Mutex::new(Inner {
                own: writer,
                peers,
                collectives: Vec::new(),
                receptions: BTreeMap::new(),
                sent: BTreeMap::new(),
            }),
            own,
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn rank(&self) -> u32 {
        self.rank
    }

    pub fn size(&self) -> u32 {
        self.own.size
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The rank in the whole job of one of this communicator's.
    fn job_rank(&self, inner: &Inner, rank: u32) -> u32 {
        let member = inner.peers[rank as usize].member.as_ref();
        member.and_then(|member| member.job_rank).unwrap_or(rank)
    }

    /// A call in words. NCCL numbers the ranks of each group anew; readers know those of the job.
    fn in_words(&self, inner: &Inner, call: &Call) -> String {
        let root = call
            .root
            .map(|rank| match (rank as usize) < inner.peers.len() {
                true => self.job_rank(inner, rank),
                false => rank,
            });
        Call {
            root,
            ..call.clone()
        }
        .to_string()
    }

    fn words_of(&self, ticket: Ticket) -> String {
        let inner = self.inner();
        let call = inner.own_call(ticket);
        call.map_or_else(String::new, |call| self.in_words(&inner, call))
    }

    fn own_job_rank(&self) -> u32 {
        self.own.job_rank.unwrap_or(self.rank)
    }

    /// Waits until all ranks have come, and finds out whether they can work together.
    pub fn meet(&self, surroundings: &impl Surroundings) -> Result<(), Trouble> {
        let waits_in = "the start of its group".to_owned();
        let mut wait = Wait::new(
            &self.folder,
            surroundings,
            self.own.process,
            self.own_job_rank(),
            waits_in,
        );
        let mut since = Instant::now();
        let mut seen = 0;
        loop {
            let missing: Vec<u32> = {
                let mut inner = self.inner();
                inner.read(&self.folder)?;
                self.check_members(&inner)?;
                let peers = (0..self.size()).zip(&inner.peers);
                let missing = peers.filter(|(_, peer)| peer.member.is_none());
                let missing = missing.map(|(rank, _)| rank);
                missing.filter(|rank| !self.absent.contains(rank)).collect()
            };
            if missing.is_empty() {
                return Ok(());
            }
            if missing.len() != seen {
                (seen, since) = (missing.len(), Instant::now());
            }
            if since.elapsed() > PATIENCE_FOR_THOSE_WHO_LEFT && self.somebody_left() {
                return Ok(());
            }
            if since.elapsed() > PATIENCE {
                return Err(Trouble::NeverCame {
                    missing,
                    size: self.size(),
                    seconds: PATIENCE.as_secs(),
                });
            }
            wait.go_on(&[])?;
        }
    }

    fn somebody_left(&self) -> bool {
        std::fs::read_dir(&self.folder).is_ok_and(|entries| {
            entries.flatten().any(|entry| {
                let name = entry.file_name();
                name.to_str()
                    .is_some_and(|name| name.starts_with(RANK_LEFT_PREFIX))
            })
        })
    }

    fn check_members(&self, inner: &Inner) -> Result<(), Trouble> {
        let members = || {
            let members = inner.peers.iter().map(|peer| peer.member.as_ref());
            (0u32..)
                .zip(members)
                .filter_map(|(rank, member)| Some((rank, member?)))
        };
        for (rank, member) in members() {
            if member.size != self.size() {
                let size_of = |rank, member: &Member| {
                    (job_rank(rank, member), member.size, member.line.clone())
                };
                let mut sides = [size_of(self.rank, &self.own), size_of(rank, member)];
                // Both ranks tell it in the same words.
                sides.sort();
                return Err(Trouble::WorldSizes(sides));
            }
            let twin = members().find(|(other, twin)| {
                *other < rank && twin.host == member.host && twin.bus == member.bus
            });
            if let Some((other, twin)) = twin {
                return Err(Trouble::SameCard {
                    rank: job_rank(rank, member),
                    other: job_rank(other, twin),
                    bus: member.bus.clone(),
                    line: self.own.line.clone(),
                });
            }
        }
        Ok(())
    }

    /// Writes down a call, with the values that go into it where they are known.
    pub fn post(&self, call: Call, values: Option<&[u8]>) -> Result<Ticket, Trouble> {
        let mut inner = self.inner();
        inner
            .own
            .append(&Record::Called(call.clone()), values.unwrap_or_default())?;
        Ok(match (call.function, call.root) {
            (Function::Send, Some(to)) => {
                let sent = inner.sent.entry(to).or_default();
                sent.push(call);
                let number = sent.len() as u64 - 1;
                Ticket::Sent { to, number }
            }
            (Function::Receive, Some(from)) => {
                let receptions = inner.receptions.entry(from).or_default();
                receptions.push(call);
                Ticket::Message {
                    from,
                    number: receptions.len() as u64 - 1,
                }
            }
            _ => {
                inner.collectives.push(call);
                Ticket::Collective(inner.collectives.len() as u64 - 1)
            }
        })
    }

    /// The last of this rank's collectives, and the last of its messages from and to each other: who waits for these
    /// waits for all.
    pub fn newest(&self) -> Vec<Ticket> {
        let inner = self.inner();
        let collective = (inner.collectives.len() as u64).checked_sub(1);
        let messages = inner.receptions.iter().filter_map(|(&from, received)| {
            let number = (received.len() as u64).checked_sub(1)?;
            Some(Ticket::Message { from, number })
        });
        let sent = inner.sent.iter().filter_map(|(&to, sent)| {
            let number = sent.iter().rposition(Call::needs_receiver)? as u64;
            Some(Ticket::Sent { to, number })
        });
        let collective = collective.map(Ticket::Collective);
        collective.into_iter().chain(messages).chain(sent).collect()
    }

    /// Waits until everybody has made the call.
    pub fn wait(&self, ticket: Ticket, surroundings: &impl Surroundings) -> Result<(), Trouble> {
        let mut waiting: Option<Wait<'_, _>> = None;
        loop {
            let missing = {
                let mut inner = self.inner();
                inner.read(&self.folder)?;
                self.compare(&mut inner)?;
                self.missing(&inner, ticket)
            };
            if missing.is_empty() {
                return Ok(());
            }
            let wait = waiting.get_or_insert_with(|| {
                Wait::new(
                    &self.folder,
                    surroundings,
                    self.own.process,
                    self.own_job_rank(),
                    self.words_of(ticket),
                )
            });
            wait.go_on(&missing)?;
        }
    }

    /// Who has not made the call yet, and still may.
    fn missing(&self, inner: &Inner, ticket: Ticket) -> Vec<Missing> {
        let has_come = |rank: u32, peer: &Peer| match ticket {
            Ticket::Sent { to, number } => {
                to != rank
                    || peer
                        .receptions
                        .get(&self.rank)
                        .is_some_and(|&received| received > number)
            }
            Ticket::Collective(number) => peer.collectives.len() as u64 > number,
            Ticket::Message { from, number } => {
                from != rank
                    || peer
                        .messages
                        .get(&self.rank)
                        .is_some_and(|sent| sent.len() as u64 > number)
            }
        };
        (0u32..)
            .zip(&inner.peers)
            .filter(|(rank, peer)| peer.is_awaited && !has_come(*rank, peer))
            .filter_map(|(rank, peer)| {
                Some(Missing {
                    rank: self.job_rank(inner, rank),
                    process: peer.member.as_ref()?.process,
                })
            })
            .collect()
    }

    /// Compares what others have called with what this rank has.
    fn compare(&self, inner: &mut Inner) -> Result<(), Trouble> {
        for rank in 0..self.size() {
            let peer = &inner.peers[rank as usize];
            let common = peer.collectives.len().min(inner.collectives.len());
            let theirs = &peer.collectives[peer.compared..common];
            let ours = &inner.collectives[peer.compared..common];
            let mut pairs = ours.iter().zip(theirs.iter().map(|(call, _)| call));
            if let Some((own, other)) = pairs.find(|(own, other)| !own.agrees_with(other)) {
                return Err(self.disagreement(inner, own, rank, other));
            }
            let mut messages = peer.compared_messages;
            if let (Some(received), Some(sent)) =
                (inner.receptions.get(&rank), peer.messages.get(&self.rank))
            {
                let common = received.len().min(sent.len());
                let sent = sent[messages..common].iter().map(|(call, _)| call);
                let mut pairs = received[messages..common].iter().zip(sent);
                if let Some((own, other)) = pairs.find(|(own, sent)| !own.is_answered_by(sent)) {
                    return Err(self.disagreement(inner, own, rank, other));
                }
                messages = common;
            }
            let peer = &mut inner.peers[rank as usize];
            (peer.compared, peer.compared_messages) = (common, messages);
        }
        Ok(())
    }

    fn disagreement(&self, inner: &Inner, own: &Call, rank: u32, other: &Call) -> Trouble {
        let mut sides = [
            (self.own_job_rank(), self.in_words(inner, own)),
            (self.job_rank(inner, rank), self.in_words(inner, other)),
        ];
        // Both ranks tell it in the same words.
        sides.sort();
        let [(rank, called), (other, other_called)] = sides;
        Trouble::Disagreement {
            rank,
            called,
            other,
            other_called,
        }
    }

    /// Whose values stand for those of a rank: its own, or those of the nearest before it that is run. All ranks
    /// come to the same.
    fn speaker_for(&self, rank: u32) -> u32 {
        let is_run = |rank: &u32| !self.absent.contains(rank);
        let before = (0..=rank).rev().find(is_run);
        before
            .or_else(|| (rank..self.size()).find(is_run))
            .unwrap_or(rank)
    }

    /// What a rank put into a call that everybody has made; none if it was not known, or if that rank has left. A
    /// rank that is not run puts in what one like it does; what it sends to one other alone is not known.
    pub fn values(&self, ticket: Ticket, from: u32) -> Option<Vec<u8>> {
        let from = match ticket {
            Ticket::Collective(_) => self.speaker_for(from),
            Ticket::Message { .. } | Ticket::Sent { .. } => from,
        };
        let inner = self.inner();
        let peer = inner.peers.get(from as usize)?;
        let (_, bytes) = match ticket {
            Ticket::Collective(number) => peer.collectives.get(usize::try_from(number).ok()?)?,
            Ticket::Message {
                from: sender,
                number,
            } if sender == from => {
                let sent = peer.messages.get(&self.rank)?;
                sent.get(usize::try_from(number).ok()?)?
            }
            _ => return None,
        };
        (bytes.length > 0).then(|| peer.reader.fetch(*bytes).ok())?
    }

    /// Which part every rank goes to in a split that everybody has made: ranks and their places.
    pub fn parts(&self, ticket: Ticket) -> Vec<(u32, i32, i32)> {
        let inner = self.inner();
        let Ticket::Collective(number) = ticket else {
            return Vec::new();
        };
        let calls = inner
            .peers
            .iter()
            .map(|peer| peer.collectives.get(number as usize));
        (0u32..)
            .zip(calls)
            .filter_map(|(rank, call)| {
                let (color, key) = call?.0.part?;
                Some((rank, color, key))
            })
            .collect()
    }
}

impl Inner {
    /// Takes in what has come since the last time.
    fn read(&mut self, folder: &Path) -> Result<(), Trouble> {
        let are_run = |peer: &&mut Peer| peer.is_awaited || peer.member.is_some();
        for peer in self.peers.iter_mut().filter(are_run) {
            for (record, bytes) in peer.reader.read::<Record>()? {
                match record {
                    Record::Joined(member) => peer.member = Some(member),
                    Record::Called(call) => match (call.function, call.root) {
                        (Function::Send, Some(to)) => {
                            peer.messages.entry(to).or_default().push((call, bytes));
                        }
                        (Function::Receive, Some(from)) => {
                            *peer.receptions.entry(from).or_default() += 1;
                        }
                        _ => peer.collectives.push((call, bytes)),
                    },
                }
            }
            if let Some(member) = &peer.member
                && peer.is_awaited
            {
                let pid = member.process.pid;
                peer.is_awaited = !folder.join(format!("{RANK_LEFT_PREFIX}{pid}")).exists();
            }
        }
        Ok(())
    }

    fn own_call(&self, ticket: Ticket) -> Option<&Call> {
        match ticket {
            Ticket::Sent { to, number } => self.sent.get(&to)?.get(number as usize),
            Ticket::Collective(number) => self.collectives.get(number as usize),
            Ticket::Message { from, number } => self.receptions.get(&from)?.get(number as usize),
        }
    }
}
