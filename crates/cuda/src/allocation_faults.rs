//! Allocation failures that a test requests through an environment variable.

use std::sync::{Mutex, OnceLock};

use ghostgpu_device::AllocationFaults;

use crate::notes;

/// Says which allocations of device memory fail, in the form that `AllocationFaults::parse` reads.
const VARIABLE: &str = "GHOSTGPU_ALLOCATION_FAULTS";

static FAULTS: OnceLock<Option<Mutex<AllocationFaults>>> = OnceLock::new();

/// Whether the next allocation of this process is to fail although there is memory.
pub fn next_fails() -> bool {
    let faults = FAULTS.get_or_init(|| {
        let text = std::env::var(VARIABLE).ok()?;
        match AllocationFaults::parse(&text) {
            Ok(faults) => {
                notes::assume(&format!("allocations fail as {VARIABLE} asks for: {text}"));
                Some(Mutex::new(faults))
            }
            Err(reason) => {
                notes::assume(&format!("no allocation fails: in {VARIABLE}, {reason}"));
                None
            }
        }
    });
    faults
        .as_ref()
        .and_then(|faults| faults.lock().ok())
        .is_some_and(|mut faults| faults.next_fails())
}
