//! Processes files on all cores, and returns the results in the order of the files.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, Once};

/// The stack of a thread. It only takes address space until it is used.
const STACK_BYTES: usize = 64 << 20;

/// The name of our threads.
const THREAD: &str = "ghostgpu-lint";

thread_local! {
    /// Where the last panic on this thread was.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps panics on our threads from being printed, because they are reported with their file.
fn tell_faults_once() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |fault| {
            if std::thread::current().name() != Some(THREAD) {
                return usual(fault);
            }
            let place = fault.location().map(ToString::to_string);
            PLACE.with_borrow_mut(|last| *last = place.unwrap_or_default());
        }));
    });
}

/// The results of `work` for every item, in their order; `done` is called with the number of finished items. `Err` is a
/// panic on one item; the others still have their results.
pub fn on_all_cores<T: Sync, R: Send>(
    items: &[T],
    done: impl Fn(usize) + Sync,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<Result<R, String>> {
    tell_faults_once();
    let next = AtomicUsize::new(0);
    let count = AtomicUsize::new(0);
    let answers: Mutex<Vec<Option<Result<R, String>>>> =
        Mutex::new(items.iter().map(|_| None).collect());
    let run = || {
        let mut own = Vec::new();
        while let Some((index, item)) = take(&next, items) {
            own.push((index, guarded(|| work(item))));
            done(count.fetch_add(1, Ordering::Relaxed) + 1);
        }
        let mut answers = answers
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        for (index, answer) in own {
            answers[index] = Some(answer);
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores.min(items.len()) {
            let thread = std::thread::Builder::new()
                .name(THREAD.to_owned())
                .stack_size(STACK_BYTES);
            if thread.spawn_scoped(scope, run).is_err() {
                // If no more threads can be started, this one does the work.
                run();
            }
        }
    });
    let answers = answers
        .into_inner()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    answers
        .into_iter()
        .map(|answer| answer.unwrap_or_else(|| Err("it was not reached".to_owned())))
        .collect()
}

fn take<'a, T>(next: &AtomicUsize, items: &'a [T]) -> Option<(usize, &'a T)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    items.get(index).map(|item| (index, item))
}

/// The result, or the message of a panic.
fn guarded<R>(work: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|fault| {
        let text = fault.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| fault.downcast_ref::<String>().cloned());
        let text = text.unwrap_or_else(|| "no reason is known".to_owned());
        match PLACE.take() {
            place if place.is_empty() => text,
            place => format!("{text} ({place})"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_in_the_order_of_the_items() {
        let items: Vec<usize> = (0..1_000).collect();
        let answers: Vec<usize> = on_all_cores(&items, |_| {}, |item| item * 2)
            .into_iter()
            .map(|answer| answer.expect("no fault"))
            .collect();
        assert_eq!(
            answers,
            items.iter().map(|item| item * 2).collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_fault_with_one_item_leaves_the_others_alone() {
        let answers = on_all_cores(
            &[1, 2, 3],
            |_| {},
            |item| {
                assert_ne!(*item, 2, "two is no good");
                *item
            },
        );
        assert_eq!(answers[0], Ok(1));
        assert!(
            answers[1]
                .as_ref()
                .is_err_and(|fault| fault.contains("two is no good"))
        );
        assert_eq!(answers[2], Ok(3));
    }

    #[test]
    fn nothing_to_do_is_done() {
        assert!(on_all_cores(&[] as &[usize], |_| {}, |item| *item).is_empty());
    }
}
