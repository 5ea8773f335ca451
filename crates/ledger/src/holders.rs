//! The largest holders at a moment: allocations of one category from one stack, summed over equal modules.

use std::collections::BTreeMap;

use ghostgpu_recording::{AllocationId, Category, OperatorId, StackId};

use crate::card_ledger::CardLedger;
use crate::held::Held;
use crate::moment::Moment;
use crate::places::{Place, Places};

/// Allocations with the same category, place, module pattern, operator and stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HolderGroup {
    pub category: Category,
    pub place: Place,
    /// The place in words.
    pub label: String,
    /// The path of the module, with `*` for numbers; empty for none.
    pub module: String,
    pub operator: OperatorId,
    /// 0 if there is none.
    pub stack: StackId,
    pub held: Held,
    /// The largest of them; of equal ones the first.
    pub largest: AllocationId,
}

impl CardLedger<'_> {
    /// Who holds what is live at a moment; the largest first.
    pub fn holders(&self, moment: Moment) -> Vec<HolderGroup> {
        let places = Places::of(self.recording, self.card);
        type Key<'a> = (Category, Place, &'a str, OperatorId, StackId);
        let mut groups: BTreeMap<Key, (Held, AllocationId, u64)> = BTreeMap::new();
        for (id, one) in self.live_at(moment) {
            let module = places.owners.pattern(one.module);
            let key = (
                one.category,
                places.place(one),
                module,
                one.operator,
                one.stack,
            );
            let (held, largest, bytes) = groups.entry(key).or_insert((Held::default(), id, 0));
            if one.requested_bytes > *bytes {
                (*largest, *bytes) = (id, one.requested_bytes);
            }
            held.add(one);
        }
        let mut groups: Vec<HolderGroup> = groups
            .into_iter()
            .map(
                |((category, place, module, operator, stack), (held, largest, _))| HolderGroup {
                    category,
                    label: places.label(&place),
                    place,
                    module: module.to_owned(),
                    operator,
                    stack,
                    held,
                    largest,
                },
            )
            .collect();
        // A stable sort keeps groups of equal size in the order of their keys.
        groups.sort_by_key(|group| std::cmp::Reverse(group.held.requested_bytes()));
        groups
    }
}
