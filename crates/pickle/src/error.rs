//! What can be wrong with a pickle, and at which byte.

use thiserror::Error as ThisError;

/// Why a file could not be read as plain values. Everything but an I/O error has a byte offset.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum Error {
    #[error("cannot read: {0}")]
    Io(#[from] std::io::Error),
    #[error("the file is empty")]
    Empty,
    /// `instruction_offset` is where the incomplete instruction starts.
    #[error("byte {offset}: the file ends in the middle of its data (truncated?)")]
    Truncated {
        offset: u64,
        instruction_offset: u64,
    },
    #[error("byte {offset}: 0x{byte:02x} is not a pickle opcode")]
    UnknownInstruction { offset: u64, byte: u8 },
    #[error("byte {offset}: pickle protocol {protocol} is not supported (newest: 5)")]
    UnknownProtocol { offset: u64, protocol: u8 },
    #[error(
        "byte {offset}: refers to the Python object `{module}.{name}`; only plain data is supported"
    )]
    Global {
        offset: u64,
        module: String,
        name: String,
    },
    #[error("byte {offset}: {instruction} would run Python code; only plain data is supported")]
    NotData {
        offset: u64,
        instruction: &'static str,
    },
    #[error("byte {offset}: {instruction} needs a value, but there is none")]
    StackUnderflow {
        offset: u64,
        instruction: &'static str,
    },
    #[error("byte {offset}: {instruction} expects {expected}, found {found}")]
    WrongOperand {
        offset: u64,
        instruction: &'static str,
        expected: &'static str,
        found: &'static str,
    },
    #[error("byte {offset}: memo slot {slot} is read but was never written")]
    UnknownMemoSlot { offset: u64, slot: u64 },
    #[error("byte {offset}: {what} is malformed")]
    Malformed { offset: u64, what: &'static str },
    #[error("byte {offset}: the values up to here need more than {limit_bytes} bytes of memory")]
    TooMuchMemory { offset: u64, limit_bytes: u64 },
    /// The file refers to an object that a [`Taker`](crate::Taker) has taken. It can be read without a taker.
    #[error("byte {offset}: {instruction} uses an object that was already extracted")]
    TakenObjectUsed {
        offset: u64,
        instruction: &'static str,
    },
    #[error("byte {offset}: stopped by the consumer")]
    Stopped { offset: u64 },
}

impl Error {
    /// Offset in the (uncompressed) file of the instruction that could not be executed.
    pub fn offset(&self) -> Option<u64> {
        match self {
            Self::Io(_) | Self::Empty => None,
            Self::Truncated { offset, .. }
            | Self::UnknownInstruction { offset, .. }
            | Self::UnknownProtocol { offset, .. }
            | Self::Global { offset, .. }
            | Self::NotData { offset, .. }
            | Self::StackUnderflow { offset, .. }
            | Self::WrongOperand { offset, .. }
            | Self::UnknownMemoSlot { offset, .. }
            | Self::Malformed { offset, .. }
            | Self::TooMuchMemory { offset, .. }
            | Self::TakenObjectUsed { offset, .. }
            | Self::Stopped { offset } => Some(*offset),
        }
    }
}
