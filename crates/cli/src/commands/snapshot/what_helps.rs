//! What would have helped: settings that a replay has shown to, and nothing else.

use ghostgpu_allocator::Settings;
use ghostgpu_whatif::{Found, History, Question, search};

use super::fragmentation::Bound;
use ghostgpu_text::human;

/// Histories up to this length are replayed without being asked to.
pub(super) const QUICK_EVENTS: usize = 1_000_000;

/// Worth mentioning: a fiftieth of what is reserved.
const LEAST_SAVING: u64 = 50;

/// What people are told to try.
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

/// Sentences on settings, each with what a replay of this very history came to. `bound` is what refused
/// memory, if a request failed.
pub(super) fn sentences(history: &History, bound: Option<Bound>) -> Vec<String> {
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
        ) => after_a_failure(history, &found, most),
        None => without_a_failure(history, &found),
    }
}

fn after_a_failure(history: &History, found: &[Found], most: u64) -> Vec<String> {
    let serves = |found: &&Found| found.fits() && found.answer.survived.is_empty();
    let mut sentences: Vec<String> = found
        .iter()
        .filter(serves)
        .take(3)
        .map(|each| {
            format!(
                "PYTORCH_CUDA_ALLOC_CONF={}: in a replay of this history no request fails, and {} are \
                 reserved at most",
                each.settings.text,
                human(each.answer.peak_reserved_bytes())
            )
        })
        .collect();
    if sentences.is_empty() {
        sentences.push(format!(
            "no allocator setting helps: the usual {} were replayed with the {} that there were. The \
             job needs more memory, or must need less of it",
            found.len(),
            human(most)
        ));
    }
    let unbounded = Question {
        capacity_bytes: None,
        limit_bytes: None,
        ..history.question()
    };
    sentences.push(format!(
        "with memory enough, the same settings reserve {} for what was recorded",
        human(history.ask(&unbounded).peak_reserved_bytes())
    ));
    sentences
}

fn without_a_failure(history: &History, found: &[Found]) -> Vec<String> {
    let recorded = history.recorded.peak_reserved_bytes;
    let saves = |found: &&Found| {
        let saved = recorded.saturating_sub(found.answer.peak_reserved_bytes());
        saved.saturating_mul(LEAST_SAVING) >= recorded.max(1)
    };
    let sentences: Vec<String> = found
        .iter()
        .filter(saves)
        .take(3)
        .map(|each| {
            let reserved = each.answer.peak_reserved_bytes();
            format!(
                "PYTORCH_CUDA_ALLOC_CONF={}: a replay reserves {} at most, {} less",
                each.settings.text,
                human(reserved),
                human(recorded - reserved)
            )
        })
        .collect();
    match sentences.is_empty() {
        true => vec![format!(
            "none of the usual {} allocator settings saves a fiftieth of what is reserved, in replays \
             of this history",
            found.len()
        )],
        false => sentences,
    }
}
