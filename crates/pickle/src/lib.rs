//! Python pickles, read as plain values.
//!
//! Bytes go in; [`Value`]s in a [`Heap`] come out. A pickle is a program for a small stack machine, and
//! Python's own machine may import and call whatever the program names. This one can build values and
//! nothing else: an instruction that names a class or calls something is refused with that name
//! ([`Error::Global`], [`Error::NotData`]). It knows nothing of what the values mean.
//!
//! What a hostile file cannot do:
//!
//! - **recurse**: values are handles into one flat [`Heap`]; reading, walking and dropping are loops;
//! - **allocate by claiming a length**: memory is allocated as the bytes arrive;
//! - **allocate without bound**: [`Limits`] caps what is held, also where the input is decompressed;
//! - **expand**: an object that is referenced twice is two handles, never two copies.
//!
//! Files larger than memory are read with a [`Taker`], which takes finished dictionaries out of the
//! machine while the file streams by. [`read`] builds everything, [`read_with`] asks a taker.
//!
//! ```
//! use ghostgpu_pickle::{Limits, Value, read};
//!
//! // pickle.dumps({"size": 512}, protocol=4)
//! let bytes = b"\x80\x04\x95\x0d\0\0\0\0\0\0\0}\x94\x8c\x04size\x94M\0\x02s.";
//! let pickle = read(&bytes[..], Limits::default()).unwrap();
//! let size = pickle.heap.get(pickle.root, "size");
//! assert_eq!(size, Some(Value::Int(512)));
//! ```

#![forbid(unsafe_code)]

mod big_integer;
mod dictionary;
mod error;
mod hash;
mod heap;
mod input;
mod machine;
mod memo;
mod opcode;
mod shared_lists;
mod strings;
mod taker;
mod text;
mod value;
mod writer;

pub use dictionary::Dictionary;
pub use error::Error;
pub use hash::SeededState;
pub use heap::{Heap, Limits};
pub use machine::{Pickle, read, read_with};
pub use strings::StringId;
pub use taker::{KeepAll, Place, Take, Taker};
pub use value::{Node, NodeId, Value};
pub use writer::{BATCH_ITEMS, MemoSlot, Writer};
