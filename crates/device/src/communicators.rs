//! How much of a card's memory NCCL takes for its communicators.
//!
//! NCCL chooses channels and buffers by the machine's topology, which is not known here. What is known: over sockets, a
//! rank on an H200 took about 550 MiB for its first communicator and 16 MiB for its second (measured by us, with 2 and 4
//! ranks); over NVLink, 544 MB were published for two A100s and 688 MB for more of them. So two ranks take 544 MiB and
//! more take 688 MiB, and every further communicator 16 MiB. Published figures go up to 1.1 GB, and beyond that for
//! all-to-all on eight H100s: the answer names the margin.

const MIB: u64 = 1 << 20;

const FIRST_OF_TWO: u64 = 544 * MIB;
const FIRST_OF_MORE: u64 = 688 * MIB;
const FURTHER: u64 = 16 * MIB;

/// What a communicator of `ranks` ranks takes if its process has created `others` before it on this card.
pub const fn communicator_bytes(ranks: u32, others: u32) -> u64 {
    match (ranks, others) {
        (0 | 1, _) => 0,
        (2, 0) => FIRST_OF_TWO,
        (_, 0) => FIRST_OF_MORE,
        _ => FURTHER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_communicator_takes_most_and_one_of_a_single_rank_nothing() {
        let cases = [
            ((1, 0), 0),
            ((2, 0), 544),
            ((3, 0), 688),
            ((1024, 0), 688),
            ((2, 1), 16),
            ((8, 5), 16),
        ];
        for ((ranks, others), mebibytes) in cases {
            assert_eq!(communicator_bytes(ranks, others), mebibytes * MIB);
        }
    }
}
