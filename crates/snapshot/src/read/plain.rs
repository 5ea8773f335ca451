//! Lists whose items are read.
//!
//! After streaming, two kinds of lists do not have the items that the file has put into them: those whose
//! entries were taken, and those that replace lists that were read as the same stack or pool.

use ghostgpu_pickle::{Heap, Value};

use super::ReadError;
use super::interner::{TagKind, tagged};

/// The items of a list, if it is one. [`ReadError::NotAsExpected`] if they are not the file's.
pub(super) fn plain_list(heap: &Heap, value: Value) -> Result<Option<&[Value]>, ReadError> {
    let (Value::Node(node), Some(items)) = (value, heap.list(value)) else {
        return Ok(None);
    };
    let has_lost_entries = tagged(heap.tag(node), TagKind::Target).is_some();
    // Lists that are read as the empty stack are all empty.
    let may_be_another = heap.stands_for_others(node) && !items.is_empty();
    if has_lost_entries || may_be_another {
        return Err(ReadError::NotAsExpected);
    }
    Ok(Some(items))
}

/// One item of such a list.
pub(super) fn item_at(heap: &Heap, list: Value, at: usize) -> Result<Option<Value>, ReadError> {
    Ok(plain_list(heap, list)?
        .and_then(|items| items.get(at))
        .copied())
}
