//! The figures of `torch.cuda.memory_stats`, under the same names.

use crate::ids::{PoolId, PoolKind};
use crate::release::Release;
use crate::settings::UNLIMITED;

/// One figure over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    pub current: i64,
    pub peak: i64,
    /// Everything that was ever added.
    pub allocated: i64,
    /// The sum of all decreases.
    pub freed: i64,
}

impl Stat {
    #[inline]
    fn increase(&mut self, amount: u64) {
        let amount = amount as i64;
        self.current = self.current.wrapping_add(amount);
        self.allocated = self.allocated.wrapping_add(amount);
        self.peak = self.peak.max(self.current);
    }

    #[inline]
    fn decrease(&mut self, amount: u64) {
        let amount = amount as i64;
        self.current = self.current.wrapping_sub(amount);
        self.freed = self.freed.wrapping_add(amount);
    }

    /// Branch-free: the branch cannot be predicted.
    #[inline]
    fn change(&mut self, amount: i64) {
        self.current = self.current.wrapping_add(amount);
        self.allocated = self.allocated.wrapping_add(amount.max(0));
        self.freed = self.freed.wrapping_sub(amount.min(0));
        self.peak = self.peak.max(self.current);
    }

    fn parts(&self) -> [(&'static str, i64); 4] {
        [
            ("current", self.current),
            ("peak", self.peak),
            ("allocated", self.allocated),
            ("freed", self.freed),
        ]
    }
}

/// One figure for everything, for small pools, for large pools (private pools included).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatArray {
    pub all: Stat,
    pub small_pool: Stat,
    pub large_pool: Stat,
}

impl StatArray {
    #[inline]
    fn of(&mut self, kind: PoolKind) -> &mut Stat {
        match kind {
            PoolKind::Small => &mut self.small_pool,
            PoolKind::Large => &mut self.large_pool,
        }
    }

    #[inline]
    pub(crate) fn increase(&mut self, kind: PoolKind, amount: u64) {
        self.all.increase(amount);
        self.of(kind).increase(amount);
    }

    #[inline]
    pub(crate) fn decrease(&mut self, kind: PoolKind, amount: u64) {
        self.all.decrease(amount);
        self.of(kind).decrease(amount);
    }

    #[inline]
    pub(crate) fn change(&mut self, kind: PoolKind, amount: i64) {
        self.all.change(amount);
        self.of(kind).change(amount);
    }

    fn parts(&self) -> [(&'static str, &Stat); 3] {
        [
            ("all", &self.all),
            ("small_pool", &self.small_pool),
            ("large_pool", &self.large_pool),
        ]
    }
}

/// All figures of one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    pub allocation: StatArray,
    pub allocated_bytes: StatArray,
    pub requested_bytes: StatArray,
    pub active: StatArray,
    pub active_bytes: StatArray,
    pub inactive_split: StatArray,
    pub inactive_split_bytes: StatArray,
    pub segment: StatArray,
    pub reserved_bytes: StatArray,
    pub oversize_allocations: Stat,
    pub oversize_segments: Stat,
    pub num_alloc_retries: i64,
    pub num_ooms: i64,
    pub num_device_alloc: i64,
    pub num_device_free: i64,
    pub num_sync_all_streams: i64,
    pub num_oom_rejections: i64,
    /// Its state when the allocator was created.
    pub max_split_size: u64,
    /// Reserved bytes of each private pool, in the order in which they first got memory (from 2.13).
    pub reserved_bytes_by_private_pools: Vec<(PoolId, StatArray)>,
}

impl Stats {
    pub(crate) fn new(max_split_size: u64) -> Self {
        let none = StatArray::default();
        Self {
            allocation: none,
            allocated_bytes: none,
            requested_bytes: none,
            active: none,
            active_bytes: none,
            inactive_split: none,
            inactive_split_bytes: none,
            segment: none,
            reserved_bytes: none,
            oversize_allocations: Stat::default(),
            oversize_segments: Stat::default(),
            num_alloc_retries: 0,
            num_ooms: 0,
            num_device_alloc: 0,
            num_device_free: 0,
            num_sync_all_streams: 0,
            num_oom_rejections: 0,
            max_split_size,
            reserved_bytes_by_private_pools: Vec::new(),
        }
    }

    pub(crate) fn oversize_allocation_more(&mut self) {
        self.oversize_allocations.increase(1);
    }

    pub(crate) fn oversize_allocation_less(&mut self) {
        self.oversize_allocations.decrease(1);
    }

