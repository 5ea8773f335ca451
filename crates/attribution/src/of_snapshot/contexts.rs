//! Pools and names that a snapshot's events share.

use ghostgpu_recording::{NameId, Pool, PoolId};
use ghostgpu_snapshot::EventContext;

use super::Brought;
use crate::pools::Pools;

/// Pool and name that many events share.
#[derive(Clone, Copy, Default)]
pub(super) struct Context {
    pub(super) pool: PoolId,
    pub(super) label: NameId,
}

pub(super) struct Contexts {
    pub(super) pools: Vec<Pool>,
    pub(super) known: Vec<Context>,
}

impl Contexts {
    pub(super) fn new(known: &[EventContext], brought: &mut Brought<'_>) -> Self {
        let mut pools = Pools::default();
        let known = known
            .iter()
            .map(|context| Context {
                pool: pools.place(context.stream, context.pool),
                label: brought.text(match context.category {
                    ghostgpu_snapshot::NameId::EMPTY => context.user_metadata,
                    category => category,
                }),
            })
            .collect();
        Self {
            pools: pools.all,
            known,
        }
    }

    pub(super) fn of(&self, id: u32) -> Context {
        self.known.get(id as usize).copied().unwrap_or_default()
    }
}
