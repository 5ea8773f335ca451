//! The memory log from the point of view of one card: its allocations and frees, with the remarks between.

use ghostgpu_session::memory_log::{LogEntry, LogReader, Totals};

/// An allocation or a free of the card, as the log has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Allocated {
        address: u64,
        block_bytes: u64,
        operator: u32,
        module: u32,
        totals: Totals,
    },
    Freed {
        address: u64,
        totals: Totals,
    },
}

/// What the log says between two steps. Addresses mean what lives there at that moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remark {
    Stage { stage: u8, step: u32 },
    Owner { kind: u8, name: u32, address: u64 },
    Workspace { address: u64 },
}

/// Goes through the log of one card.
#[derive(Debug)]
pub struct CardLog<'a> {
    reader: LogReader<'a>,
    device: u8,
    next: Option<Step>,
}

impl<'a> CardLog<'a> {
    pub fn new(log: &'a [u8], device: u8) -> Self {
        Self {
            reader: LogReader::new(log),
            device,
            next: None,
        }
    }

    /// The next step, without taking it. Remarks before it go to `remark`, each once.
    pub fn peek(&mut self, mut remark: impl FnMut(Remark)) -> Option<Step> {
        while self.next.is_none() {
            match self.reader.next()?.ok()? {
                LogEntry::Allocated {
                    device,
                    address,
                    block_bytes,
                    operator,
                    module,
                    totals,
                } if device == self.device => {
                    self.next = Some(Step::Allocated {
                        address,
                        block_bytes,
                        operator,
                        module,
                        totals,
                    });
                }
                LogEntry::Freed {
                    device,
                    address,
                    totals,
                } if device == self.device => {
                    self.next = Some(Step::Freed { address, totals });
                }
                LogEntry::Stage { stage, step } => remark(Remark::Stage { stage, step }),
                LogEntry::Owner {
                    kind,
                    name,
                    address,
                } => remark(Remark::Owner {
                    kind,
                    name,
                    address,
                }),
                LogEntry::Workspace { address } => remark(Remark::Workspace { address }),
                _ => {}
            }
        }
        self.next
    }

    /// Goes on to what follows the step that was looked at.
    pub fn advance(&mut self) {
        self.next = None;
    }
}
