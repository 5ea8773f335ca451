//! What a thread of the program is doing: which module it runs, which operators it is inside of.

use std::cell::{RefCell, UnsafeCell};
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

use ghostgpu_session::memory_log::LogEntry;

use super::log;

/// Where the agent writes the number of the module that a thread runs, without a call.
#[repr(C)]
pub struct ContextCell {
    module: UnsafeCell<u32>,
}

thread_local! {
    static CELL: ContextCell = const {
        ContextCell {
            module: UnsafeCell::new(0),
        }
    };
    static RANGES: RefCell<Vec<Range>> = const { RefCell::new(Vec::new()) };
    static KNOWN_OPERATORS: RefCell<HashMap<Box<str>, u32>> = RefCell::new(HashMap::new());
}

/// The cell of the calling thread; it lives as long as the thread.
pub fn context_cell() -> *const ContextCell {
    CELL.with(std::ptr::from_ref)
}

fn own_module() -> u32 {
    // SAFETY: the cell is this thread's own; the agent writes it from this thread alone.
    CELL.with(|cell| unsafe { *cell.module.get() })
}

/// One range that a thread is inside of.
#[derive(Clone, Copy, Debug)]
struct Range {
    operator: u32,
    kind: Kind,
    /// In a backward pass: the module whose forward made this node.
    module: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A node of the autograd graph, in a backward pass.
    Node,
    /// An operator of PyTorch or of an extension.
    Operator,
    /// Anything else that announces itself: a script's own range, an optimizer's step.
    Other,
}

/// What the profiler puts before the name of an autograd node.
const NODE_PREFIX: &str = "autograd::engine::evaluate_function: ";

/// Which module ran when the node with a sequence number was made, for all threads: the backward pass
/// has a thread of its own. Numbers rise, and as many as a large model has are kept.
static MODULE_OF_SEQUENCE: LazyLock<Mutex<Sequences>> = LazyLock::new(Mutex::default);

const MAX_SEQUENCES: usize = 1 << 21;

#[derive(Default)]
struct Sequences {
    modules: HashMap<u64, u32>,
}

impl Sequences {
    fn insert(&mut self, sequence: u64, module: u32) {
        if self.modules.len() >= MAX_SEQUENCES {
            self.modules.clear();
        }
        self.modules.insert(sequence, module);
    }
}

/// A thread enters a range. `announced` is the profiler's text: a name, then facts after commas.
pub fn enter(announced: &str) {
    let (name, sequence) = split(announced);
    let (name, kind) = match name.strip_prefix(NODE_PREFIX) {
        Some(node) => (node, Kind::Node),
        None if name.contains("::") => (name, Kind::Operator),
        None => (name, Kind::Other),
    };
    let is_backward = RANGES.with_borrow_mut(|ranges| {
        let node = ranges.first_mut().filter(|range| range.kind == Kind::Node);
        let is_backward = node.is_some();
        // The sequence number is with the function inside the node: `MmBackward0, seq = 12`.
        if let (Some(node), Some(sequence)) = (node, sequence)
            && node.module == 0
        {
            node.module = module_of(sequence);
        }
        ranges.push(Range {
            operator: number_of(name),
            kind,
            module: 0,
        });
        is_backward
    });
    if let (Kind::Operator, Some(sequence), false) = (kind, sequence, is_backward)
        && let Ok(mut known) = MODULE_OF_SEQUENCE.lock()
    {
        known.insert(sequence, own_module());
    }
}

fn module_of(sequence: u64) -> u32 {
    let known = MODULE_OF_SEQUENCE.lock().ok();
    known
        .and_then(|known| known.modules.get(&sequence).copied())
        .unwrap_or(0)
}

/// A thread leaves the range it entered last.
pub fn leave() {
    RANGES.with_borrow_mut(|ranges| ranges.pop());
}

/// The operator and the module that the calling thread is in.
///
/// Of nested operators the outermost counts: `aten::linear`, and not the `aten::empty` inside of it.
pub fn current() -> (u32, u32) {
    let module = own_module();
    RANGES.with_borrow(|ranges| {
        let outermost = ranges.iter().find(|range| range.kind != Kind::Other);
        let Some(range) = outermost.or(ranges.last()) else {
            return (0, module);
        };
        // A layer that is run again inside the backward pass knows its module itself.
        let module = if module == 0 { range.module } else { module };
        (range.operator, module)
    })
}

/// The name in an announcement (`aten::mm, seq = 12, op_id = 7`), and the sequence number.
fn split(announced: &str) -> (&str, Option<u64>) {
    let name = announced
        .find(", seq = ")
        .or_else(|| announced.find(", op_id = "))
        .or_else(|| announced.find(", sizes = "))
        .map_or(announced, |end| &announced[..end]);
    let sequence = announced
        .split(", seq = ")
        .nth(1)
        .and_then(|rest| rest.split(',').next()?.trim().parse().ok());
    (name, sequence)
}

/// The operator's number in the log; its first use is announced there.
fn number_of(name: &str) -> u32 {
    KNOWN_OPERATORS.with_borrow_mut(|known| {
        if let Some(&number) = known.get(name) {
            return number;
        }
        static NUMBERS: LazyLock<Mutex<HashMap<Box<str>, u32>>> = LazyLock::new(Mutex::default);
        let Ok(mut numbers) = NUMBERS.lock() else {
            return 0;
        };
        let next = numbers.len() as u32 + 1;
        let number = *numbers.entry(name.into()).or_insert_with(|| {
            log::write(LogEntry::Operator { number: next, name });
            next
        });
        known.insert(name.into(), number);
        number
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announcements_are_taken_apart() {
        for (announced, name, sequence) in [
            ("aten::mm, seq = 12, op_id = 7", "aten::mm", Some(12)),
            ("aten::empty, op_id = 9", "aten::empty", None),
            (
                "Optimizer.step#AdamW.step",
                "Optimizer.step#AdamW.step",
                None,
            ),
            ("aten::add, seq = 3", "aten::add", Some(3)),
        ] {
            assert_eq!(split(announced), (name, sequence), "{announced}");
        }
    }

    #[test]
    fn the_outermost_operator_counts_and_a_script_s_own_range_does_not() {
        enter("my part");
        assert_eq!(current().0, number_of("my part"));
        enter("aten::linear, seq = 100, op_id = 1");
        enter("aten::addmm, seq = 100, op_id = 2");
        assert_eq!(current().0, number_of("aten::linear"));
        for _ in 0..3 {
            leave();
        }
        assert_eq!(current(), (0, 0));
        leave();
    }

    #[test]
    fn a_backward_pass_belongs_to_the_module_of_its_forward() {
        // SAFETY: this thread's own cell.
        let set = |module| CELL.with(|cell| unsafe { *cell.module.get() = module });
        set(5);
        enter("aten::mm, seq = 4001, op_id = 1");
        leave();
        set(0);
        std::thread::spawn(|| {
            enter("autograd::engine::evaluate_function: MmBackward0, op_id = 2");
            enter("MmBackward0, seq = 4001, op_id = 3");
            enter("aten::mm, op_id = 4");
            assert_eq!(current(), (number_of("MmBackward0"), 5));
        })
        .join()
        .expect("the thread");
    }
}
