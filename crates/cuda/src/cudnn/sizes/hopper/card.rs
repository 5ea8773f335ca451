//! How many thread blocks of a persistent kernel are resident on a Hopper card at once.

use ghostgpu_device::DeviceSheet;

use crate::notes;

/// The multiprocessors of the card the table was read on.
const MEASURED_MULTIPROCESSORS: u64 = 132;

/// Clusters of 1, 2, 3 … blocks that fit on an H200 with one block per multiprocessor.
///
/// A cluster must be within one processing cluster of the chip, and those have 16 or 18 working
/// multiprocessors, so some stay idle. The numbers follow from the sizes of the partial-sum buffers
/// that cuDNN requests there. Chips differ in which multiprocessors are disabled, so another H200 may
/// have slightly different numbers.
const CLUSTERS_BY_SIZE: [u64; 16] = [132, 66, 39, 30, 22, 17, 15, 15, 9, 7, 7, 7, 7, 7, 7, 7];

/// Blocks that run at once in clusters of `cluster` blocks; a multiple of `cluster`.
pub fn resident_blocks(sheet: &DeviceSheet, cluster: u64) -> u64 {
    let Some(&clusters) = usize::try_from(cluster)
        .ok()
        .and_then(|size| CLUSTERS_BY_SIZE.get(size.checked_sub(1)?))
    else {
        return 0;
    };
    let multiprocessors = u64::from(sheet.multiprocessors);
    if multiprocessors == MEASURED_MULTIPROCESSORS {
        return clusters * cluster;
    }
    notes::assume(
        "how many thread-block clusters fit on this card was derived from an H200's 132 \
         multiprocessors, which decides the size of some convolution workspaces",
    );
    clusters * multiprocessors / MEASURED_MULTIPROCESSORS * cluster
}
