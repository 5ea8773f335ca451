//! Reads a recording from an untrusted file.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};

use super::card::read_card;
use super::error::FileError;
use super::names::{read_about, read_names};
use super::unpacked::{Budget, Unpacked};
use super::{MAGIC, VERSION, VERSION_WITH_RANKS, kind};
use crate::names::Names;
use crate::recording::{CardMemory, FailedRun, Recording};

/// A section's kind and length.
pub(super) const SECTION_HEAD_BYTES: u64 = 9;

/// What reading may cost.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The approximate memory for what is read.
    pub memory_bytes: u64,
}

impl Default for Limits {
    /// Enough for a hundred million events.
    fn default() -> Self {
        Self {
            memory_bytes: 16 << 30,
        }
    }
}

/// Reads a whole file.
pub fn read(input: impl Read, limits: Limits) -> Result<Recording, FileError> {
    let mut reader = Reader {
        input: BufReader::with_capacity(1 << 16, input),
        offset: 0,
        budget: Budget {
            limit_bytes: limits.memory_bytes,
            left_bytes: limits.memory_bytes,
        },
    };
    reader.head()?;
    let mut recording = Recording::default();
    let mut names: Option<Names> = None;
    let mut has_about = false;
    let mut ranks: Option<Vec<(Option<u32>, u64)>> = None;
    let mut known: BTreeSet<(Option<u32>, u32)> = BTreeSet::new();
    loop {
        let section = reader.section_head()?;
        match section.kind {
            kind::ABOUT if !has_about => {
                has_about = true;
                let (about, warnings) = reader.section(section, read_about)?;
                (recording.about, recording.warnings) = (about, warnings);
            }
            kind::NAMES if names.is_none() => {
                let read = reader.section(section, read_names)?;
                read.check().map_err(|what| FileError::Inconsistent {
                    offset: section.offset,
                    what,
                })?;
                names = Some(read);
            }
            kind::CARD => {
                let Some(names) = &names else {
                    return Err(section.wrong("a card comes before the names"));
                };
                let mut card = reader.section(section, |input| read_card(input, names))?;
                add_rank(&mut card, recording.cards.len(), ranks.as_deref(), section)?;
                if !known.insert((card.rank, card.index)) {
                    return Err(section.wrong(format!("{} occurs twice", card.title())));
                }
                recording.cards.push(card);
            }
            kind::END => {
                reader.section(section, |_| Ok(()))?;
                recording.names = names.ok_or_else(|| section.wrong("there are no names"))?;
                if !has_about {
                    return Err(section.wrong("it is not said what was rehearsed"));
                }
                let failed = recording.failed_run.as_ref();
                let cards = recording.cards.len() + failed.map_or(0, |run| run.cards.len());
                if ranks.as_ref().is_some_and(|ranks| ranks.len() != cards) {
                    return Err(section.wrong("there are more ranks than cards"));
                }
                reader.nothing_follows()?;
                return Ok(recording);
            }
            kind::FAILED_RUN if recording.failed_run.is_none() => {
                let Some(names) = &names else {
                    return Err(section.wrong("a card comes before the names"));
                };
                let mut failed = reader.section(section, |input| {
                    Ok(FailedRun {
                        steps: input.short()?,
                        cards: input.list(|input| read_card(input, names))?,
                    })
                })?;
                for (at, card) in failed.cards.iter_mut().enumerate() {
                    let place = recording.cards.len() + at;
                    add_rank(card, place, ranks.as_deref(), section)?;
                }
                let cards = failed.cards.iter();
                let known: BTreeSet<_> = cards.map(|card| (card.rank, card.index)).collect();
                if known.len() < failed.cards.len() {
                    return Err(section.wrong("a card of the failed run occurs twice"));
                }
                recording.failed_run = Some(failed);
            }
            kind::RANKS if ranks.is_none() => {
                ranks = Some(reader.section(section, |input| {
                    input.list(|input| {
                        let (rank, nccl_bytes) = (input.short()?, input.number()?);
                        Ok((rank.checked_sub(1), nccl_bytes))
                    })
                })?);
            }
            kind::ABOUT | kind::NAMES | kind::FAILED_RUN | kind::RANKS => {
                return Err(section.wrong(format!("section {} occurs twice", section.kind)));
            }
            kind => return Err(section.wrong(format!("no section has kind {kind}"))),
        }
    }
}

/// Adds the ranks of the cards, if the file has them.
fn add_rank(
    card: &mut CardMemory,
    place: usize,
    ranks: Option<&[(Option<u32>, u64)]>,
    section: Section,
) -> Result<(), FileError> {
    let Some(ranks) = ranks else {
        return Ok(());
    };
    let Some(&(rank, nccl_bytes)) = ranks.get(place) else {
        return Err(section.wrong("there are more cards than ranks"));
    };
    if nccl_bytes > card.outside_bytes {
        return Err(section.wrong("NCCL holds more than there is outside of PyTorch"));
    }
    (card.rank, card.nccl_bytes) = (rank, nccl_bytes);
    Ok(())
}

struct Reader<R: Read> {
    input: BufReader<R>,
    /// Bytes read so far.
    offset: u64,
    budget: Budget,
}

#[derive(Clone, Copy)]
struct Section {
    kind: u8,
    packed_bytes: u64,
    offset: u64,
}

impl Section {
    fn wrong(self, what: impl Into<String>) -> FileError {
        FileError::Section {
            offset: self.offset,
            what: what.into(),
        }
    }
}

impl<R: Read> Reader<R> {
    fn head(&mut self) -> Result<(), FileError> {
        let magic: [u8; MAGIC.len()] = self.bytes().map_err(|error| match error {
            FileError::Truncated { .. } => FileError::NotARecording,
            other => other,
        })?;
        if magic != MAGIC {
            return Err(FileError::NotARecording);
        }
        let version = u32::from_le_bytes(self.bytes()?);
        match version {
            VERSION..=VERSION_WITH_RANKS => Ok(()),
            version => Err(FileError::OtherVersion { version }),
        }
    }

    fn section_head(&mut self) -> Result<Section, FileError> {
        let offset = self.offset;
        let [kind] = self.bytes()?;
        let packed_bytes = u64::from_le_bytes(self.bytes()?);
        Ok(Section {
            kind,
            packed_bytes,
            offset,
        })
    }

    fn section<T>(
        &mut self,
        section: Section,
        values: impl FnOnce(&mut Unpacked<'_, BufReader<R>>) -> Result<T, FileError>,
    ) -> Result<T, FileError> {
        let input = self.input.by_ref().take(section.packed_bytes);
        let mut unpacked = Unpacked::new(
            input,
            section.offset,
            section.packed_bytes,
            &mut self.budget,
        );
        let value = values(&mut unpacked)?;
        unpacked.finish()?;
        self.offset = self.offset.saturating_add(section.packed_bytes);
        Ok(value)
    }

    fn nothing_follows(&mut self) -> Result<(), FileError> {
        match self.input.fill_buf()? {
            [] => Ok(()),
            _ => Err(FileError::Section {
                offset: self.offset,
                what: "something follows the recording's end".to_owned(),
            }),
        }
    }

    /// Reads this many bytes of the file itself.
    fn bytes<const COUNT: usize>(&mut self) -> Result<[u8; COUNT], FileError> {
        let mut bytes = [0; COUNT];
        let mut there = 0;
        while there < COUNT {
            match self.input.read(&mut bytes[there..]) {
                Ok(0) => {
                    return Err(FileError::Truncated {
                        offset: self.offset + there as u64,
                    });
                }
                Ok(read) => there += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.offset += COUNT as u64;
        Ok(bytes)
    }
}
