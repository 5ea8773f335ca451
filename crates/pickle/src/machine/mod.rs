//! The machine: one loop over the instructions of a pickle.

mod containers;
mod quick;
mod refusals;
mod scalars;
mod seldom;

use std::io::Read;

use crate::dictionary::Dictionary;
use crate::error::Error;
use crate::heap::{Heap, Limits};
use crate::input::Input;
use crate::opcode::*;
use crate::shared_lists::SharedLists;
use crate::taker::{KeepAll, Taker};
use crate::value::{Node, NodeId, Value};

/// A pickle that was read: its value, and the heap that the value's handles refer to.
#[derive(Debug)]
pub struct Pickle {
    pub heap: Heap,
    pub root: Value,
    /// Bytes up to and including the STOP instruction.
    pub length_bytes: u64,
    /// Whether more bytes follow, as in files of several pickles.
    pub has_more: bool,
}

/// Reads one pickle into values.
pub fn read(source: impl Read, limits: Limits) -> Result<Pickle, Error> {
    read_with(source, limits, Heap::default(), &mut KeepAll)
}

/// Reads one pickle into a heap, and offers finished dictionaries to a taker.
///
/// The heap is usually new; a taker that interned the keys it looks for passes the heap with them.
pub fn read_with<T: Taker>(
    source: impl Read,
    limits: Limits,
    heap: Heap,
    taker: &mut T,
) -> Result<Pickle, Error> {
    let mut machine = Machine {
        input: Input::new(source),
        heap,
        stack: Vec::with_capacity(1024),
        marks: Vec::with_capacity(64),
        limits,
        shared_lists: SharedLists::default(),
        last_taken: 0,
        at: 0,
        opcode: 0,
    };
    let root = machine.run(taker)?;
    Ok(Pickle {
        root,
        length_bytes: machine.input.offset(),
        has_more: !machine.input.is_at_end()?,
        heap: machine.heap,
    })
}

struct Machine<R> {
    input: Input<R>,
    heap: Heap,
    stack: Vec<Value>,
    marks: Vec<usize>,
    limits: Limits,
    shared_lists: SharedLists,
    /// The stack position of the object taken last; earlier ones are below.
    last_taken: usize,
    /// Offset and opcode of the current instruction, for errors.
    at: u64,
    opcode: u8,
}

impl<R: Read> Machine<R> {
    fn run<T: Taker>(&mut self, taker: &mut T) -> Result<Value, Error> {
        self.input.fill()?;
        if self.input.is_at_end()? {
            return Err(Error::Empty);
        }
        let error = match self.follow(taker) {
            // An instruction cut off by the end of the file was executed with zeros for what is missing.
            Err(error) if !matches!(error, Error::Io(_)) && self.input.has_overrun() => {
                drop(error);
                self.input.truncated()
            }
            Err(error) => error,
            Ok(root) => return Ok(root),
        };
        Err(match error {
            Error::Truncated { offset, .. } => Error::Truncated {
                offset,
                instruction_offset: self.at,
            },
            other => other,
        })
    }

    fn follow<T: Taker>(&mut self, taker: &mut T) -> Result<Value, Error> {
        loop {
            self.follow_common();
            if self.input.is_low() {
                // Only now is the last instruction complete.
                if !self.input.has_overrun() {
                    self.at = self.input.offset();
                }
                self.input.refill()?;
                self.check_memory()?;
            }
            self.at = self.input.offset();
            // The instruction and its fixed-length operands, in one read.
            let (opcode, operand) = self.input.head();
            self.opcode = opcode;
            match opcode {
                BINGET => {
                    self.input.skip(2);
                    self.get(u32::from(operand as u8))?;
                }
                LONG_BINGET => {
                    self.input.skip(5);
                    self.get(operand as u32)?;
                }
                MEMOIZE => {
                    self.input.skip(1);
                    self.put(self.heap.memo.next())?;
                }
                BINPUT => {
                    self.input.skip(2);
                    self.put(u64::from(operand as u8))?;
                }
                LONG_BINPUT => {
                    self.input.skip(5);
                    self.put(u64::from(operand as u32))?;
                }
                MARK => {
                    self.input.skip(1);
                    self.marks.push(self.stack.len());
                }
                SETITEMS => {
                    self.input.skip(1);
                    self.set_items(taker)?;
                }
                APPENDS => {
                    self.input.skip(1);
                    self.append_all()?;
                }
                EMPTY_DICT => {
                    self.input.skip(1);
                    self.push_node(Node::Dict(Dictionary::default()));
                }
                EMPTY_LIST => {
                    self.input.skip(1);
                    if !T::SHARES_LISTS || !self.shared_list()? {
                        let id = self.heap.add_empty_list();
                        self.stack.push(Value::Node(id));
                    }
                }
                BININT => {
                    self.input.skip(5);
                    self.stack.push(Value::Int(i64::from(operand as i32)));
                }
                BININT1 => {
                    self.input.skip(2);
                    self.stack.push(Value::Int(i64::from(operand as u8)));
                }
                BININT2 => {
                    self.input.skip(3);
                    self.stack.push(Value::Int(i64::from(operand as u16)));
                }
                LONG1 => {
                    let length = operand as u8;
                    let word = self.input.after_length();
                    self.input.skip(2);
                    if (1..=8).contains(&length) {
                        let unused_bits = 64 - 8 * u32::from(length);
                        self.stack
                            .push(Value::Int((word << unused_bits) >> unused_bits));
                        self.input.skip(usize::from(length));
                    } else {
                        self.integer(u64::from(length))?;
                    }
                }
                SHORT_BINUNICODE => {
                    self.input.skip(2);
                    self.string(u64::from(operand as u8))?;
                }
                BINUNICODE => {
                    self.input.skip(5);
                    self.string(u64::from(operand as u32))?;
                }
                TUPLE2 => {
                    self.input.skip(1);
                    self.tuple(2)?;
                }
                STOP => {
                    self.input.skip(1);
                    return self.stop();
                }
                _ => {
                    self.input.skip(1);
                    self.seldom(opcode, operand)?;
                }
            }
        }
    }

