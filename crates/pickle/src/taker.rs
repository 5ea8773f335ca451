//! Taking finished dictionaries out of the machine while the file streams by.

use crate::heap::Heap;
use crate::value::Value;

/// The position in the pickle of a dictionary that has just received its entries.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The machine's stack below the dictionary. Dictionaries that were taken before it from the same
    /// list are there as one [`Value::Taken`] or [`Value::TakenRow`].
    pub stack: &'a [Value],
    /// The positions of the open MARKs on that stack, outermost first.
    pub marks: &'a [usize],
}

/// What a [`Taker`] does with a dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Take {
    /// Leave it to the machine.
    Leave,
    /// It was taken: the machine drops the dictionary.
    Took,
    /// End reading with [`Error::Stopped`](crate::Error::Stopped).
    Stop,
}

/// A consumer of dictionaries as they are finished.
pub trait Taker {
    /// Whether lists that are written with the same references may become one list, which can no longer be changed. A
    /// file that does change one ends with [`Error::TakenObjectUsed`](crate::Error::TakenObjectUsed).
    const SHARES_LISTS: bool = false;

    /// Called for each dictionary that receives all its entries at once, before they are stored.
    ///
    /// `items` is `key, value, key, value, …`. After [`Take::Took`] the dictionary is gone, and so are its values unless
    /// something else refers to them. It may only be appended to the nearest list below it on the stack, and that list
    /// does not contain it. A file that uses such a dictionary in any other way, or again, ends with
    /// [`Error::TakenObjectUsed`](crate::Error::TakenObjectUsed), and has to be read without a taker. The machine does
    /// not see what else becomes of that list: a taker has to ask in the end whether it
    /// [`is_in_one_place`](Heap::is_in_one_place), and in which.
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
