//! How a request becomes a block's size (allocator of torch 2.4 and newer).

use ghostgpu_snapshot::AllocatorSettings;

/// PyTorch's `kMinBlockSize`.
const MIN_BLOCK_BYTES: u64 = 512;

/// The divisions of `roundup_power2_divisions`, by the power of two of a size in MiB.
#[derive(Debug, Clone)]
pub struct Rounding {
    divisions: [u64; 16],
}

impl Rounding {
    pub fn of(settings: &AllocatorSettings) -> Self {
        let mut divisions = [0; 16];
        for (mebibytes, value) in &settings.roundup_power2_divisions {
            if let Some(slot) = mebibytes
                .checked_ilog2()
                .and_then(|power| divisions.get_mut(power as usize))
            {
                *slot = *value;
            }
        }
        Self { divisions }
    }

    /// The size of the block that a request is given.
    pub fn block_bytes(&self, request: u64) -> u64 {
        if request < MIN_BLOCK_BYTES {
            return MIN_BLOCK_BYTES;
        }
        let index = (request.ilog2().saturating_sub(20) as usize).min(15);
        let divisions = self.divisions[index];
        if divisions > 1 && request > MIN_BLOCK_BYTES.saturating_mul(divisions) {
            if request.is_power_of_two() {
                return request;
            }
            let floor = 1u64 << request.ilog2();
            let step = floor >> divisions.ilog2();
            return request
                .checked_next_multiple_of(step.max(1))
                .unwrap_or(request);
        }
        request
            .checked_next_multiple_of(MIN_BLOCK_BYTES)
            .unwrap_or(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounding(divisions: &[(u64, u64)]) -> Rounding {
        Rounding::of(&AllocatorSettings {
            roundup_power2_divisions: divisions.to_vec(),
            ..AllocatorSettings::default()
        })
    }

    #[test]
    fn without_divisions_sizes_are_multiples_of_512() {
        let plain = rounding(&[]);
        for (request, block) in [(1, 512), (512, 512), (513, 1024), (1_000_000, 1_000_448)] {
            assert_eq!(plain.block_bytes(request), block);
        }
        assert_eq!(plain.block_bytes(u64::MAX), u64::MAX);
    }

    #[test]
    fn divisions_apply_from_512_bytes_each_on() {
        let all: Vec<(u64, u64)> = (0..16).map(|power| (1 << power, 4)).collect();
        let quarters = rounding(&all);
        assert_eq!(quarters.block_bytes(1200), 1536);
        assert_eq!(quarters.block_bytes(5 << 20), 5 << 20);
        assert_eq!(quarters.block_bytes((4 << 20) + 1), 5 << 20);
        assert_eq!(quarters.block_bytes(8 << 20), 8 << 20);
    }
}
