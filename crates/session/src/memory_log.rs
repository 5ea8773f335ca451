//! The memory log: what PyTorch's allocator did in one process, and what the program was doing then.
//!
//! The library writes it to the run folder while the script runs. All entries are in one order: an entry refers to the
//! state that the entries before it led to. An entry is a byte for its kind, followed by its fields; all numbers are
//! little-endian. If the process was killed, the log may end in the middle of an entry.

/// `memory-<pid>.log`, from the library.
pub const MEMORY_LOG_PREFIX: &str = "memory-";

/// `history-<pid>.pickle`: PyTorch's own history of the same process, from the agent.
pub const HISTORY_PREFIX: &str = "history-";

/// One entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogEntry<'a> {
    /// The allocator handed out a block.
    Allocated {
        device: u8,
        address: u64,
        block_bytes: u64,
        /// The number of the operator that requested it; 0 if none was running.
        operator: u32,
        /// The module that was running, or whose gradients were being computed; 0 for none.
        module: u32,
        /// The allocator's own sums afterwards.
        totals: Totals,
    },
    /// A block was freed.
    Freed {
        device: u8,
        address: u64,
        totals: Totals,
    },
    /// A request failed.
    OutOfMemory { device: u8, requested_bytes: u64 },
    /// A library was given the memory at this address to work in.
    Workspace { address: u64 },
    /// The memory at this address is the workspace of an operation that could also use other algorithms.
    WorkspaceChoices {
        address: u64,
        workspace_bytes: u64,
        /// Identifies the operation and its shape.
        number: u32,
        /// The workspaces of all algorithms in the order in which they are tried, separated by commas; empty if an
        /// earlier entry has them.
        sizes: &'a str,
    },
    /// A library allocated memory on the card for itself.
    LibraryMemory { device: u8, bytes: u64 },
    /// The part of the library memory that NCCL allocated for a group of several ranks.
    NcclMemory { bytes: u64 },
    /// The memory at this address was the input or output of a collective of several ranks. It may be a part of a block.
    Exchanged { address: u64 },
    /// The first kernel was launched: the context's memory moved, and grew by `bytes`.
    FirstKernel {
        device: u8,
        context_bytes: u64,
        bytes: u64,
    },
    /// A new stage begins. `stage` is the number of a `Stage` in the order of its names, `step` the number of completed
    /// optimizer steps.
    Stage { stage: u8, step: u32 },
    /// The memory at this address belongs to something with a name: see [`OwnerKind`].
    Owner { kind: u8, name: u32, address: u64 },
    /// From here on, this number means this operator.
    Operator { number: u32, name: &'a str },
    /// From here on, this number means this module.
    Module {
        number: u32,
        path: &'a str,
        class: &'a str,
    },
    /// The tensors that a module returned have this many bytes.
    ModuleOutput { number: u32, bytes: u64 },
    /// From here on, this number means this text.
    Text { number: u32, text: &'a str },
}

/// The allocator's own statistics: bytes of allocated blocks, bytes reserved from the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub allocated_bytes: u64,
    pub reserved_bytes: u64,
}

/// What the agent recognises memory as, the strongest first: a parameter remains one even if it is also an input of a
/// model or saved for the backward pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OwnerKind {
    Parameter = 0,
    Buffer = 1,
    Gradient = 2,
    OptimizerState = 3,
    Input = 4,
    SavedForBackward = 5,
    /// Only a name: the variable that keeps it.
    KeptIn = 6,
}

