//! Numbers, strings and byte strings.

use std::io::Read;

use super::Machine;
use crate::big_integer::{self, Integer};
use crate::error::Error;
use crate::opcode::*;
use crate::text;
use crate::value::{Node, Value};

impl<R: Read> Machine<R> {
    pub(super) fn integer(&mut self, length: u64) -> Result<(), Error> {
        let limit_bytes = self.limits.memory_bytes;
        let integer = self.input.bytes(length, limit_bytes, |bytes| {
            match bytes.first_chunk::<8>() {
                Some(word) if bytes.len() == 8 => Integer::Small(i64::from_le_bytes(*word)),
                _ => big_integer::from_bytes(bytes),
            }
        })?;
        self.push_integer(integer);
        Ok(())
    }

    pub(super) fn push_integer(&mut self, integer: Integer) {
        match integer {
            Integer::Small(value) => self.stack.push(Value::Int(value)),
            Integer::Big(bytes) => self.push_node(Node::BigInt(bytes)),
        }
    }

    /// INT and LONG: digits up to the end of the line, `00` and `01` for booleans, `L` after a LONG.
    pub(super) fn decimal(&mut self, opcode: u8) -> Result<(), Error> {
        let line = self.input.line()?;
        let digits = match (opcode, line.as_slice()) {
            (INT, b"00" | b"01") => {
                self.stack.push(Value::Bool(line == b"01"));
                return Ok(());
            }
            (LONG, [digits @ .., b'L']) => digits,
            (_, digits) => digits,
        };
        let integer =
            big_integer::from_digits(digits).ok_or_else(|| self.malformed("an integer"))?;
        self.push_integer(integer);
        Ok(())
    }

    pub(super) fn string(&mut self, length: u64) -> Result<(), Error> {
        let (heap, limit_bytes) = (&mut self.heap, self.limits.memory_bytes);
        let id = self.input.bytes(length, limit_bytes, |bytes| {
            heap.intern_bytes(bytes, text::is_python_text)
        })?;
        let id = id.ok_or_else(|| self.malformed("a string that is not UTF-8"))?;
        self.stack.push(Value::String(id));
        Ok(())
    }

    pub(super) fn ascii(&mut self, length: u64) -> Result<(), Error> {
        let (heap, limit_bytes) = (&mut self.heap, self.limits.memory_bytes);
        let id = self.input.bytes(length, limit_bytes, |bytes| {
            // Not looked up among the recent ones, which need not be ASCII.
            bytes.is_ascii().then(|| heap.intern_text(bytes))
        })?;
        let id = id.ok_or_else(|| self.malformed("a string that is not ASCII"))?;
        self.stack.push(Value::String(id));
        Ok(())
    }

    pub(super) fn push_text(
        &mut self,
        text: Option<Vec<u8>>,
        what: &'static str,
    ) -> Result<(), Error> {
        let text = text.ok_or_else(|| self.malformed(what))?;
        let id = self.heap.intern_text(&text);
        self.stack.push(Value::String(id));
        Ok(())
    }

    pub(super) fn byte_string(
        &mut self,
        length: u64,
        node: fn(Vec<u8>) -> Node,
    ) -> Result<(), Error> {
        let bytes = self
            .input
            .bytes(length, self.limits.memory_bytes, <[u8]>::to_vec)?;
        self.push_node(node(bytes));
        Ok(())
    }
}
