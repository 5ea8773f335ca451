//! Groups of entries: a request with its driver calls, a flush, a free.

use super::operations::Operations;
use super::sizes::RequestSizes;
use super::start::Start;
use super::warning::Warning;
use crate::trace::Action;

/// One thing that the program did, with the entries it left. Ranges are positions of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    /// A request: what came before the last entry happened on its behalf. The last is `alloc` or `oom`.
    Request { first: usize, last: usize },
    /// `free_requested`; with its `free_completed` right after it if no other stream used the block.
    Free { at: usize, completes: bool },
    /// `free_completed` that came later.
    Complete { at: usize },
    /// `empty_cache`, or the end of a pool. `end` is one past the last entry.
    Flush { first: usize, end: usize },
    /// Statistics were read.
    Snapshot { at: usize },
    /// An entry that nothing explains.
    Stray { at: usize },
}

impl Group {
    /// The first entry of the group, and one past its last.
    pub(super) fn span(self) -> (usize, usize) {
        match self {
            Self::Request { first, last } => (first, last + 1),
            Self::Free { at, completes } => (at, at + 1 + usize::from(completes)),
            Self::Flush { first, end } => (first, end),
            Self::Complete { at } | Self::Snapshot { at } | Self::Stray { at } => (at, at + 1),
        }
    }
}

/// A group without anything unusual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plain {
    Alloc { at: usize },
    Free { at: usize },
}

/// What is known about the process that was recorded.
#[derive(Clone, Debug, Default)]
pub(super) struct Premises {
    pub(super) sizes: RequestSizes,
    /// The limit from a memory fraction.
    pub(super) limit: Option<u64>,
    /// What the driver could give.
    pub(super) capacity: Option<u64>,
    /// Releases before growth may be garbage collection.
    pub(super) collects: bool,
    /// `expandable_segments` was on.
    pub(super) expandable: bool,
}

/// Iterates over the entries, group by group.
pub(super) struct Groups<'a> {
    operations: &'a Operations,
    at: usize,
    /// Bytes reserved at this point.
    reserved: u64,
    /// The most that was reserved so far: the card has at least that much.
    peak_reserved: u64,
    premises: Premises,
    /// Frees that wait for other streams.
    waiting: usize,
    flushes_assumed: usize,
    retries_assumed: usize,
    /// Whether releases before a request may have been a flush.
    is_in_doubt: bool,
    /// Entries that begin a flush, according to an exact replay.
    known_flushes: Vec<usize>,
}

impl<'a> Groups<'a> {
    pub(super) fn new(operations: &'a Operations, start: &Start, premises: Premises) -> Self {
        Self {
            operations,
            at: 0,
            reserved: start.reserved,
            peak_reserved: start.peak_reserved,
            premises,
            waiting: start
                .blocks
                .values()
                .filter(|block| block.is_pending)
                .count(),
            flushes_assumed: 0,
            retries_assumed: 0,
            is_in_doubt: false,
            known_flushes: Vec::new(),
        }
    }

    /// The same, with what an exact replay found to be flushes.
    pub(super) fn with_flushes(mut self, known_flushes: Vec<usize>) -> Self {
        self.known_flushes = known_flushes;
        self
    }

