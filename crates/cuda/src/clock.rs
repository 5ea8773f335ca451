//! The virtual card's clock, which events read.
//!
//! Nothing runs, so there are no times. Programs that measure kernels decide by what they measure,
//! though, and Inductor's decisions (whether to pad a matrix product, how often to repeat a
//! measurement) change how much memory is used. So work passes time: each kernel the same, and a
//! half-precision product that the card's matrix units cannot read in whole vectors several times
//! that, which is what makes padding worth it on a real card. The same program sees the same times
//! in every run.

use std::sync::atomic::{AtomicU64, Ordering};

/// What one kernel takes. Small, as most are: whoever repeats a measurement until a budget is spent
/// then repeats as often as it ever does.
const KERNEL_MICROSECONDS: u64 = 10;

/// What a product takes that cannot use the matrix units well.
pub const UNALIGNED_PRODUCT_KERNELS: u64 = 8;

static MICROSECONDS: AtomicU64 = AtomicU64::new(0);

/// Lets the time of `kernels` kernels pass.
pub fn pass(kernels: u64) {
    MICROSECONDS.fetch_add(kernels * KERNEL_MICROSECONDS, Ordering::Relaxed);
}

/// Microseconds of work since the process started.
pub fn now() -> u64 {
    MICROSECONDS.load(Ordering::Relaxed)
}

/// Milliseconds between two times. Never zero: programs divide by it.
pub fn elapsed_ms(start: u64, end: u64) -> f32 {
    let microseconds = end.saturating_sub(start).max(1);
    // A float holds whole microseconds of some seconds exactly; more is not asked for.
    #[allow(clippy::cast_precision_loss)]
    let milliseconds = microseconds as f32 / 1000.0;
    milliseconds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_passes_time_and_waiting_does_not() {
        let start = now();
        pass(3);
        assert!(now() >= start + 3 * KERNEL_MICROSECONDS);
        assert!((elapsed_ms(0, 30) - 0.03).abs() < 1e-6);
    }

    #[test]
    fn no_time_is_zero_or_negative() {
        assert!(elapsed_ms(5, 5) > 0.0);
        assert!(elapsed_ms(9, 5) > 0.0);
    }
}
