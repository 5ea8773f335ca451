//! The beginning of an exact replay: the state before the first entry.

use super::ExactRun;
use crate::ids::{Address, BlockId};
use crate::replay::environment::Environment;
use crate::replay::images::images;
use crate::replay::sizes::RequestSizes;
use crate::replay::warning::Warning;

impl ExactRun<'_> {
    /// Takes over the state before the first entry.
    pub(super) fn adopt(&mut self) {
        let Environment {
            release, settings, ..
        } = self.environment;
        let sizes = RequestSizes::new(*release, settings);
        let total = self.environment.total_or_large();
        let reserve = settings.expandable_reserve(total);
        let operations = &self.recording.operations;
        let (images, warnings) = images(&self.start, operations, &sizes, reserve);
        self.warnings.extend(warnings);
        let mut refused = 0;
        for image in &images {
            if let Some((address, bytes)) = image.reserved {
                self.allocator
                    .driver_mut()
                    .adopt_reservation(address.0, bytes);
            }
            refused += usize::from(self.allocator.adopt(image).is_err());
        }
        if refused > 0 {
            self.warnings.push(Warning::Contradictions {
                entries: refused,
                first: 0,
            });
        }
        let mut adopted: Vec<(Address, BlockId)> = self.allocator.blocks_in_use().collect();
        adopted.sort_unstable();
        let slots = self.start.blocks.keys().zip(&self.start.slots_of_blocks);
        for (&address, &slot) in slots {
            if let Ok(place) = adopted.binary_search_by_key(&address, |(address, _)| address.0) {
                self.live[slot as usize] = adopted[place].1;
            }
        }
    }
}
