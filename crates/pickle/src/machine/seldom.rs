//! The instructions that are rare in snapshots, and those that are refused.

use std::io::Read;

use super::Machine;
use super::refusals::short_text;
use crate::dictionary::Dictionary;
use crate::error::Error;
use crate::opcode::{self, *};
use crate::text;
use crate::value::{Node, Value};

impl<R: Read> Machine<R> {
    /// Executes an instruction that is rare in snapshots.
    pub(super) fn seldom(&mut self, opcode: u8, operand: u64) -> Result<(), Error> {
        match opcode {
            PROTO => {
                let protocol = operand as u8;
                self.input.skip(1);
                if protocol > 5 {
                    return Err(Error::UnknownProtocol {
                        offset: self.at,
                        protocol,
                    });
                }
            }
            // A frame says how many bytes belong together; reading does not depend on that.
            FRAME => self.input.skip(8),
            NONE => self.stack.push(Value::None),
            NEWTRUE => self.stack.push(Value::Bool(true)),
            NEWFALSE => self.stack.push(Value::Bool(false)),
            INT | LONG => self.decimal(opcode)?,
            LONG4 => {
                let length = operand as i32;
                self.input.skip(4);
                let length =
                    u64::try_from(length).map_err(|_| self.malformed("a negative length"))?;
                self.integer(length)?;
            }
            BINFLOAT => {
                let value = f64::from_bits(operand.swap_bytes());
                self.input.skip(8);
                self.stack.push(Value::Float(value));
            }
            FLOAT => {
                let line = self.input.line()?;
                let value = std::str::from_utf8(&line)
                    .ok()
                    .and_then(|text| text.trim().parse().ok());
                let value = value.ok_or_else(|| self.malformed("a decimal fraction"))?;
                self.stack.push(Value::Float(value));
            }
            BINUNICODE8 => {
                let length = operand;
                self.input.skip(8);
                self.string(length)?;
            }
            UNICODE => {
                let line = self.input.line()?;
                let text = text::from_raw_unicode_escape(&line);
                self.push_text(text, "a string with escapes")?;
            }
            STRING => {
                let line = self.input.line()?;
                let text = text::from_quoted(&line);
                self.push_text(text, "a string in quotes")?;
            }
            SHORT_BINSTRING => {
                let length = u64::from(operand as u8);
                self.input.skip(1);
                self.ascii(length)?;
            }
            BINSTRING => {
                let length = operand as i32;
                self.input.skip(4);
                let length =
                    u64::try_from(length).map_err(|_| self.malformed("a negative length"))?;
                self.ascii(length)?;
            }
            SHORT_BINBYTES => {
                let length = u64::from(operand as u8);
                self.input.skip(1);
                self.byte_string(length, Node::Bytes)?;
            }
            BINBYTES => {
                let length = u64::from(operand as u32);
                self.input.skip(4);
                self.byte_string(length, Node::Bytes)?;
            }
            BINBYTES8 => {
                let length = operand;
                self.input.skip(8);
                self.byte_string(length, Node::Bytes)?;
            }
            BYTEARRAY8 => {
                let length = operand;
                self.input.skip(8);
                self.byte_string(length, Node::ByteArray)?;
            }
            EMPTY_TUPLE => self.push_node(Node::Tuple(Vec::new())),
            TUPLE1 => self.tuple(1)?,
            TUPLE3 => self.tuple(3)?,
            TUPLE => {
                let items = self.pop_to_mark()?;
                self.push_node(Node::Tuple(items));
            }
            LIST => {
                let items = self.pop_to_mark()?;
                self.push_node(Node::List(items));
            }
            DICT => {
                let items = self.pop_to_mark()?;
                let mut dictionary = Dictionary::default();
                self.fill_dictionary(&mut dictionary, &items)?;
                self.push_node(Node::Dict(dictionary));
            }
            EMPTY_SET => self.push_node(Node::Set(Dictionary::default())),
            FROZENSET => {
                let items = self.pop_to_mark()?;
                let mut set = Dictionary::default();
                for item in items {
                    self.check_hashable(item)?;
                    set.insert(item, Value::None);
                }
                self.push_node(Node::FrozenSet(set));
            }
            ADDITEMS => self.add_items()?,
            APPEND => {
                let item = self.pop_item()?;
                let list = self.top_node()?;
                self.append(list, &[item])?;
            }
            SETITEM => {
                let value = self.pop()?;
                let key = self.pop()?;
                let dictionary = self.top_node()?;
                self.insert(dictionary, &[key, value])?;
            }
            POP => {
                // With nothing above the last mark, the mark itself is removed.
                if self.marks.last() == Some(&self.stack.len()) {
                    self.marks.pop();
                } else {
                    self.pop()?;
                }
            }
            POP_MARK => drop(self.pop_to_mark()?),
            DUP => {
                let value = self.pop()?;
                if let Value::Node(id) = value {
                    self.heap.mark_shared(id);
                }
                self.stack.extend([value, value]);
            }
            GET => {
                let number = self.slot_number()?;
                let number = u32::try_from(number).map_err(|_| Error::UnknownMemoSlot {
                    offset: self.at,
                    slot: number,
                })?;
                self.get(number)?;
            }
            PUT => {
                let number = self.slot_number()?;
                self.put(number)?;
            }
            GLOBAL | INST => {
                let (module, name) = (self.input.line()?, self.input.line()?);
                return Err(Error::Global {
                    offset: self.at,
                    module: short_text(&module),
                    name: short_text(&name),
                });
            }
            STACK_GLOBAL => return Err(self.refuse_stack_global()),
            REDUCE | BUILD | OBJ | NEWOBJ | NEWOBJ_EX | PERSID | BINPERSID | EXT1 | EXT2 | EXT4
            | NEXT_BUFFER | READONLY_BUFFER => {
                return Err(Error::NotData {
                    offset: self.at,
                    instruction: opcode::name(opcode),
                });
            }
            byte => {
                return Err(Error::UnknownInstruction {
                    offset: self.at,
                    byte,
                });
            }
        }
        Ok(())
    }
}
