//! Who submits work, as far as it decides how long the host takes until its next call.

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::OnceLock;

use crate::real_library;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// Python, while autograd records a graph.
    Graph,
    /// The same in an autograd thread: a backward pass recomputes a part of a forward pass.
    Repetition,
    NoGraph,
    /// An autograd thread.
    Backward,
}

/// The calling thread's role.
pub fn current() -> Caller {
    match (is_graph_built(), is_first_thread()) {
        (true, true) => Caller::Graph,
        (true, false) => Caller::Repetition,
        (false, true) => Caller::NoGraph,
        (false, false) => Caller::Backward,
    }
}

/// `c10::GradMode::is_enabled`, of the calling thread.
fn is_graph_built() -> bool {
    type IsEnabled = extern "C" fn() -> bool;
    static FUNCTION: OnceLock<Option<IsEnabled>> = OnceLock::new();
    let function = FUNCTION.get_or_init(|| {
        let name = c"_ZN3c108GradMode10is_enabledEv";
        let function = real_library::find_loaded(&[c"libc10.so"], name)?;
        // SAFETY: the function of this name takes nothing and returns a bool.
        Some(unsafe { std::mem::transmute::<*mut c_void, IsEnabled>(function) })
    });
    function.is_some_and(|function| function())
}

fn is_first_thread() -> bool {
    thread_local! {
        static IS_FIRST: Cell<Option<bool>> = const { Cell::new(None) };
    }
    // SAFETY: neither function has preconditions.
    let ask = || unsafe { libc::gettid() == libc::getpid() };
    IS_FIRST.get().unwrap_or_else(|| {
        let is_first = ask();
        IS_FIRST.set(Some(is_first));
        is_first
    })
}
