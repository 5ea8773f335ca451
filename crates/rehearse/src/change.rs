//! What one rehearsal does differently from the script as it is.

use std::path::Path;

use ghostgpu_device::DeviceSheet;
use ghostgpu_session::SizePointRequest;

use crate::in_place_of::in_place_of_the_script;
use crate::prepare::Prepared;
use crate::words::with_value;
use crate::{CodeChange, SizePoint};

/// One thing that a rehearsal does differently.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A variable of the script's environment, such as a setting of PyTorch's allocator.
    Variable { name: String, value: String },
    /// An argument of the script gets this number.
    Argument { option: String, value: u64 },
    /// One more word behind the script's arguments.
    Word(String),
    /// Other sizes, set at a size point.
    Sizes { point: SizePoint, sizes: Sizes },
    /// This text runs in place of the script's.
    Text(String),
    /// A change in the code, which the agent makes while the script runs.
    Code(CodeChange),
    /// Another card.
    Card(Box<DeviceSheet>),
    /// Cards on which allocation never fails: what the job takes is what it needs.
    UnlimitedMemory,
}

/// Sizes in place of the script's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    pub batch: Option<u64>,
    /// Tokens of a sample.
    pub sequence: Option<u64>,
}

impl Sizes {
    pub fn batch(size: u64) -> Self {
        Self {
            batch: Some(size),
            sequence: None,
        }
    }

    pub fn sequence(size: u64) -> Self {
        Self {
            batch: None,
            sequence: Some(size),
        }
    }

    /// The words by which a fork is told them.
    pub(crate) fn named(self) -> impl Iterator<Item = (&'static str, u64)> {
        let named = [("batch", self.batch), ("seq", self.sequence)];
        named
            .into_iter()
            .filter_map(|(name, size)| Some((name, size?)))
    }
}

impl Prepared {
    /// The same with changes; files that they need go into `folder`.
    pub(crate) fn with(&self, changes: &[Change], folder: &Path) -> std::io::Result<Self> {
        let mut changed = self.clone();
        for change in changes {
            changed.apply(change, folder)?;
        }
        Ok(changed)
    }

    fn apply(&mut self, change: &Change, folder: &Path) -> std::io::Result<()> {
        match change {
            Change::Variable { name, value } => {
                self.variables.push((name.into(), value.into()));
            }
            Change::Argument { option, value } => {
                self.words = with_value(&self.words, option, *value);
            }
            Change::Word(word) => self.words.push(word.into()),
            Change::Sizes { point, sizes } => match (point, sizes.batch) {
                (SizePoint::Option(option), Some(size)) => {
                    self.words = with_value(&self.words, option, size);
                }
                (SizePoint::Option(_), None) => {}
                (point, batch) => {
                    self.session.size_point = Some(SizePointRequest {
                        place: point.clone(),
                        batch,
                        seq: sizes.sequence,
                        socket: None,
                    });
                }
            },
            Change::Text(contents) => {
                let file = folder.join("script-with-changes.py");
                std::fs::write(&file, contents)?;
                self.words = in_place_of_the_script(&self.words, &file);
            }
            Change::Code(change) => self.session.changes.push(*change),
            Change::Card(sheet) => self.session.devices = vec![(**sheet).clone()],
            Change::UnlimitedMemory => self.session.elastic = true,
        }
        Ok(())
    }
}
