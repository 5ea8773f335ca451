//! The text that `tests/allocator/drive.py` writes.

use ghostgpu_allocator::{PoolId, Release};

#[derive(Debug)]
pub enum Operation {
    Malloc {
        id: u64,
        bytes: u64,
        stream: usize,
    },
    Free {
        id: u64,
    },
    Record {
        id: u64,
        stream: usize,
    },
    Flush,
    ResetPeak,
    ResetSums,
    Fraction(f64),
    Settings(String),
    Pool {
        name: String,
        id: PoolId,
        helps: bool,
    },
    Enter(String),
    Leave(String),
    Drop(String),
    /// Only statistics or segments.
    Look,
}

#[derive(Debug)]
pub enum Outcome {
    Address(u64),
    Failed(String),
}

pub struct Step {
    pub line: usize,
    pub operation: Operation,
    pub outcome: Option<Outcome>,
    /// Statistics that changed.
    pub stats: Vec<(String, i64)>,
    /// Whether statistics were read at all.
    pub has_stats: bool,
    pub segments: Option<Vec<String>>,
}

pub struct Recorded {
    pub release: Release,
    pub total_bytes: u64,
    pub total_of_driver: u64,
    pub free_bytes: u64,
    pub settings: String,
    /// Handle, and PyTorch's own number.
    pub streams: Vec<(u64, u64)>,
    keys: Vec<String>,
    pub first_stats: Vec<(String, i64)>,
    pub steps: Vec<Step>,
    /// Action, address, bytes, stream.
    pub trace: Vec<(String, u64, u64, u64)>,
}

impl Recorded {
    pub fn read(text: &str) -> Result<Self, String> {
        let mut recorded = Self {
            release: Release::REFERENCE,
            total_bytes: 0,
            total_of_driver: 0,
            free_bytes: 0,
            settings: String::new(),
            streams: Vec::new(),
            keys: Vec::new(),
            first_stats: Vec::new(),
            steps: Vec::new(),
            trace: Vec::new(),
        };
        let mut segments = Vec::new();
        for (index, line) in text.lines().enumerate() {
            recorded
                .read_line(index + 1, line, &mut segments)
                .ok_or_else(|| format!("line {}: cannot be read: {line}", index + 1))?;
        }
        Ok(recorded)
    }

    fn read_line(&mut self, number: usize, line: &str, segments: &mut Vec<String>) -> Option<()> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let parts: Vec<&str> = rest.split(' ').collect();
        let whole = |index: usize| parts.get(index)?.parse::<u64>().ok();
        let place = |index: usize| parts.get(index)?.parse::<usize>().ok();
        let name = |index: usize| parts.get(index).map(|part| (*part).to_owned());
        let operation = match word {
            "release" => {
                self.release = rest.parse().ok()?;
                return Some(());
            }
            "total" => {
                (self.total_bytes, self.total_of_driver) = (whole(0)?, whole(1)?);
                return Some(());
            }
            "free" if self.free_bytes == 0 => {
                self.free_bytes = whole(0)?;
                return Some(());
            }
            "settings" if self.streams.is_empty() => {
                self.settings = rest.to_owned();
                return Some(());
            }
            "stream" => {
                self.streams
                    .push((whole(1)?, parts.get(2)?.parse::<i64>().ok()? as u64));
                return Some(());
            }
            "key" => {
                (place(0)? == self.keys.len()).then_some(())?;
                self.keys.push(name(1)?);
                return Some(());
            }
            "+" => return self.read_stats(&parts),
            "=" => {
                self.steps.last_mut()?.outcome = Some(Outcome::Address(whole(0)?));
                return Some(());
            }
            "!" => {
                self.steps.last_mut()?.outcome = Some(Outcome::Failed(rest.to_owned()));
                return Some(());
            }
            "s" => {
                segments.push(rest.to_owned());
                return Some(());
            }
            "t" => {
                self.trace.push((name(0)?, whole(1)?, whole(2)?, whole(3)?));
                return Some(());
            }
            "end-of-segments" => Operation::Look,
            "malloc" => Operation::Malloc {
                id: whole(0)?,
                bytes: whole(1)?,
                stream: place(2)?,
            },
            "free" => Operation::Free { id: whole(0)? },
            "record" => Operation::Record {
                id: whole(0)?,
                stream: place(1)?,
            },
            "flush" => Operation::Flush,
            "reset-peak" => Operation::ResetPeak,
            "reset-sums" => Operation::ResetSums,
            "fraction" => Operation::Fraction(rest.parse().ok()?),
            "settings" => Operation::Settings(rest.to_owned()),
            "pool" => Operation::Pool {
                name: name(0)?,
                id: PoolId(whole(1)?, whole(2)?),
                helps: whole(3)? == 1,
            },
            "enter" => Operation::Enter(name(0)?),
            "leave" => Operation::Leave(name(0)?),
            "drop" => Operation::Drop(name(0)?),
            _ => return None,
        };
        let looks = matches!(operation, Operation::Look);
        self.steps.push(Step {
            line: number,
            operation,
            outcome: None,
            stats: Vec::new(),
            has_stats: false,
            segments: looks.then(|| std::mem::take(segments)),
        });
        Some(())
    }

    /// Pairs of a key's number and a value.
    fn read_stats(&mut self, parts: &[&str]) -> Option<()> {
        let words: Vec<&str> = parts
            .iter()
            .copied()
            .filter(|part| !part.is_empty())
            .collect();
        let mut stats = Vec::new();
        for pair in words.chunks(2) {
            let [key, value] = pair else {
                return None;
            };
            let key = self.keys.get(key.parse::<usize>().ok()?)?;
            stats.push((key.clone(), value.parse().ok()?));
        }
        match self.steps.last_mut() {
            Some(step) => {
                step.stats.extend(stats);
                step.has_stats = true;
            }
            None => self.first_stats.extend(stats),
        }
        Some(())
    }
}
