//! Writing pickles of protocol 4, as Python's own C pickler does: the same frames, batches and memo.

use std::collections::HashMap;
use std::io::{self, Write};

use crate::hash::SeededState;
use crate::opcode::*;

/// Python closes a frame at the first value after this many bytes.
const FRAME_BYTES: usize = 64 * 1024;

/// Frames shorter than this have no header.
const SHORTEST_FRAME_BYTES: usize = 4;

/// How many items Python appends at once.
pub const BATCH_ITEMS: usize = 1000;

/// A memo slot of the pickle being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoSlot(u32);

/// Writes one pickle, value by value, in the order in which the machine will see them.
///
/// ```
/// use ghostgpu_pickle::{Limits, Value, Writer, read};
///
/// let mut writer = Writer::new(Vec::new()).unwrap();
/// writer.dict().unwrap();
/// writer.open().unwrap();
/// writer.string("size").unwrap();
/// writer.unsigned(512).unwrap();
/// writer.string("stream").unwrap();
/// writer.unsigned(0).unwrap();
/// writer.set_items().unwrap();
/// let bytes = writer.finish().unwrap();
/// let pickle = read(&bytes[..], Limits::default()).unwrap();
/// assert_eq!(pickle.heap.get(pickle.root, "size"), Some(Value::Int(512)));
/// ```
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    frame: Vec<u8>,
    next_slot: u32,
    strings: HashMap<Box<str>, MemoSlot, SeededState>,
}

impl<W: Write> Writer<W> {
    /// Begins a pickle.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(&[PROTO, 4])?;
        Ok(Self {
            out,
            frame: Vec::with_capacity(2 * FRAME_BYTES),
            next_slot: 0,
            strings: HashMap::default(),
        })
    }

    /// An empty dictionary; [`Writer::set_items`] fills it.
    pub fn dict(&mut self) -> io::Result<MemoSlot> {
        self.value(&[EMPTY_DICT])?;
        self.memoize()
    }

    /// An empty list; [`Writer::append`] or [`Writer::append_all`] fill it.
    pub fn list(&mut self) -> io::Result<MemoSlot> {
        self.value(&[EMPTY_LIST])?;
        self.memoize()
    }

    /// Opens a bracket around the items that follow.
    pub fn open(&mut self) -> io::Result<()> {
        self.frame.push(MARK);
        Ok(())
    }

    /// Puts the keys and values since the bracket into the dictionary before it.
    pub fn set_items(&mut self) -> io::Result<()> {
        self.frame.push(SETITEMS);
        Ok(())
    }

    /// Puts the last key and value into the dictionary before them, as Python does for one entry.
    pub fn set_item(&mut self) -> io::Result<()> {
        self.frame.push(SETITEM);
        Ok(())
    }

    /// Appends the values since the bracket to the list before it.
    pub fn append_all(&mut self) -> io::Result<()> {
        self.frame.push(APPENDS);
        Ok(())
    }

    /// Appends the last value to the list before it, as Python does for lists of one item.
    pub fn append(&mut self) -> io::Result<()> {
        self.frame.push(APPEND);
        Ok(())
    }

    /// Makes a tuple of the last two values.
    pub fn pair(&mut self) -> io::Result<MemoSlot> {
        self.frame.push(TUPLE2);
        self.memoize()
    }

    /// A value that was written before.
    pub fn again(&mut self, slot: MemoSlot) -> io::Result<()> {
        self.boundary()?;
        match u8::try_from(slot.0) {
            Ok(number) => self.frame.extend([BINGET, number]),
            Err(_) => {
                self.frame.push(LONG_BINGET);
                self.frame.extend(slot.0.to_le_bytes());
            }
        }
        Ok(())
    }

    /// A string; the same text later refers to this one.
    pub fn string(&mut self, text: &str) -> io::Result<()> {
        match self.strings.get(text) {
            Some(slot) => self.again(*slot),
            None => {
                let slot = self.new_string(text)?;
                self.strings.insert(text.into(), slot);
                Ok(())
            }
        }
    }

    /// A string that is an object of its own, as C++ makes one for every use.
    pub fn new_string(&mut self, text: &str) -> io::Result<MemoSlot> {
        self.boundary()?;
        match u8::try_from(text.len()) {
            Ok(length) => self.frame.extend([SHORT_BINUNICODE, length]),
            Err(_) => match u32::try_from(text.len()) {
                Ok(length) => {
                    self.frame.push(BINUNICODE);
                    self.frame.extend(length.to_le_bytes());
                }
                Err(_) => {
                    self.frame.push(BINUNICODE8);
                    self.frame.extend((text.len() as u64).to_le_bytes());
                }
            },
        }
        self.frame.extend(text.as_bytes());
        self.memoize()
    }

    pub fn unsigned(&mut self, value: u64) -> io::Result<()> {
        match i64::try_from(value) {
            Ok(value) => self.integer(value),
            Err(_) => {
                self.value(&[LONG1, 9])?;
                self.frame.extend(value.to_le_bytes());
                self.frame.push(0);
                Ok(())
            }
        }
    }

    pub fn integer(&mut self, value: i64) -> io::Result<()> {
        self.boundary()?;
        if let Ok(value) = u8::try_from(value) {
            self.frame.extend([BININT1, value]);
        } else if let Ok(value) = u16::try_from(value) {
            self.frame.push(BININT2);
            self.frame.extend(value.to_le_bytes());
        } else if let Ok(value) = i32::try_from(value) {
            self.frame.push(BININT);
            self.frame.extend(value.to_le_bytes());
        } else {
            // The fewest bytes that keep the sign.
            let unused_bits = if value < 0 {
                value.leading_ones()
            } else {
                value.leading_zeros()
            };
            let length = 8 - (unused_bits as usize - 1) / 8;
            self.frame.extend([LONG1, length as u8]);
            self.frame.extend(&value.to_le_bytes()[..length]);
        }
        Ok(())
    }

    pub fn float(&mut self, value: f64) -> io::Result<()> {
        self.value(&[BINFLOAT])?;
        self.frame.extend(value.to_be_bytes());
        Ok(())
    }

    pub fn boolean(&mut self, value: bool) -> io::Result<()> {
        self.value(&[if value { NEWTRUE } else { NEWFALSE }])
    }

    pub fn none(&mut self) -> io::Result<()> {
        self.value(&[NONE])
    }

    /// Ends the pickle.
    pub fn finish(mut self) -> io::Result<W> {
        self.frame.push(STOP);
        self.close_frame()?;
        Ok(self.out)
    }

    fn value(&mut self, instruction: &[u8]) -> io::Result<()> {
        self.boundary()?;
        self.frame.extend(instruction);
        Ok(())
    }

    fn memoize(&mut self) -> io::Result<MemoSlot> {
        self.frame.push(MEMOIZE);
        let slot = MemoSlot(self.next_slot);
        self.next_slot = self
            .next_slot
            .checked_add(1)
            .ok_or_else(|| io::Error::other("a pickle has room for 2^32 objects"))?;
        Ok(slot)
    }

    /// Called before every value: the only place where Python ends a frame.
    fn boundary(&mut self) -> io::Result<()> {
        if self.frame.len() >= FRAME_BYTES {
            self.close_frame()
        } else {
            Ok(())
        }
    }

    fn close_frame(&mut self) -> io::Result<()> {
        if self.frame.len() >= SHORTEST_FRAME_BYTES {
            self.out.write_all(&[FRAME])?;
            self.out
                .write_all(&(self.frame.len() as u64).to_le_bytes())?;
        }
        self.out.write_all(&self.frame)?;
        self.frame.clear();
        Ok(())
    }
}
