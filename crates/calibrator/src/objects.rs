//! What is known about the descriptors that a program holds, by their handles.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Descriptors of one library. A handle may be reused after its descriptor was destroyed, so creating one replaces
/// what is known.
pub struct Objects<T> {
    known: Mutex<Option<HashMap<usize, T>>>,
}

impl<T: Clone> Objects<T> {
    pub const fn new() -> Self {
        Self {
            known: Mutex::new(None),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<HashMap<usize, T>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn insert(&self, handle: *mut c_void, object: T) {
        let mut known = self.lock();
        known
            .get_or_insert_with(HashMap::new)
            .insert(handle as usize, object);
    }

    pub fn get(&self, handle: *const c_void) -> Option<T> {
        self.lock().as_ref()?.get(&(handle as usize)).cloned()
    }

    pub fn change(&self, handle: *const c_void, action: impl FnOnce(&mut T)) {
        let mut known = self.lock();
        if let Some(object) = known
            .as_mut()
            .and_then(|all| all.get_mut(&(handle as usize)))
        {
            action(object);
        }
    }

    pub fn remove(&self, handle: *const c_void) {
        if let Some(known) = self.lock().as_mut() {
            known.remove(&(handle as usize));
        }
    }
}
