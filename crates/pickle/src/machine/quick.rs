//! The most common instructions in a tight loop, as long as nothing can go wrong.
//!
//! Nine out of ten instructions of a snapshot push a number, a memoized object or a short string. They are executed
//! here, with the position in a local variable and without keeping track of offsets for errors. Whatever is rare, may
//! fail or reaches the end of the buffer is left to the full machine, which resumes at exactly the same place.

use std::io::Read;

use super::Machine;
use crate::dictionary::Dictionary;
use crate::opcode::*;
use crate::text;
use crate::value::{Node, Value};

impl<R: Read> Machine<R> {
    #[inline]
    pub(super) fn follow_common(&mut self) {
        let Self {
            input,
            heap,
            stack,
            marks,
            ..
        } = self;
        let bytes = input.ahead();
        let mut below = marks.last().copied().unwrap_or(0);
        let mut at = 0;
        while let Some(window) = bytes.get(at..)
            && let Some([opcode, operand @ .., _]) = window.first_chunk::<10>()
        {
            let operand = u64::from_le_bytes(*operand);
            match *opcode {
                LONG_BINGET => match heap.recall_plain(operand as u32) {
                    Some(value) => {
                        stack.push(value);
                        at += 5;
                    }
                    None => break,
                },
                BINGET => match heap.recall_plain(u32::from(operand as u8)) {
                    Some(value) => {
                        stack.push(value);
                        at += 2;
                    }
                    None => break,
                },
                MEMOIZE => {
                    if stack.len() <= below || !heap.memoize_next(stack[stack.len() - 1]) {
                        break;
                    }
                    at += 1;
                }
                LONG1 => {
                    let length = operand as u8;
                    if !(1..=8).contains(&length) {
                        break;
                    }
                    let Some(word) = window[2..].first_chunk::<8>() else {
                        break;
                    };
                    let unused_bits = 64 - 8 * u32::from(length);
                    let value = (i64::from_le_bytes(*word) << unused_bits) >> unused_bits;
                    stack.push(Value::Int(value));
                    at += 2 + usize::from(length);
                }
                BININT => {
                    stack.push(Value::Int(i64::from(operand as i32)));
                    at += 5;
                }
                BININT1 => {
                    stack.push(Value::Int(i64::from(operand as u8)));
                    at += 2;
                }
                BININT2 => {
                    stack.push(Value::Int(i64::from(operand as u16)));
                    at += 3;
                }
                SHORT_BINUNICODE => {
                    let length = usize::from(operand as u8);
                    let Some(string) = window.get(2..2 + length) else {
                        break;
                    };
                    let Some(id) = heap.intern_bytes(string, text::is_python_text) else {
                        break;
                    };
                    stack.push(Value::String(id));
                    at += 2 + length;
                }
                TUPLE2 => {
                    let Some(from) = stack.len().checked_sub(2).filter(|from| *from >= below)
                    else {
                        break;
                    };
                    if !matches!(stack[from..], [Value::Int(_), Value::Int(_)]) {
                        break;
                    }
                    let id = heap.add_tuple(&stack[from..]);
                    stack.truncate(from);
                    stack.push(Value::Node(id));
                    at += 1;
                }
                EMPTY_DICT => {
                    let id = heap.add(Node::Dict(Dictionary::default()));
                    stack.push(Value::Node(id));
                    at += 1;
                }
                MARK => {
                    below = stack.len();
                    marks.push(below);
                    at += 1;
                }
                _ => break,
            }
        }
        input.skip(at);
    }
}
