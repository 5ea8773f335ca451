//! What would have helped: replays of common settings.

use ghostgpu_allocator::Settings;
use ghostgpu_answers::snapshot::{Bound, WhatHelps};
use ghostgpu_whatif::{History, Question, search};

/// Histories up to this length are replayed even without `--advise`.
pub(super) const QUICK_EVENTS: usize = 1_000_000;

/// Settings that are commonly recommended.
const USUAL: [&str; 8] = [
    "expandable_segments:True",
    "max_split_size_mb:32",
    "max_split_size_mb:64",
    "max_split_size_mb:128",
    "max_split_size_mb:256",
    "max_split_size_mb:512",
    "roundup_power2_divisions:8",
    "garbage_collection_threshold:0.8",
];

/// Replays the history under each setting. `bound` is what limited the memory, if a request failed.
pub(super) fn of(history: &History, bound: Option<Bound>) -> WhatHelps {
    let settings: Vec<Settings> = USUAL
        .iter()
        .filter(|text| **text != history.settings.text)
        .filter_map(|text| Settings::parse(text, history.release).ok())
        .collect();
    let mut question = history.question();
    match bound {
        Some(Bound::Card { capacity_bytes }) => question.capacity_bytes = Some(capacity_bytes),
        Some(Bound::Limit { at_least_bytes }) => question.limit_bytes = Some(at_least_bytes),
        None => {}
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let found = search(history, &question, settings, threads, &|_| {});
    match bound {
        Some(
            Bound::Card {
                capacity_bytes: most,
            }
            | Bound::Limit {
                at_least_bytes: most,
            },
        ) => {
            let unbounded = Question {
                capacity_bytes: None,
                limit_bytes: None,
                ..history.question()
            };
            WhatHelps::AfterFailure {
                found,
                most_bytes: most,
                unbounded_bytes: history.ask(&unbounded).peak_reserved_bytes(),
            }
        }
        None => WhatHelps::WithoutFailure {
            found,
            recorded_bytes: history.recorded.peak_reserved_bytes,
        },
    }
}
