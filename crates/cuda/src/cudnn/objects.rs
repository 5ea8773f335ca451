//! Opaque handles: the script holds a number, and the object behind it stays here.

use std::ffi::c_void;
use std::sync::{Arc, PoisonError, RwLock};

use crate::slots::Slots;

/// All objects of one kind. A handle that was never issued, or was destroyed, finds nothing.
pub struct Registry<T> {
    objects: RwLock<Slots<Arc<T>>>,
}

impl<T> Registry<T> {
    pub const fn new() -> Self {
        Self {
            objects: RwLock::new(Slots::new()),
        }
    }

    pub fn insert(&self, object: T) -> *mut c_void {
        let object = Arc::new(object);
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        objects.insert(object) as *mut c_void
    }

    pub fn get(&self, handle: *mut c_void) -> Option<Arc<T>> {
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        objects.get(handle as usize).cloned()
    }

    /// Removes and returns the object, which stays alive while others refer to it.
    pub fn remove(&self, handle: *mut c_void) -> Option<Arc<T>> {
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        objects.remove(handle as usize)
    }
}

/// Defines a create and a destroy function for a descriptor kept in a [`Registry`].
macro_rules! descriptor_lifetime {
    ($registry:ident, $make:expr, $create:ident, $destroy:ident) => {
        /// # Safety
        /// `result` must be null or a valid place for a handle.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $create(result: *mut *mut std::ffi::c_void) -> i32 {
            $crate::call_log::call(stringify!($create), String::new);
            if result.is_null() {
                return $crate::cudnn::status::BAD_PARAM_NULL_POINTER;
            }
            // SAFETY: not null, and the caller vouches for the rest.
            unsafe { *result = $registry.insert($make) };
            $crate::cudnn::status::SUCCESS
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn $destroy(handle: *mut std::ffi::c_void) -> i32 {
            $crate::call_log::call(stringify!($destroy), String::new);
            $registry.remove(handle);
            $crate::cudnn::status::SUCCESS
        }
    };
}
pub(super) use descriptor_lifetime;

/// Writes a result through a caller's pointer, unless that is null.
///
/// # Safety
/// `place` must be null or valid for writing one `T`.
pub unsafe fn write<T>(place: *mut T, value: T) -> bool {
    if place.is_null() {
        return false;
    }
    // SAFETY: not null, and the caller vouches for the rest.
    unsafe { place.write(value) };
    true
}

/// Reads an array of a caller; empty when it is null or its length negative.
///
/// # Safety
/// `start` must be null or point to `count` readable values.
pub unsafe fn read_array<T: Copy>(start: *const T, count: i32) -> Vec<T> {
    let count = usize::try_from(count).unwrap_or(0);
    if start.is_null() || count == 0 {
        return Vec::new();
    }
    // SAFETY: not null, and the caller vouches for the length.
    unsafe { std::slice::from_raw_parts(start, count) }.to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destroyed_handle_finds_nothing_and_is_not_given_out_again() {
        let registry = Registry::new();
        let first = registry.insert(1);
        registry.remove(first);
        let second = registry.insert(2);
        assert_ne!(first, second);
        assert!(registry.get(first).is_none());
        assert_eq!(registry.get(second).as_deref(), Some(&2));
    }
}
