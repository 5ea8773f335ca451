//! One tensor that gets longer with every step: `history = torch.cat([history, output])`.
//!
//! There is always only one such tensor, because each step replaces it by a longer one, so bytes are compared instead of
//! counts. Only results of `torch.cat` are considered, and only if batches do not get longer themselves: with data
//! sorted by length, every result gets longer.

use std::collections::BTreeMap;

use ghostgpu_recording::{Allocation, Category};

use crate::card_ledger::CardLedger;
use crate::growth::{Changes, GrowthSource, ends_with};
use crate::lasting_rise::lasting_rise;
use crate::moment::Moment;
use crate::places::{Place, Places};

/// With fewer steps, batches may get longer each time by chance.
const FEWEST_STEPS: usize = 6;

/// The operator that concatenates tensors; `stack`, `hstack` and similar functions call it.
const PUTTING_TOGETHER: &str = "aten::cat";

struct Tensors<'a> {
    changes: Changes,
    /// The last one.
    last: &'a Allocation,
}

impl CardLedger<'_> {
    /// Places whose tensor gets longer from step to step.
    pub(crate) fn longer_tensors(&self, places: &Places, ends: &[Moment]) -> Vec<GrowthSource> {
        let operators = &self.recording.names.operators;
        let is_put_together = |one: &Allocation| {
            let operator = operators.get(one.operator.0 as usize);
            operator.is_some_and(|name| name == PUTTING_TOGETHER)
        };
        let mut inputs = Changes::over(ends.len());
        let mut found: BTreeMap<Place, Tensors> = BTreeMap::new();
        for one in &self.card.allocations {
            let (first, after) = ends_with(one, ends);
            if first >= after {
                continue;
            }
            match one.category {
                Category::Input => inputs.add(one.requested_bytes, first, after),
                Category::Kept | Category::Temporary | Category::Activation
                    if is_put_together(one) =>
                {
                    let tensors = found.entry(places.place(one)).or_insert_with(|| Tensors {
                        changes: Changes::over(ends.len()),
                        last: one,
                    });
                    // Requested bytes, because a block may be larger than its tensor if the rest was not split off.
                    tensors.changes.add(one.requested_bytes, first, after);
                    tensors.last = one;
                }
                _ => {}
            }
        }
        if ends.len() < FEWEST_STEPS || lasting_rise(&inputs.sums()).is_some() {
            return Vec::new();
        }
        let grows = found.into_iter().filter_map(|(place, tensors)| {
            let bytes = tensors.changes.sums();
            let rise = lasting_rise(&bytes)?;
            let risen = bytes[rise.to].saturating_sub(bytes[rise.from]);
            Some(GrowthSource {
                label: places.label(&place),
                place,
                category: tensors.last.category,
                stack: tensors.last.stack,
                kept_in: String::new(),
                bytes_at_ends: bytes,
                bytes_per_step: risen / (rise.to - rise.from).max(1) as u64,
                period: rise.period,
                count: 1,
                is_copied: true,
            })
        });
        grows.collect()
    }
}
