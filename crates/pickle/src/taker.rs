//! Taking finished dictionaries out of the machine while the file streams by.

use crate::heap::Heap;
use crate::value::Value;

/// The position in the pickle of a dictionary that has just received its entries.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The machine's stack below the dictionary. Dictionaries that were taken before it from the same
    /// list are there as one [`Value::Taken`] or [`Value::TakenRow`].
    pub stack: &'a [Value],
    /// Where on that stack each open MARK is, outermost first.
    pub marks: &'a [usize],
}

/// What a [`Taker`] does with a dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Take {
    /// Leaves it to the machine.
    Leave,
    /// Taken: the machine forgets the dictionary.
    Took,
    /// Reading ends with [`Error::Stopped`](crate::Error::Stopped).
    Stop,
}

/// A consumer of dictionaries as they are finished.
pub trait Taker {
    /// Whether lists that are written with the same references may become one and the same list, which
    /// cannot be changed any more. A file that does change one ends with
    /// [`Error::TakenObjectUsed`](crate::Error::TakenObjectUsed).
    const SHARES_LISTS: bool = false;

    /// Called for each dictionary that gets all its entries at once, before they are stored.
    ///
    /// `items` is `key, value, key, value, …`. After [`Take::Took`] the dictionary is gone, its values
    /// too unless something else refers to them. It may only be appended to the nearest list below it on
    /// the stack, and that list does not show it. A file that uses such a dictionary in any other way, or
    /// again, ends with [`Error::TakenObjectUsed`](crate::Error::TakenObjectUsed), and must be read
    /// without a taker. What the machine does not see is what else becomes of that list: a taker has to
    /// ask whether it [`is_in_one_place`](Heap::is_in_one_place) in the end, and which.
    fn dictionary(&mut self, heap: &mut Heap, place: Place<'_>, items: &[Value]) -> Take;
}

/// Takes nothing: the whole pickle becomes values.
#[derive(Debug, Clone, Copy, Default)]
pub struct KeepAll;

impl Taker for KeepAll {
    fn dictionary(&mut self, _: &mut Heap, _: Place<'_>, _: &[Value]) -> Take {
        Take::Leave
    }
}
