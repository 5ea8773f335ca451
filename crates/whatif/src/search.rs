//! Runs a history under many settings, on all cores, and ranks the results.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use ghostgpu_allocator::Settings;
use ghostgpu_allocator::replay::WhatIf;

use crate::history::{History, Question};

/// One setting and what it would have led to.
#[derive(Clone, Debug)]
pub struct Found {
    pub settings: Settings,
    pub answer: WhatIf,
}

impl Found {
    /// Whether the program would have run to the end.
    pub fn fits(&self) -> bool {
        self.answer.failure.is_none()
    }

    /// Better results first: a run that ends, or gets further; less memory; fewer retries;
    /// a shorter text.
    fn rank(&self) -> impl Ord + use<> {
        let failed_at = self.answer.failure.as_ref().map(|failure| failure.index);
        (
            failed_at.map(|index| usize::MAX - index),
            self.answer.peak_reserved_bytes(),
            self.answer.retries(),
            self.settings.text.matches(':').count(),
            self.settings.text.len(),
        )
    }
}

/// Runs every one of `settings` in place of the question's own, with `threads` threads; `done` is called
/// with the number finished.
pub fn search(
    history: &History,
    question: &Question,
    settings: Vec<Settings>,
    threads: usize,
    done: &(dyn Fn(usize) + Sync),
) -> Vec<Found> {
    let next = AtomicUsize::new(0);
    let finished = AtomicUsize::new(0);
    let work = || {
        let mut found = Vec::new();
        while let Some(settings) = settings.get(next.fetch_add(1, Ordering::Relaxed)) {
            let question = Question {
                settings: settings.clone(),
                ..question.clone()
            };
            found.push(Found {
                settings: settings.clone(),
                answer: history.ask(&question),
            });
            done(finished.fetch_add(1, Ordering::Relaxed) + 1);
        }
        found
    };
    let mut found: Vec<Found> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
        let results = workers.into_iter().map(|worker| {
            let result = worker.join();
            result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        results.flatten().collect()
    });
    // Texts are unique, so the order does not depend on timing.
    found.sort_by(|one, other| {
        one.rank()
            .cmp(&other.rank())
            .then_with(|| one.settings.text.cmp(&other.settings.text))
    });
    found
}
