//! Who waits for whom, and whether that can ever end.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ghostgpu_session::files::{RANK_BLOCKED_PREFIX, RANK_STANDING_PREFIX, RANK_WAITING_PREFIX};
use serde::{Deserialize, Serialize};

use crate::machine::{ProcessId, Surroundings};
use crate::trouble::Trouble;

/// A peer that has ended may have failed, and whoever started both is about to end this one too.
const GRACE: Duration = Duration::from_secs(4);

/// A peer that does not use the processor for so long stands still, unless it waits for somebody itself.
const STILL: Duration = Duration::from_secs(45);

/// Watching threads use a little even then: so many hundredths of a second in that time are nothing.
const STILL_TICKS: u64 = 50;

/// How often that is looked at: it means reading about every process that a peer has started.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Waiting is told to others only when it takes longer than this.
const QUIET: Duration = Duration::from_millis(250);

/// A circle must be seen so often in a row: a file of somebody who goes on just now may be old.
const SIGHTINGS: u32 = 4;

/// What a waiting process tells the others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    pub rank: u32,
    pub waits_in: String,
    /// The processes it waits for.
    pub awaits: Vec<u32>,
}

/// A peer that has not come yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    pub rank: u32,
    pub process: ProcessId,
}

/// One stretch of waiting.
pub struct Wait<'a, S> {
    folder: &'a Path,
    surroundings: &'a S,
    own: ProcessId,
    notice: Notice,
    began: Instant,
    ended_since: Option<Instant>,
    still: BTreeMap<u32, (u64, Instant)>,
    looked: Option<Instant>,
    sightings: u32,
    is_told: bool,
}

impl<'a, S: Surroundings> Wait<'a, S> {
    pub fn new(
        folder: &'a Path,
        surroundings: &'a S,
        own: ProcessId,
        rank: u32,
        waits_in: String,
    ) -> Self {
        Self {
            folder,
            surroundings,
            own,
            notice: Notice {
                rank,
                waits_in,
                awaits: Vec::new(),
            },
            began: Instant::now(),
            ended_since: None,
            still: BTreeMap::new(),
            looked: None,
            sightings: 0,
            is_told: false,
        }
    }

    /// Waits a little for these peers, or finds out that it is in vain.
    pub fn go_on(&mut self, missing: &[Missing]) -> Result<(), Trouble> {
        self.find_ended(missing)?;
        if self.began.elapsed() > QUIET {
            self.tell(missing)?;
            self.find_circle(missing)?;
            self.find_still(missing)?;
        }
        let pause =
            (self.began.elapsed() / 8).clamp(Duration::from_micros(50), Duration::from_millis(20));
        match self.surroundings.pause(pause) {
            true => Ok(()),
            false => {
                // The notice stays: it says where the process was when it was ended.
                self.is_told = false;
                Err(Trouble::Interrupted)
            }
        }
    }

    fn find_ended(&mut self, missing: &[Missing]) -> Result<(), Trouble> {
        let ended = missing
            .iter()
            .find(|peer| !self.surroundings.is_alive(peer.process));
        let Some(ended) = ended else {
            self.ended_since = None;
            return Ok(());
        };
        if self.ended_since.get_or_insert_with(Instant::now).elapsed() < GRACE {
            return Ok(());
        }
        Err(Trouble::Ended {
            rank: self.notice.rank,
            waits_in: self.notice.waits_in.clone(),
            ended: ended.rank,
        })
    }

    fn tell(&mut self, missing: &[Missing]) -> io::Result<()> {
        let awaits: Vec<u32> = missing.iter().map(|peer| peer.process.pid).collect();
        if self.is_told && self.notice.awaits == awaits {
            return Ok(());
        }
        self.notice.awaits = awaits;
        let path = notice_path(self.folder, self.own.pid);
        let unfinished = path.with_extension("unfinished");
        std::fs::write(&unfinished, serde_json::to_vec(&self.notice)?)?;
        std::fs::rename(&unfinished, &path)?;
        self.is_told = true;
        Ok(())
    }

    fn find_circle(&mut self, missing: &[Missing]) -> Result<(), Trouble> {
        let notice = |pid: u32| -> Option<Notice> {
            serde_json::from_slice(&std::fs::read(notice_path(self.folder, pid)).ok()?).ok()
        };
        let awaited = missing.iter().map(|peer| peer.process.pid);
        let circle = awaited
            .filter_map(|pid| way_to(self.own.pid, pid, &notice))
            .next();
        let Some(circle) = circle else {
            self.sightings = 0;
            return Ok(());
        };
        self.sightings += 1;
        if self.sightings < SIGHTINGS {
            return Ok(());
        }
        let mut waiting = vec![(self.notice.rank, self.notice.waits_in.clone())];
        waiting.extend(circle.into_iter().map(|each| (each.rank, each.waits_in)));
        // Everybody in the circle tells it in the same words.
        let first = (0..waiting.len()).min_by_key(|&place| waiting[place].0);
        waiting.rotate_left(first.unwrap_or(0));
        // The notice stays, so that the others see the circle too.
        self.is_told = false;
        Err(Trouble::Circle(waiting))
    }

