//! What cuDNN cannot know about a Hopper card (capability 9.0) without one: how many thread blocks
//! run on it at once.
//!
//! Its fastest convolution engines there are persistent: as many blocks start as fit on the card, in
//! clusters, and each processes one output tile after another. A few tiles are left over when all
//! blocks have had the same number; to keep the whole card busy, their sums are split over several
//! blocks, which leave partial sums in the workspace. Asked without a card, cuDNN 9 sizes that buffer
//! for 18 multiprocessors (one processing cluster of the chip), because the description of a card that
//! it accepts does not say more. So we subtract that buffer from its answer and add the real card's:
//! [`problem`] counts the tiles, [`split`] finds how each one is split (by asking cuDNN about a small
//! problem of the same kind), [`card`] knows what fits on the card.
//!
//! Verified on an H200 with cuDNN 9.19, with a handle and without: 23,634 of 23,652 engine
//! configurations of 2,448 convolutions match (`ground_truth/cudnn/compare.py` counts them). The answers
//! for other capabilities do not depend on the number of multiprocessors.

mod card;
mod problem;
mod split;

use ghostgpu_device::DeviceSheet;
use ghostgpu_oracle::Node;

use problem::{Configuration, Problem};

/// How many multiprocessors cuDNN assumes without a card.
const DEVICELESS_MULTIPROCESSORS: u64 = 18;
/// Alignment of the buffer.
const SLACK_BYTES: i64 = 127;
const COUNTER_BYTES: i64 = 4;
/// Taken in addition to the counters of each split tile.
const SPLIT_HEADER_BYTES: i64 = 32;

/// Asks cuDNN for the workspace of (graph, engine, knobs, multiprocessors).
pub type AskWorkspace<'a> = dyn Fn(&Node, i64, &[(i32, i64)], Option<i32>) -> Option<i64> + 'a;

/// The workspace on the real card, from what cuDNN answers without one.
///
/// The answer is returned unchanged if the engine is not persistent.
pub fn on_card(
    sheet: &DeviceSheet,
    graph: &Node,
    engine: i64,
    knobs: &[(i32, i64)],
    deviceless_bytes: i64,
    ask: &AskWorkspace<'_>,
) -> i64 {
    let Some(configuration) = Configuration::read(engine, knobs) else {
        return deviceless_bytes;
    };
    let Some(problem) = Problem::read(graph) else {
        return deviceless_bytes;
    };
    let tiles = problem.tiles(&configuration);
    let cluster = configuration.cluster_blocks();
    let deviceless_blocks = DEVICELESS_MULTIPROCESSORS / cluster * cluster;
    let blocks = card::resident_blocks(sheet, cluster);
    if tiles == 0 || deviceless_blocks == 0 || blocks == 0 {
        return deviceless_bytes;
    }
    let without_splits = if configuration.may_split {
        let whole = configuration.without_splits();
        match ask(graph, engine, &whole, None) {
            Some(bytes) => bytes,
            None => return deviceless_bytes,
        }
    } else {
        deviceless_bytes
    };
    let other_bytes = without_splits - buffer_bytes(&configuration, tiles, deviceless_blocks, 1);
    let splits = split::splits(&problem, &configuration, tiles, blocks, ask);
    other_bytes + buffer_bytes(&configuration, tiles, blocks, splits)
}

/// The buffer for `tiles` output tiles on `blocks` resident blocks, left-over tiles split `splits`
/// ways.
fn buffer_bytes(configuration: &Configuration, tiles: u64, blocks: u64, splits: u64) -> i64 {
    // With three or more rounds, blocks draw their tiles from a shared counter.
    let counter = if tiles.div_ceil(blocks) >= 3 {
        COUNTER_BYTES
    } else {
        0
    };
    let left_over = (tiles % blocks) as i64;
    if splits > 1 {
        let flags = COUNTER_BYTES * left_over * reduction_nodes(splits) as i64;
        let sums = left_over * splits as i64 * configuration.tile_bytes() as i64;
        SLACK_BYTES + counter + SPLIT_HEADER_BYTES + flags + sums
    } else if counter > 0 {
        SLACK_BYTES + counter
    } else {
        0
    }
}

/// How many additions it takes to add partial sums in pairs, then those sums, and so on.
fn reduction_nodes(splits: u64) -> u64 {
    let mut nodes = 0;
    let mut remaining = splits;
    while remaining > 1 {
        remaining = remaining.div_ceil(2);
        nodes += remaining;
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configuration(tile: i64) -> Configuration {
        let knobs = [(2, tile), (13, 1), (18, 1), (25, 0), (27, 1), (28, 2)];
        Configuration::read(65, &knobs).unwrap()
    }

    #[test]
    fn the_buffer_is_as_large_as_measured() {
        // Filter gradient 16x192x32x32 -> 1024, 3x3, half precision, channels last, on an H200:
        // 144 tiles, 12 left over on 132 blocks, each split 11 ways.
        assert_eq!(buffer_bytes(&configuration(0), 144, 132, 11), 8_651_487);
        // The same without a card: 144 tiles on 18 blocks leave nothing over.
        assert_eq!(buffer_bytes(&configuration(0), 144, 18, 1), 131);
    }

    #[test]
    fn a_single_round_needs_no_buffer() {
        assert_eq!(buffer_bytes(&configuration(0), 100, 132, 1), 0);
        assert_eq!(buffer_bytes(&configuration(0), 264, 132, 1), 0);
        assert_eq!(buffer_bytes(&configuration(0), 265, 132, 1), 131);
    }

    #[test]
    fn sums_are_added_in_pairs() {
        let nodes: Vec<u64> = [1, 2, 3, 5, 9, 11, 15].map(reduction_nodes).to_vec();
        assert_eq!(nodes, [0, 1, 3, 6, 11, 12, 15]);
    }
}