    /// Whether releases were assumed to be the allocator's own.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.is_in_doubt
    }

    /// The position of the next group if it is a single `alloc` or a free in two entries, as most are;
    /// and which of them. The group is then consumed.
    #[inline]
    pub(super) fn next_plain(&mut self) -> Option<Plain> {
        let at = self.at;
        let operations = self.operations;
        match *operations.actions().get(at)? {
            Action::Alloc => {
                self.at = at + 1;
                Some(Plain::Alloc { at })
            }
            Action::FreeRequested if operations.completes_at_once(at) => {
                self.at = at + 2;
                Some(Plain::Free { at })
            }
            _ => None,
        }
    }

    /// The assumptions made.
    pub(super) fn warnings(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        if self.flushes_assumed > 0 {
            warnings.push(Warning::FlushAssumed {
                flushes: self.flushes_assumed,
            });
        }
        if self.retries_assumed > 0 {
            warnings.push(Warning::RetryAssumed {
                retries: self.retries_assumed,
            });
        }
        warnings
    }

    fn action(&self, index: usize) -> Option<Action> {
        self.operations.actions().get(index).copied()
    }

    /// One past the last of the releases, completions and growth from `first` on.
    fn run_end(&self, first: usize) -> usize {
        let actions = &self.operations.actions()[first..];
        let in_run = |action: &Action| action.is_segment() || *action == Action::FreeCompleted;
        first + actions.iter().take_while(|action| in_run(action)).count()
    }

    /// Whether the completions from `first` on were the work of a flush: it waits for every stream, so
    /// nothing waits any more, and what it releases follows.
    fn completions_are_of_a_flush(&self, first: usize, end: usize) -> bool {
        let actions = &self.operations.actions()[first..end];
        let completions = actions
            .iter()
            .take_while(|action| **action == Action::FreeCompleted)
            .count();
        let next = actions.get(completions);
        let releases = matches!(next, Some(Action::SegmentFree | Action::SegmentUnmap));
        completions == self.waiting && releases
    }

    fn run(&mut self, first: usize) -> Group {
        let end = self.run_end(first);
        if self.action(first) == Some(Action::FreeCompleted)
            && !self.completions_are_of_a_flush(first, end)
        {
            return Group::Complete { at: first };
        }
        let actions = &self.operations.actions()[first..end];
        let grows = |action: &Action| matches!(action, Action::SegmentAlloc | Action::SegmentMap);
        let growth = actions.iter().position(grows).map(|place| first + place);
        match (self.action(end), growth) {
            (Some(Action::Oom), _) if self.known_flushes.contains(&first) => Group::Flush {
                first,
                end: growth.unwrap_or(end),
            },
            (Some(Action::Oom), _) => {
                self.is_in_doubt = true;
                Group::Request { first, last: end }
            }
            (Some(Action::Alloc), Some(growth)) => self.growth(first, growth, end),
            // In an expandable segment a retry may find room without mapping more.
            (Some(Action::Alloc), None)
                if self.premises.expandable
                    && !self.known_flushes.contains(&first)
                    && self.may_have_run_out(end) =>
            {
                self.is_in_doubt = true;
                Group::Request { first, last: end }
            }
            (_, Some(growth)) if growth == first => Group::Stray { at: first },
            (_, Some(growth)) => Group::Flush { first, end: growth },
            (_, None) => Group::Flush { first, end },
        }
    }

    /// Whether a segment for the request at `last` may have been too much.
    fn may_have_run_out(&self, last: usize) -> bool {
        let segment = self.premises.sizes.segment(self.operations.bytes()[last]);
        let wanted = self.reserved.saturating_add(segment);
        let capacity = self.premises.capacity.unwrap_or(self.peak_reserved);
        wanted > capacity.min(self.premises.limit.unwrap_or(u64::MAX))
    }

    /// Releases, growth and an allocation: was it one request, or a flush before it?
    fn growth(&mut self, first: usize, growth: usize, last: usize) -> Group {
        let request = Group::Request { first, last };
        if growth == first {
            return request;
        }
        self.is_in_doubt = true;
        let flush = Group::Flush { first, end: growth };
        if self.known_flushes.contains(&first) {
            return flush;
        }
        if self.premises.collects {
            return request;
        }
        let mapped = self
            .reserved
            .saturating_add(self.operations.bytes()[growth]);
        let segment = self.premises.sizes.segment(self.operations.bytes()[last]);
        let Premises {
            limit, capacity, ..
        } = self.premises;
        if limit.is_some_and(|limit| self.reserved.saturating_add(segment) > limit)
            || capacity.is_some_and(|capacity| mapped > capacity)
        {
            return request;
        }
        if capacity.is_some() {
            return flush;
        }
        if mapped <= self.peak_reserved {
            self.flushes_assumed += 1;
            return flush;
        }
        self.retries_assumed += 1;
        request
    }

    fn follow(&mut self, group: Group) {
        let (first, end) = group.span();
        for index in first..end {
            let bytes = self.operations.bytes()[index];
            match self.operations.actions()[index] {
                Action::SegmentAlloc | Action::SegmentMap => {
                    self.reserved = self.reserved.saturating_add(bytes);
                }
                Action::SegmentFree | Action::SegmentUnmap => {
                    self.reserved = self.reserved.saturating_sub(bytes);
                }
                Action::FreeRequested => self.waiting += 1,
                Action::FreeCompleted => self.waiting = self.waiting.saturating_sub(1),
                Action::Alloc | Action::Oom | Action::Snapshot => {}
            }
        }
        self.at = end;
    }
}

impl Iterator for Groups<'_> {
    type Item = Group;

    fn next(&mut self) -> Option<Group> {
        let at = self.at;
        let group = match self.action(at)? {
            Action::Alloc | Action::Oom => Group::Request {
                first: at,
                last: at,
            },
            Action::FreeRequested => {
                let completes = self.operations.completes_at_once(at);
                Group::Free { at, completes }
            }
            Action::Snapshot => Group::Snapshot { at },
            _ => self.run(at),
        };
        self.follow(group);
        Some(group)
    }
}