    fn stop(&mut self) -> Result<Value, Error> {
        self.pop()
    }

    #[inline(always)]
    fn get(&mut self, number: u32) -> Result<(), Error> {
        match self.heap.recall(number) {
            Some(value) if value.is_taken() => Err(self.taken()),
            Some(value) => {
                self.stack.push(value);
                Ok(())
            }
            None => Err(self.unknown_slot(number)),
        }
    }

    #[inline]
    fn put(&mut self, number: u64) -> Result<(), Error> {
        let below = self.marks.last().copied().unwrap_or(0);
        if self.stack.len() <= below {
            return Err(self.underflow());
        }
        let number = u32::try_from(number).map_err(|_| self.malformed("a memo slot's number"))?;
        let top = self.stack[self.stack.len() - 1];
        self.heap.memoize(number, top);
        Ok(())
    }

    fn slot_number(&mut self) -> Result<u64, Error> {
        let line = self.input.line()?;
        std::str::from_utf8(&line)
            .ok()
            .and_then(|text| text.trim().parse().ok())
            .ok_or_else(|| self.malformed("a memo slot's number"))
    }

    fn push_node(&mut self, node: Node) {
        let id = self.heap.add(node);
        self.stack.push(Value::Node(id));
    }

    /// The last value, which must not have been taken.
    fn pop(&mut self) -> Result<Value, Error> {
        match self.pop_item()? {
            Value::Taken => Err(self.taken()),
            value => Ok(value),
        }
    }

    /// The last value; a single taken one is allowed, since it may be appended to a list.
    fn pop_item(&mut self) -> Result<Value, Error> {
        let below = self.marks.last().copied().unwrap_or(0);
        if self.stack.len() <= below {
            return Err(self.underflow());
        }
        match self.stack.pop() {
            Some(Value::TakenRow) => Err(self.taken()),
            Some(value) => Ok(value),
            None => Err(self.underflow()),
        }
    }

    #[inline]
    fn pop_mark(&mut self) -> Result<usize, Error> {
        self.marks.pop().ok_or_else(|| self.underflow())
    }

    fn pop_to_mark(&mut self) -> Result<Vec<Value>, Error> {
        let mark = self.pop_mark()?;
        if self.stack[mark..].iter().any(Value::is_taken) {
            return Err(self.taken());
        }
        Ok(self.stack.drain(mark..).collect())
    }

    /// The container that the instruction changes: it stays on the stack.
    fn top_node(&self) -> Result<NodeId, Error> {
        let below = self.marks.last().copied().unwrap_or(0);
        match self.stack[below..].last() {
            Some(Value::Node(id)) => Ok(*id),
            Some(Value::Taken | Value::TakenRow) => Err(self.taken()),
            Some(other) => Err(self.wrong_operand("a container", *other)),
            None => Err(self.underflow()),
        }
    }

    fn check_memory(&self) -> Result<(), Error> {
        let stacks = self.stack.len() * size_of::<Value>() + self.marks.len() * size_of::<usize>();
        let held = self.heap.held_bytes() + stacks as u64;
        if held > self.limits.memory_bytes || !self.heap.has_room_for_handles() {
            return Err(Error::TooMuchMemory {
                offset: self.input.offset(),
                limit_bytes: self.limits.memory_bytes,
            });
        }
        Ok(())
    }
}