impl OwnerKind {
    pub const ALL: [Self; 7] = [
        Self::Parameter,
        Self::Buffer,
        Self::Gradient,
        Self::OptimizerState,
        Self::Input,
        Self::SavedForBackward,
        Self::KeptIn,
    ];

    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

/// Why a log could not be read further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {offset} of the memory log begins no entry that is known")]
pub struct BadLog {
    pub offset: usize,
}

const ALLOCATED: u8 = 1;
const FREED: u8 = 2;
const OUT_OF_MEMORY: u8 = 3;
const WORKSPACE: u8 = 4;
const STAGE: u8 = 5;
const OWNER: u8 = 6;
const OPERATOR: u8 = 7;
const MODULE: u8 = 8;
const TEXT: u8 = 9;
const MODULE_OUTPUT: u8 = 10;
const LIBRARY_MEMORY: u8 = 11;
const FIRST_KERNEL: u8 = 12;
const WORKSPACE_CHOICES: u8 = 13;
const NCCL_MEMORY: u8 = 14;
const EXCHANGED: u8 = 15;

/// Longer names are cut.
const MAX_TEXT_BYTES: usize = u16::MAX as usize;

impl LogEntry<'_> {
    /// Appends the entry to `log`.
    pub fn write(&self, log: &mut Vec<u8>) {
        match *self {
            Self::Allocated {
                device,
                address,
                block_bytes,
                operator,
                module,
                totals,
            } => {
                log.extend([ALLOCATED, device]);
                log.extend(address.to_le_bytes());
                log.extend(block_bytes.to_le_bytes());
                log.extend(operator.to_le_bytes());
                log.extend(module.to_le_bytes());
                totals.write(log);
            }
            Self::Freed {
                device,
                address,
                totals,
            } => {
                log.extend([FREED, device]);
                log.extend(address.to_le_bytes());
                totals.write(log);
            }
            Self::OutOfMemory {
                device,
                requested_bytes,
            } => {
                log.extend([OUT_OF_MEMORY, device]);
                log.extend(requested_bytes.to_le_bytes());
            }
            Self::Workspace { address } => {
                log.push(WORKSPACE);
                log.extend(address.to_le_bytes());
            }
            Self::WorkspaceChoices {
                address,
                workspace_bytes,
                number,
                sizes,
            } => {
                log.push(WORKSPACE_CHOICES);
                log.extend(address.to_le_bytes());
                log.extend(workspace_bytes.to_le_bytes());
                log.extend(number.to_le_bytes());
                write_text(log, sizes);
            }
            Self::LibraryMemory { device, bytes } => {
                log.extend([LIBRARY_MEMORY, device]);
                log.extend(bytes.to_le_bytes());
            }
            Self::NcclMemory { bytes } => {
                log.push(NCCL_MEMORY);
                log.extend(bytes.to_le_bytes());
            }
            Self::Exchanged { address } => {
                log.push(EXCHANGED);
                log.extend(address.to_le_bytes());
            }
            Self::FirstKernel {
                device,
                context_bytes,
                bytes,
            } => {
                log.extend([FIRST_KERNEL, device]);
                log.extend(context_bytes.to_le_bytes());
                log.extend(bytes.to_le_bytes());
            }
            Self::Stage { stage, step } => {
                log.extend([STAGE, stage]);
                log.extend(step.to_le_bytes());
            }
            Self::Owner {
                kind,
                name,
                address,
            } => {
                log.extend([OWNER, kind]);
                log.extend(name.to_le_bytes());
                log.extend(address.to_le_bytes());
            }
            Self::Operator { number, name } => {
                log.push(OPERATOR);
                log.extend(number.to_le_bytes());
                write_text(log, name);
            }
            Self::Module {
                number,
                path,
                class,
            } => {
                log.push(MODULE);
                log.extend(number.to_le_bytes());
                write_text(log, path);
                write_text(log, class);
            }
            Self::ModuleOutput { number, bytes } => {
                log.push(MODULE_OUTPUT);
                log.extend(number.to_le_bytes());
                log.extend(bytes.to_le_bytes());
            }
            Self::Text { number, text } => {
                log.push(TEXT);
                log.extend(number.to_le_bytes());
                write_text(log, text);
            }
        }
    }
}

impl Totals {
    fn write(self, log: &mut Vec<u8>) {
        log.extend(self.allocated_bytes.to_le_bytes());
        log.extend(self.reserved_bytes.to_le_bytes());
    }
}

