//! Opaque handles: numbers that C code carries around as pointers.

use std::collections::BTreeMap;
use std::sync::Mutex;

/// Objects behind handles. A handle is never reused, so a stale one is recognised as invalid.
pub struct Handles<T> {
    inner: Mutex<Inner<T>>,
}

struct Inner<T> {
    next: usize,
    objects: BTreeMap<usize, T>,
}

impl<T> Handles<T> {
    /// Handles count up from `first`. Each kind has its own range, so that a mix-up is noticed, above
    /// the small numbers that have a meaning in CUDA (1 and 2 are default streams).
    pub const fn starting_at(first: usize) -> Self {
        Self {
            inner: Mutex::new(Inner {
                next: first,
                objects: BTreeMap::new(),
            }),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner<T>> {
        self.inner
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub fn insert(&self, object: T) -> usize {
        let mut inner = self.lock();
        let handle = inner.next;
        inner.next += 16;
        inner.objects.insert(handle, object);
        handle
    }

    pub fn remove(&self, handle: usize) -> Option<T> {
        self.lock().objects.remove(&handle)
    }

    pub fn for_each(&self, action: impl FnMut(&mut T)) {
        self.lock().objects.values_mut().for_each(action);
    }

    /// Runs `action` on the object behind `handle`.
    pub fn with<R>(&self, handle: usize, action: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.lock().objects.get_mut(&handle).map(action)
    }
}
