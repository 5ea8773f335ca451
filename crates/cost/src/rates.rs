//! What a card can do per second, according to its data sheet.

use ghostgpu_device::DeviceSheet;

use crate::Precision;

/// A card's peaks. How much of them kernels reach is in the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Floating-point operations a second, a multiplication and an addition being two.
    double: f64,
    single: f64,
    tf32: f64,
    half: f64,
    bfloat16: f64,
    eight: f64,
    /// Bytes a second of the card's own memory.
    pub memory: f64,
    /// Bytes a second between the host's pinned memory and the card, in one direction.
    pub link: f64,
    pub multiprocessors: u32,
}

/// Operations of one multiprocessor in a clock cycle.
struct PerCycle {
    single: f64,
    double: f64,
    tf32: f64,
    half: f64,
    bfloat16: f64,
    eight: f64,
}

impl Rates {
    /// The peaks of a card: what a multiprocessor of its architecture does in a cycle, times its
    /// multiprocessors, times its highest clock.
    pub fn of(card: &DeviceSheet) -> Self {
        let per_cycle = per_cycle(card);
        let cycles = f64::from(card.multiprocessors) * f64::from(card.clock_khz) * 1e3;
        let memory =
            f64::from(card.memory_clock_khz) * 1e3 * 2.0 * f64::from(card.memory_bus_bits) / 8.0;
        Self {
            double: cycles * per_cycle.double,
            single: cycles * per_cycle.single,
            tf32: cycles * per_cycle.tf32,
            half: cycles * per_cycle.half,
            bfloat16: cycles * per_cycle.bfloat16,
            eight: cycles * per_cycle.eight,
            memory,
            link: link(card, memory),
            multiprocessors: card.multiprocessors,
        }
    }

    pub fn operations(&self, precision: Precision) -> f64 {
        match precision {
            Precision::Double => self.double,
            Precision::Single => self.single,
            Precision::Tf32 => self.tf32,
            Precision::Half => self.half,
            Precision::Bfloat16 => self.bfloat16,
            Precision::Eight => self.eight,
        }
    }
}

/// From NVIDIA's white papers on the architectures, dense and with sums in single precision. Cards for games
/// have matrix units of half the speed in that case.
fn per_cycle(card: &DeviceSheet) -> PerCycle {
    let is_for_games = card.name.contains("GeForce");
    let matrix_units = |half: f64, has_bfloat16: bool, has_tf32: bool, has_eight: bool| {
        let half = if is_for_games { half / 2.0 } else { half };
        move |single: f64, double: f64| PerCycle {
            single,
            double,
            tf32: if has_tf32 { half / 2.0 } else { single },
            half,
            // Converted to single precision and back.
            bfloat16: if has_bfloat16 { half } else { single },
            eight: if has_eight { half * 2.0 } else { half },
        }
    };
    let without = |single: f64, half: f64, double: f64| PerCycle {
        single,
        double,
        tf32: single,
        half,
        bfloat16: single,
        eight: single,
    };
    match (card.capability.major, card.capability.minor) {
        (..=5, _) => without(256.0, 256.0, 8.0),
        (6, 0) => without(128.0, 256.0, 64.0),
        // Half precision is so slow here that libraries compute in single precision.
        (6, _) => without(256.0, 256.0, 8.0),
        (7, 0) => matrix_units(1024.0, false, false, false)(128.0, 64.0),
        (7, _) => matrix_units(1024.0, false, false, true)(128.0, 4.0),
        (8, 0) => matrix_units(2048.0, true, true, true)(128.0, 128.0),
        (8, 9) => matrix_units(1024.0, true, true, true)(256.0, 4.0),
        (8, _) => matrix_units(1024.0, true, true, true)(256.0, 4.0),
        (9, _) => matrix_units(4096.0, true, true, true)(256.0, 256.0),
        (10 | 11, _) => matrix_units(8192.0, true, true, true)(256.0, 128.0),
        _ => matrix_units(1024.0, true, true, true)(256.0, 4.0),
    }
}

/// PCI Express with sixteen lanes, at nine tenths of its rate. Memory that is shared with the host needs no link.
fn link(card: &DeviceSheet, memory: f64) -> f64 {
    if card.is_integrated {
        return memory / 2.0;
    }
    match (card.capability.major, card.capability.minor) {
        (..=7, _) => 14e9,
        (8, _) => 28e9,
        _ => 57e9,
    }
}

#[cfg(test)]
mod tests {
    use ghostgpu_device::Catalogue;

    use super::*;

    #[test]
    fn peaks_are_those_of_the_data_sheets() {
        // TFLOP/s: single precision, TF32, half precision with single-precision sums.
        for (name, single, tf32, half) in [
            ("1080ti", 11.3, 11.3, 11.3),
            ("t4", 8.1, 8.1, 65.0),
            ("v100", 15.7, 15.7, 125.0),
            ("a100-80", 19.5, 156.0, 312.0),
            ("3060", 12.7, 12.7, 25.5),
            ("3090", 35.6, 35.6, 71.0),
            ("4090", 82.6, 82.6, 165.0),
            ("l40s", 91.6, 183.0, 362.0),
            ("h200", 67.0, 494.0, 989.0),
            ("b200", 75.0, 1125.0, 2250.0),
            ("5090", 104.8, 104.8, 209.5),
        ] {
            let card = Catalogue::builtin()
                .find(name)
                .expect("a card of the catalogue");
            let rates = Rates::of(&card.sheet());
            for (precision, published) in [
                (Precision::Single, single),
                (Precision::Tf32, tf32),
                (Precision::Half, half),
            ] {
                let ratio = rates.operations(precision) / 1e12 / published;
                assert!(
                    (0.9..1.12).contains(&ratio),
                    "{name} {precision:?}: {ratio}"
                );
            }
        }
    }
}
