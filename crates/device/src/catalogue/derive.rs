//! Rules for figures that were not measured on a card: its reported memory, and what a context takes.
//!
//! Both rules are fitted to the readings in `cards.txt` and lean to the pessimistic side: a job
//! that fits on the derived card fits on the real one. The tests below compare them with every reading we
//! have, so that a new one that breaks a rule is noticed.

use super::card::MemoryKind;
use crate::{Architecture, Capability, Overhead, PAGE_BYTES};

pub(super) const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// What CUDA would report as the memory of a board, after the driver has taken its part.
///
/// Of the [usable](usable_bytes) memory the driver keeps a fixed part and a part that grows with the board
/// (page tables, for example). How much depends on the generation, and recent drivers keep more: an old
/// reading can be 5 % above this rule.
pub(super) fn total_bytes(
    capability: Capability,
    board_gib: u32,
    kind: MemoryKind,
    ecc: bool,
) -> u64 {
    let usable_bytes = usable_bytes(capability, board_gib, kind, ecc);
    let board_gib = u64::from(board_gib);
    let driver_mib = match (capability.major, capability.minor) {
        (..=6, _) => 128,
        (7, 0) => 288 + board_gib,
        (..=9, _) => 448 + 6 * board_gib,
        _ => 512 + 8 * board_gib,
    };
    usable_bytes - driver_mib * MIB
}

/// What is left of a board after error correction, which is what NVML gives as its total.
///
/// Error correction inside GDDR5 and GDDR6 costs a sixteenth of the board; HBM and GDDR7 have room
/// for it beside the data.
pub(super) fn usable_bytes(
    capability: Capability,
    board_gib: u32,
    kind: MemoryKind,
    ecc: bool,
) -> u64 {
    let board_bytes = u64::from(board_gib) * GIB;
    if ecc && kind == MemoryKind::Gddr && capability.major < 10 {
        board_bytes / 16 * 15
    } else {
        board_bytes
    }
}

/// What a CUDA context takes on a card where it was not measured.
///
/// A context holds local memory for every thread that can be resident, so it grows with the number
/// of multiprocessors. The constants are fitted to published readings from other cards before the first kernel ran
/// (`ground_truth/published/outside_pytorch.csv`): 13 readings from a T4 to an H200 are within 5 % of this, apart from
/// their own rounding.
pub(super) fn context_bytes(architecture: &Architecture, multiprocessors: u32) -> u64 {
    let threads = resident_threads(architecture, multiprocessors);
    (CONTEXT_FIXED_BYTES + threads * CONTEXT_BYTES_PER_THREAD).next_multiple_of(PAGE_BYTES)
}

const CONTEXT_FIXED_BYTES: u64 = 35 * MIB;
const CONTEXT_BYTES_PER_THREAD: u64 = 1_884;

/// How much larger the local memory of a thread becomes when the first kernel is launched. On an H200 that takes
/// 96,468,992 bytes, whichever kernel it is, and later kernels take nothing: the driver replaces the context's
/// local memory by a larger piece (see `driver_addresses`). So this is not code size, and it is proportional to the
/// number of threads: 76 MiB on an A100, 16 MiB on an RTX 3060.
const FIRST_KERNEL_BYTES_PER_THREAD: u64 = 353;

fn resident_threads(architecture: &Architecture, multiprocessors: u32) -> u64 {
    u64::from(multiprocessors) * u64::from(architecture.max_threads_per_multiprocessor)
}

/// What a cuBLAS handle takes: twice the workspace that NVIDIA's documentation gives for the architecture, 32 MiB
/// for Hopper and for Blackwell's data-centre cards and 4 MiB for others. PyTorch gives the handle a workspace of its own, but only
/// after it has been created.
fn blas_handle_bytes(capability: Capability) -> u64 {
    let workspace_mib = match capability.major {
        9 | 10 => 32,
        _ => 4,
    };
    2 * workspace_mib * MIB
}

