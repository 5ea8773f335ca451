//! Pools and names that a snapshot's events share.

use std::collections::HashMap;

use ghostgpu_recording::{NameId, Pool, PoolId};
use ghostgpu_trace::EventContext;

use super::Brought;

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
                    ghostgpu_trace::NameId::EMPTY => context.user_metadata,
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

/// Pools, each once.
pub(super) struct Pools {
    pub(super) all: Vec<Pool>,
    pub(super) places: HashMap<Pool, PoolId>,
}

impl Default for Pools {
    fn default() -> Self {
        Self::continuing(vec![Pool::default()])
    }
}

impl Pools {
    pub(super) fn continuing(all: Vec<Pool>) -> Self {
        let places = all.iter().enumerate();
        Self {
            places: places
                .map(|(at, pool)| (*pool, PoolId(at as u32)))
                .collect(),
            all,
        }
    }

    pub(super) fn place(&mut self, stream: u64, number: Option<ghostgpu_trace::PoolId>) -> PoolId {
        let pool = Pool {
            stream,
            number: number.map(|number| (number.0, number.1)),
        };
        let next = PoolId(self.all.len() as u32);
        let place = *self.places.entry(pool).or_insert(next);
        if place == next {
            self.all.push(pool);
        }
        place
    }
}
