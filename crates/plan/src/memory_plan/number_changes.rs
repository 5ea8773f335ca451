//! Changes of precision, optimizer and model that a plan may build on.

use ghostgpu_tricks::Request;

use super::allowed::Allowed;
use super::coarse_time::coarse_time;
use super::combination::{Combination, request};

/// The combinations of permitted changes for a model of `blocks` blocks, those with the fewest and mildest changes first.
/// Cards before Ampere have no arithmetic in bfloat16.
pub fn number_changes(allowed: &Allowed, has_bfloat16: bool, blocks: u64) -> Vec<Combination> {
    let dtype = match has_bfloat16 {
        true => "bf16",
        false => "fp16",
    };
    let precision = [
        Some(request("autocast", &[("dtype", dtype.to_owned())])),
        has_bfloat16.then(|| Request::named("bfloat16-weights")),
    ];
    let optimizer = ["eight-bit-optimizer", "adafactor"].map(|name| Some(Request::named(name)));
    let lora = [Some(Request::named("lora"))];
    let mut changes = vec![Combination::none()];
    for axis in [&precision[..], &optimizer, &lora] {
        let requests = axis.iter().flatten();
        let permitted = requests.filter(|request| allowed.permits(&request.name));
        let more: Vec<Combination> = permitted
            .flat_map(|request| {
                let with = changes.iter().map(|change| change.with(request.clone()));
                with.flatten().collect::<Vec<Combination>>()
            })
            .collect();
        changes.extend(more);
    }
    changes.retain(|change| !change.is_empty());
    let key = |change: &Combination| (change.requests().len(), change.numerics());
    changes.sort_by(|one, other| {
        let time = |change| coarse_time(change, blocks);
        let order = key(one).cmp(&key(other));
        order.then(time(one).total_cmp(&time(other)))
    });
    changes
}