/// The overhead of a card whose context takes `context_bytes`.
///
/// When memory is taken was measured on an H200 (driver 580, torch 2.11.0) by `ground_truth/harness/probe_card.py`,
/// which triggers one event after the other in a fresh process. How much of it depends on the card follows from
/// published readings from other cards (`ground_truth/published`).
pub(super) fn overhead(
    architecture: &Architecture,
    multiprocessors: u32,
    context_bytes: u64,
) -> Overhead {
    let threads = resident_threads(architecture, multiprocessors);
    let blas_handle_bytes = blas_handle_bytes(architecture.capability);
    Overhead {
        context_bytes,
        driver_bytes: 9_240_576,
        kernels_bytes: (threads * FIRST_KERNEL_BYTES_PER_THREAD).next_multiple_of(PAGE_BYTES),
        blas_handle_bytes,
        blas_code_bytes: 2 * MIB,
        dnn_handle_bytes: 8 * MIB,
        dnn_code_bytes: 4 * MIB,
        // cuSOLVER creates its own cuBLAS handle.
        solver_bytes: 34 * MIB + blas_handle_bytes,
        transform_bytes: 8 * MIB,
        // PyTorch creates 128 streams when it needs the first one; together they took 70 MiB.
        stream_bytes: 70 * MIB / 128,
    }
}

/// How far derived memory may be off. The rule errs on the safe side by up to 5 %, but a driver may keep more for
/// itself than those in the readings.
pub(super) fn uncertain_memory_bytes(total_bytes: u64) -> u64 {
    total_bytes / 100
}

/// How far a derived context may be off: no reading is further from the rule than this.
pub(super) fn uncertain_derived_context_bytes(context_bytes: u64) -> u64 {
    context_bytes / 20
}

/// How far a published context may be off: it was read with another driver, and drivers differ by this much.
pub(super) fn uncertain_published_context_bytes(context_bytes: u64) -> u64 {
    context_bytes / 20
}

/// How far the libraries' part may be off on another card than the one it was measured on. After a training's first
/// steps, readings are up to 30 MiB off from the rule, whatever the size of the card.
pub(super) fn uncertain_library_bytes() -> u64 {
    30 * MIB
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Catalogue, Provenance};

    #[test]
    fn the_derived_memory_is_below_every_reading_and_within_five_percent_of_it() {
        let mut readings = 0;
        for card in Catalogue::builtin().cards() {
            if card.memory_provenance == Provenance::Derived
                || card.memory_kind == MemoryKind::Unified
            {
                continue;
            }
            let derived = total_bytes(
                card.capability,
                card.board_gib,
                card.memory_kind,
                card.ecc_enabled,
            );
            let ratio = derived as f64 / card.total_bytes as f64;
            assert!(
                (0.95..=1.0).contains(&ratio),
                "{}: derived {} MiB, read {} MiB",
                card.name,
                derived / MIB,
                card.total_bytes / MIB
            );
            readings += 1;
        }
        assert!(readings > 60, "only {readings} readings");
    }

    #[test]
    fn only_what_was_not_measured_on_a_card_is_uncertain_and_that_is_little() {
        let card = |name: &str| Catalogue::builtin().find(name).expect("a card");
        assert_eq!(card("h200").uncertainty(), None);
        let measured_memory = card("3060").uncertainty().expect("a derived context");
        let of_overhead = card("3060").uncertainty_of_overhead();
        assert_eq!(Some(&measured_memory), of_overhead.as_ref());
        assert_eq!(
            measured_memory.because,
            "its CUDA context and libraries were not measured on such a card"
        );
        for card in Catalogue::builtin().cards() {
            let bytes = card
                .uncertainty()
                .map_or(0, |uncertainty| uncertainty.bytes);
            assert!(bytes < card.total_bytes / 25, "{}: {bytes}", card.name);
            let given = card
                .uncertainty_of_overhead()
                .map_or(0, |known| known.bytes);
            assert!(given <= bytes, "{}", card.name);
        }
    }

    #[test]
    fn the_h200_adds_up_to_what_was_read_after_training() {
        let h200 = Catalogue::builtin().find("h200").unwrap().sheet().overhead;
        // Forward and backward run in two threads, so each library has two handles.
        let after_adamw = h200.context_bytes
            + h200.kernels_bytes
            + 2 * h200.blas_handle_bytes
            + h200.blas_code_bytes;
        assert_eq!(after_adamw, 785_186_816);
        let after_resnet = after_adamw + 2 * h200.dnn_handle_bytes + h200.dnn_code_bytes;
        assert_eq!(after_resnet, 806_158_336);
    }

    #[test]
    fn error_correction_costs_a_sixteenth_of_gddr6_and_nothing_of_hbm() {
        let ampere = Capability::new(8, 6);
        let off = total_bytes(ampere, 48, MemoryKind::Gddr, false);
        let on = total_bytes(ampere, 48, MemoryKind::Gddr, true);
        assert_eq!(off - on, 3 * GIB);
        let hopper = Capability::new(9, 0);
        assert_eq!(
            total_bytes(hopper, 80, MemoryKind::Hbm, false),
            total_bytes(hopper, 80, MemoryKind::Hbm, true)
        );
    }
}