    pub(crate) fn oversize_segment_more(&mut self) {
        self.oversize_segments.increase(1);
    }

    pub(crate) fn oversize_segment_less(&mut self) {
        self.oversize_segments.decrease(1);
    }

    /// The reserved bytes of a private pool, at 0 when it is new.
    pub(crate) fn private_pool(&mut self, pool: PoolId) -> &mut StatArray {
        let pools = &mut self.reserved_bytes_by_private_pools;
        let index = match pools.iter().position(|&(id, _)| id == pool) {
            Some(index) => index,
            None => {
                pools.push((pool, StatArray::default()));
                pools.len() - 1
            }
        };
        &mut pools[index].1
    }

    fn arrays(&mut self) -> [&mut StatArray; 9] {
        [
            &mut self.allocation,
            &mut self.allocated_bytes,
            &mut self.requested_bytes,
            &mut self.active,
            &mut self.active_bytes,
            &mut self.inactive_split,
            &mut self.inactive_split_bytes,
            &mut self.segment,
            &mut self.reserved_bytes,
        ]
    }

    fn each_stat(&mut self, mut visit: impl FnMut(&mut Stat)) {
        for array in self.arrays() {
            visit(&mut array.all);
            visit(&mut array.small_pool);
            visit(&mut array.large_pool);
        }
        for (_, array) in &mut self.reserved_bytes_by_private_pools {
            visit(&mut array.all);
            visit(&mut array.small_pool);
            visit(&mut array.large_pool);
        }
        visit(&mut self.oversize_allocations);
        visit(&mut self.oversize_segments);
    }

    /// `torch.cuda.reset_peak_memory_stats`.
    pub fn reset_peak(&mut self) {
        self.each_stat(|stat| stat.peak = stat.current);
    }

    /// `torch.cuda.reset_accumulated_memory_stats`.
    pub fn reset_accumulated(&mut self) {
        self.each_stat(|stat| {
            stat.allocated = 0;
            stat.freed = 0;
        });
        self.num_alloc_retries = 0;
        self.num_ooms = 0;
        self.num_device_alloc = 0;
        self.num_device_free = 0;
        self.num_sync_all_streams = 0;
        self.num_oom_rejections = 0;
    }

    /// Every figure under the key that `torch.cuda.memory_stats` of this release has for it.
    #[must_use]
    pub fn named(&self, release: Release) -> Vec<(String, i64)> {
        let mut named = Vec::new();
        let arrays = [
            ("allocation", &self.allocation),
            ("allocated_bytes", &self.allocated_bytes),
            ("requested_bytes", &self.requested_bytes),
            ("active", &self.active),
            ("active_bytes", &self.active_bytes),
            ("inactive_split", &self.inactive_split),
            ("inactive_split_bytes", &self.inactive_split_bytes),
            ("segment", &self.segment),
            ("reserved_bytes", &self.reserved_bytes),
        ];
        for (name, array) in arrays {
            add_array(&mut named, name, array);
        }
        for (name, stat) in [
            ("oversize_allocations", &self.oversize_allocations),
            ("oversize_segments", &self.oversize_segments),
        ] {
            for (part, value) in stat.parts() {
                named.push((format!("{name}.{part}"), value));
            }
        }
        let mut counters = vec![
            ("num_alloc_retries", self.num_alloc_retries),
            ("num_ooms", self.num_ooms),
            (
                "max_split_size",
                if self.max_split_size == UNLIMITED {
                    -1
                } else {
                    self.max_split_size as i64
                },
            ),
        ];
        let behaviour = release.behaviour();
        if behaviour.counts_driver_calls {
            counters.extend([
                ("num_device_alloc", self.num_device_alloc),
                ("num_device_free", self.num_device_free),
                ("num_sync_all_streams", self.num_sync_all_streams),
            ]);
        }
        if behaviour.can_reject_early {
            counters.push(("num_oom_rejections", self.num_oom_rejections));
        }
        named.extend(
            counters
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value)),
        );
        if behaviour.counts_private_pools {
            for (pool, array) in &self.reserved_bytes_by_private_pools {
                let name = format!("reserved_bytes_by_private_pools.{}_{}", pool.0, pool.1);
                add_array(&mut named, &name, array);
            }
        }
        named
    }
}

fn add_array(named: &mut Vec<(String, i64)>, name: &str, array: &StatArray) {
    for (kind, stat) in array.parts() {
        for (part, value) in stat.parts() {
            named.push((format!("{name}.{kind}.{part}"), value));
        }
    }
}
