//! The errors of the machine.

use std::io::Read;

use super::Machine;
use crate::error::Error;
use crate::opcode;
use crate::value::Value;

impl<R: Read> Machine<R> {
    #[cold]
    pub(super) fn refuse_stack_global(&self) -> Error {
        let text = |from_top: usize| match self.stack.len().checked_sub(from_top) {
            Some(at) => match self.stack[at] {
                Value::String(id) => short_text(self.heap.string_bytes(id)),
                other => format!("<{}>", self.heap.type_name(other)),
            },
            None => "<nothing>".to_string(),
        };
        let names = &self.stack[self.stack.len().saturating_sub(2)..];
        if names.iter().any(Value::is_taken) {
            return self.taken();
        }
        Error::Global {
            offset: self.at,
            module: text(2),
            name: text(1),
        }
    }

    #[cold]
    pub(super) fn unknown_slot(&self, number: u32) -> Error {
        Error::UnknownMemoSlot {
            offset: self.at,
            slot: u64::from(number),
        }
    }

    #[cold]
    pub(super) fn underflow(&self) -> Error {
        // A row of taken values stands for more than the stack shows.
        let below = self.marks.last().copied().unwrap_or(0);
        if self
            .stack
            .get(below..)
            .is_some_and(|open| open.iter().any(Value::is_taken))
        {
            return self.taken();
        }
        Error::StackUnderflow {
            offset: self.at,
            instruction: opcode::name(self.opcode),
        }
    }

    #[cold]
    pub(super) fn taken(&self) -> Error {
        Error::TakenObjectUsed {
            offset: self.at,
            instruction: opcode::name(self.opcode),
        }
    }

    #[cold]
    pub(super) fn malformed(&self, what: &'static str) -> Error {
        Error::Malformed {
            offset: self.at,
            what,
        }
    }

    #[cold]
    pub(super) fn wrong_operand(&self, expected: &'static str, found: Value) -> Error {
        Error::WrongOperand {
            offset: self.at,
            instruction: opcode::name(self.opcode),
            expected,
            found: self.heap.type_name(found),
        }
    }
}

/// A name for use in a message: shortened, and without anything that a terminal would interpret.
pub(super) fn short_text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(120)]);
    text.chars()
        .map(|character| {
            if character.is_control() {
                '?'
            } else {
                character
            }
        })
        .collect()
}