    fn find_still(&mut self, missing: &[Missing]) -> Result<(), Trouble> {
        if self
            .looked
            .is_some_and(|looked| looked.elapsed() < LOOK_EVERY)
        {
            return Ok(());
        }
        self.looked = Some(Instant::now());
        for peer in missing {
            let pid = peer.process.pid;
            let ticks = self.surroundings.processor_ticks(peer.process);
            let (before, since) = *self.still.entry(pid).or_insert((ticks, Instant::now()));
            let blocked = self.folder.join(format!("{RANK_BLOCKED_PREFIX}{pid}"));
            let is_waiting = notice_path(self.folder, pid).exists() || blocked.exists();
            if is_waiting || ticks > before + STILL_TICKS {
                self.still.insert(pid, (ticks, Instant::now()));
            } else if since.elapsed() > STILL {
                return Err(Trouble::StandsStill {
                    rank: self.notice.rank,
                    waits_in: self.notice.waits_in.clone(),
                    still: peer.rank,
                    stands_at: standing_at(self.folder, pid),
                    seconds: since.elapsed().as_secs(),
                });
            }
        }
        Ok(())
    }
}

impl<S> Drop for Wait<'_, S> {
    fn drop(&mut self) {
        if self.is_told {
            // Nobody is hurt by a file that stays: it has to be seen several times.
            let _ = std::fs::remove_file(notice_path(self.folder, self.own.pid));
        }
    }
}

fn notice_path(folder: &Path, pid: u32) -> PathBuf {
    folder.join(format!("{RANK_WAITING_PREFIX}{pid}"))
}

/// The line at which a process stands still, if its agent has said so.
fn standing_at(folder: &Path, pid: u32) -> Option<String> {
    let told = std::fs::read(folder.join(format!("{RANK_STANDING_PREFIX}{pid}"))).ok()?;
    let told: Standing = serde_json::from_slice(&told).ok()?;
    Some(told.stands_at)
}

/// What the agent tells of a process whose main thread has done nothing for some seconds.
#[derive(Deserialize)]
struct Standing {
    stands_at: String,
}

/// The processes from `from` up to the one that waits for `target`, each with what it waits in.
fn way_to(target: u32, from: u32, notice: &impl Fn(u32) -> Option<Notice>) -> Option<Vec<Notice>> {
    fn follow(
        target: u32,
        from: u32,
        notice: &impl Fn(u32) -> Option<Notice>,
        seen: &mut Vec<u32>,
    ) -> Option<Vec<Notice>> {
        if seen.contains(&from) {
            return None;
        }
        seen.push(from);
        let own = notice(from)?;
        if own.awaits.contains(&target) {
            return Some(vec![own]);
        }
        let rest = own
            .awaits
            .iter()
            .find_map(|&next| follow(target, next, notice, seen))?;
        Some([vec![own], rest].concat())
    }
    follow(target, from, notice, &mut Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_is_found_through_others_and_a_line_is_none() {
        let waits = |pairs: &'static [(u32, &'static [u32])]| {
            move |pid: u32| {
                let (_, awaits) = pairs.iter().find(|(each, _)| *each == pid)?;
                Some(Notice {
                    rank: pid * 10,
                    waits_in: "recv".to_owned(),
                    awaits: awaits.to_vec(),
                })
            }
        };
        let ranks = |way: Option<Vec<Notice>>| {
            way.map(|way| way.iter().map(|each| each.rank).collect::<Vec<_>>())
        };
        let direct = waits(&[(2, &[1])]);
        assert_eq!(ranks(way_to(1, 2, &direct)), Some(vec![20]));
        let long = waits(&[(2, &[5, 3]), (3, &[4]), (4, &[1]), (5, &[2])]);
        assert_eq!(ranks(way_to(1, 2, &long)), Some(vec![20, 30, 40]));
        let line = waits(&[(2, &[3])]);
        assert_eq!(ranks(way_to(1, 2, &line)), None);
        let elsewhere = waits(&[(2, &[3]), (3, &[2])]);
        assert_eq!(ranks(way_to(1, 2, &elsewhere)), None);
    }
}
