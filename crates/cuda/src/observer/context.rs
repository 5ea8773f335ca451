//! What a thread of the program is doing: which module it runs, and which operators it is in.

use std::cell::{RefCell, UnsafeCell};
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

use ghostgpu_session::memory_log::LogEntry;

use super::autograd_nodes::{ThreadNumber, current_thread, maker_of_announced_node};
use super::log;
use super::sequences::Sequences;
use crate::with_threads_own;

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

/// One range that a thread is in.
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

/// The profiler's prefix of the name of an autograd node.
const NODE_PREFIX: &str = "autograd::engine::evaluate_function: ";

/// Shared by all threads: a backward pass runs in its own.
static SEQUENCES: LazyLock<Mutex<Sequences>> = LazyLock::new(Mutex::default);

/// A thread enters a range. `announced` is the profiler's text: a name, then facts after commas.
pub fn enter(announced: &str) {
    enter_made_by(announced, maker_of_announced_node);
}

fn enter_made_by(announced: &str, maker_of: impl FnOnce(u64) -> Option<ThreadNumber>) {
    let (name, sequence) = split(announced);
    let (name, kind) = match name.strip_prefix(NODE_PREFIX) {
        Some(node) => (node, Kind::Node),
        None if name.contains("::") => (name, Kind::Operator),
        None => (name, Kind::Other),
    };
    let operator = number_of(name);
    with_threads_own(&RANGES, |ranges| {
        let depth = ranges.len();
        let node = ranges.first_mut().filter(|range| range.kind == Kind::Node);
        match (node, sequence) {
            // The sequence number is with the function inside the node: `MmBackward0, seq = 12`.
            (Some(node), Some(sequence)) if depth == 1 => {
                node.module = module_of(maker_of(sequence), sequence);
            }
            // A layer that is recomputed in the backward pass makes nodes too.
            (Some(node), Some(sequence)) if kind == Kind::Operator => {
                remember(
                    sequence,
                    Some(own_module())
                        .filter(|&own| own != 0)
                        .unwrap_or(node.module),
                );
            }
            (None, Some(sequence)) if kind == Kind::Operator => remember(sequence, own_module()),
            _ => {}
        }
        ranges.push(Range {
            operator,
            kind,
            module: 0,
        });
    });
}

fn remember(sequence: u64, module: u32) {
    if let Ok(mut known) = SEQUENCES.lock() {
        known.insert(current_thread(), sequence, module);
    }
}

fn module_of(maker: Option<ThreadNumber>, sequence: u64) -> u32 {
    let known = SEQUENCES.lock();
    known.map_or(0, |known| known.module_of(maker, sequence))
}

/// A thread leaves the range it entered last.
pub fn leave() {
    with_threads_own(&RANGES, Vec::pop);
}

/// The operator and the module that the calling thread is in.
///
/// Of nested operators the outermost counts: `aten::linear`, not the `aten::empty` inside it.
pub fn current() -> (u32, u32) {
    let module = own_module();
    let found = with_threads_own(&RANGES, |ranges| {
        let outermost = ranges.iter().find(|range| range.kind != Kind::Other);
        let Some(range) = outermost.or(ranges.last()) else {
            return (0, module);
        };
        // For a layer that is recomputed in the backward pass, the agent has set the module.
        let module = if module == 0 { range.module } else { module };
        (range.operator, module)
    });
    found.unwrap_or((0, module))
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
    let known = with_threads_own(&KNOWN_OPERATORS, |known| known.get(name).copied()).flatten();
    known.unwrap_or_else(|| {
        let number = new_number_of(name);
        with_threads_own(&KNOWN_OPERATORS, |known| known.insert(name.into(), number));
        number
    })
}

fn new_number_of(name: &str) -> u32 {
    static NUMBERS: LazyLock<Mutex<HashMap<Box<str>, u32>>> = LazyLock::new(Mutex::default);
    let Ok(mut numbers) = NUMBERS.lock() else {
        return 0;
    };
    let next = numbers.len() as u32 + 1;
    *numbers.entry(name.into()).or_insert_with(|| {
        log::write(LogEntry::Operator { number: next, name });
        next
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

    #[test]
    fn a_node_belongs_to_the_thread_that_made_it() {
        // SAFETY: the cell is that of the calling thread.
        let set = |module| CELL.with(|cell| unsafe { *cell.module.get() = module });
        let forward = move |module| {
            set(module);
            enter("aten::mm, seq = 5001, op_id = 1");
            leave();
            set(0);
            current_thread()
        };
        let other = std::thread::spawn(move || forward(8))
            .join()
            .expect("the thread");
        let own = forward(9);
        for (maker, expected) in [(Some(own), 9), (Some(other), 8), (None, 0)] {
            enter("autograd::engine::evaluate_function: MmBackward0, op_id = 2");
            enter_made_by("MmBackward0, seq = 5001, op_id = 3", |_| maker);
            assert_eq!(current().1, expected, "{maker:?}");
            leave();
            leave();
        }
    }
}
