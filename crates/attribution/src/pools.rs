//! Streams and pools of a recording.

use std::collections::HashMap;

use ghostgpu_recording::{Pool, PoolId};

/// Pools, each once.
pub struct Pools {
    pub all: Vec<Pool>,
    pub places: HashMap<Pool, PoolId>,
}

impl Default for Pools {
    fn default() -> Self {
        Self::continuing(vec![Pool::default()])
    }
}

impl Pools {
    pub fn continuing(all: Vec<Pool>) -> Self {
        let places = all.iter().enumerate();
        Self {
            places: places
                .map(|(at, pool)| (*pool, PoolId(at as u32)))
                .collect(),
            all,
        }
    }

    pub fn place(&mut self, stream: u64, number: Option<ghostgpu_snapshot::PoolId>) -> PoolId {
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
