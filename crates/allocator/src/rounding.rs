//! From requested bytes to the size of a block, and to the size of a segment.

/// Every size is a multiple of this, and no remainder in a small pool is smaller.
pub const MIN_BLOCK_BYTES: u64 = 512;
/// Rounded sizes up to this come from the small pool. Large blocks are split only for more than this.
pub const SMALL_MAX_BYTES: u64 = 1 << 20;
/// The segment size for the small pool.
pub const SMALL_SEGMENT_BYTES: u64 = 2 << 20;
/// The segment size in the large pool for requests below [`MIN_LARGE_BYTES`].
pub const DEFAULT_LARGE_SEGMENT_BYTES: u64 = 20 << 20;
/// Sizes from this on get their own segment.
pub const MIN_LARGE_BYTES: u64 = 10 << 20;
/// Own segments are multiples of this.
pub const ROUND_LARGE_BYTES: u64 = 2 << 20;
/// Requests from this on are refused before they reach the allocator.
pub const ABSURD_BYTES: u64 = 1 << 60;

/// `roundup_power2_divisions`: entry 0 serves requests below 2 MiB, entry i those in
/// [2^i, 2^(i+1)) MiB, entry 15 everything from 32 GiB on. 0 and 1 mean: no rounding beyond 512 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Divisions(pub [u64; Divisions::ENTRIES]);

impl Divisions {
    pub const ENTRIES: usize = 16;

    /// The same number of divisions for every size.
    #[must_use]
    pub const fn everywhere(divisions: u64) -> Self {
        Self([divisions; Self::ENTRIES])
    }

    /// The entry that serves a request.
    #[must_use]
    pub fn for_request(&self, request: u64) -> u64 {
        let log2 = 63 - i64::from(request.max(1).leading_zeros());
        let index = (log2 - 20).clamp(0, Self::ENTRIES as i64 - 1);
        self.0[index as usize]
    }
}

/// The size of the block that serves a request. `request` is below [`ABSURD_BYTES`].
#[must_use]
pub fn block_size(request: u64, divisions: &Divisions, one_division_leaves_unrounded: bool) -> u64 {
    if request < MIN_BLOCK_BYTES {
        return MIN_BLOCK_BYTES;
    }
    let count = divisions.for_request(request);
    let enough = request > MIN_BLOCK_BYTES.saturating_mul(count);
    if one_division_leaves_unrounded && count == 1 && enough {
        // One division of a power of two is the power of two itself, and the code for that case
        // gave the request back as it was.
        return request;
    }
    if count > 1 && enough {
        return round_to_division(request, count);
    }
    request.next_multiple_of(MIN_BLOCK_BYTES)
}

fn round_to_division(request: u64, count: u64) -> u64 {
    if request.is_power_of_two() {
        return request;
    }
    let floor = 1_u64 << (63 - request.leading_zeros());
    let step = floor >> (63 - count.leading_zeros());
    if step == 0 {
        return floor << 1;
    }
    request.next_multiple_of(step)
}

/// The segment size requested from the driver when no cached block serves `size`.
#[must_use]
pub fn segment_size(size: u64, large_segment_bytes: u64) -> u64 {
    if size <= SMALL_MAX_BYTES {
        SMALL_SEGMENT_BYTES
    } else if size < MIN_LARGE_BYTES {
        large_segment_bytes
    } else {
        size.next_multiple_of(ROUND_LARGE_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_round_to_blocks_and_segments_as_pytorch_does() {
        let plain = Divisions::default();
        for (request, size, segment) in [
            (1, 512, 2_097_152),
            (513, 1024, 2_097_152),
            (1_048_576, 1_048_576, 2_097_152),
            (1_048_577, 1_049_088, 20_971_520),
            (9_437_184, 9_437_184, 20_971_520),
            (10_485_759, 10_485_760, 10_485_760),
            (10_485_761, 10_486_272, 12_582_912),
            (20_447_232, 20_447_232, 20_971_520),
            (20_971_521, 20_972_032, 23_068_672),
            (26_738_688, 26_738_688, 27_262_976),
            (1_073_741_825, 1_073_742_336, 1_075_838_976),
        ] {
            assert_eq!(block_size(request, &plain, false), size, "{request}");
            assert_eq!(
                segment_size(size, DEFAULT_LARGE_SEGMENT_BYTES),
                segment,
                "{request}"
            );
        }
    }

    #[test]
    fn divisions_round_to_parts_of_a_power_of_two() {
        let four = Divisions::everywhere(4);
        for (request, size) in [
            (1200, 1536),
            (2049, 2560),
            (5_242_880, 5_242_880),
            (5_452_595, 6_291_456),
            (629_145_600, 671_088_640),
        ] {
            assert_eq!(block_size(request, &four, false), size, "{request}");
        }
    }

    #[test]
    fn one_division_left_requests_unrounded_before_2_4() {
        let one = Divisions::everywhere(1);
        assert_eq!(block_size(1000, &one, true), 1000);
        assert_eq!(block_size(512, &one, true), 512);
        assert_eq!(block_size(1000, &one, false), 1024);
    }
}