fn write_text(log: &mut Vec<u8>, text: &str) {
    let mut length = text.len().min(MAX_TEXT_BYTES);
    while !text.is_char_boundary(length) {
        length -= 1;
    }
    log.extend((length as u16).to_le_bytes());
    log.extend(&text.as_bytes()[..length]);
}

/// Reads the entries of a log one after the other.
#[derive(Clone, Debug)]
pub struct LogReader<'a> {
    log: &'a [u8],
    offset: usize,
}

impl<'a> LogReader<'a> {
    pub fn new(log: &'a [u8]) -> Self {
        Self { log, offset: 0 }
    }

    fn entry(&mut self) -> Option<Result<LogEntry<'a>, BadLog>> {
        let mut fields = Fields(self.log.get(self.offset..)?);
        let entry = match fields.byte()? {
            ALLOCATED => LogEntry::Allocated {
                device: fields.byte()?,
                address: fields.u64()?,
                block_bytes: fields.u64()?,
                operator: fields.u32()?,
                module: fields.u32()?,
                totals: fields.totals()?,
            },
            FREED => LogEntry::Freed {
                device: fields.byte()?,
                address: fields.u64()?,
                totals: fields.totals()?,
            },
            OUT_OF_MEMORY => LogEntry::OutOfMemory {
                device: fields.byte()?,
                requested_bytes: fields.u64()?,
            },
            WORKSPACE => LogEntry::Workspace {
                address: fields.u64()?,
            },
            WORKSPACE_CHOICES => LogEntry::WorkspaceChoices {
                address: fields.u64()?,
                workspace_bytes: fields.u64()?,
                number: fields.u32()?,
                sizes: fields.text()?.unwrap_or_default(),
            },
            LIBRARY_MEMORY => LogEntry::LibraryMemory {
                device: fields.byte()?,
                bytes: fields.u64()?,
            },
            NCCL_MEMORY => LogEntry::NcclMemory {
                bytes: fields.u64()?,
            },
            EXCHANGED => LogEntry::Exchanged {
                address: fields.u64()?,
            },
            FIRST_KERNEL => LogEntry::FirstKernel {
                device: fields.byte()?,
                context_bytes: fields.u64()?,
                bytes: fields.u64()?,
            },
            STAGE => LogEntry::Stage {
                stage: fields.byte()?,
                step: fields.u32()?,
            },
            OWNER => LogEntry::Owner {
                kind: fields.byte()?,
                name: fields.u32()?,
                address: fields.u64()?,
            },
            OPERATOR => LogEntry::Operator {
                number: fields.u32()?,
                name: fields.text()?.unwrap_or_default(),
            },
            MODULE => LogEntry::Module {
                number: fields.u32()?,
                path: fields.text()?.unwrap_or_default(),
                class: fields.text()?.unwrap_or_default(),
            },
            MODULE_OUTPUT => LogEntry::ModuleOutput {
                number: fields.u32()?,
                bytes: fields.u64()?,
            },
            TEXT => LogEntry::Text {
                number: fields.u32()?,
                text: fields.text()?.unwrap_or_default(),
            },
            _ => {
                let offset = self.offset;
                self.offset = self.log.len();
                return Some(Err(BadLog { offset }));
            }
        };
        self.offset = self.log.len() - fields.0.len();
        Some(Ok(entry))
    }
}

impl<'a> Iterator for LogReader<'a> {
    type Item = Result<LogEntry<'a>, BadLog>;

    /// The next entry; `None` at the end, even if the last entry is incomplete.
    fn next(&mut self) -> Option<Self::Item> {
        self.entry()
    }
}

/// What is left of the log.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn totals(&mut self) -> Option<Totals> {
        Some(Totals {
            allocated_bytes: self.u64()?,
            reserved_bytes: self.u64()?,
        })
    }

    /// `None` at the end of the log; `Some(None)` for bytes that are not UTF-8.
    fn text(&mut self) -> Option<Option<&'a str>> {
        let length = u16::from_le_bytes(self.take(2)?.try_into().ok()?);
        Some(std::str::from_utf8(self.take(usize::from(length))?).ok())
    }
}

#[cfg(test)]
mod tests;
