//! How much longer a step takes with a trick, roughly. This gives an order of rehearsals, never a figure to show.
//!
//! Each factor is the middle of what was measured with BERT-base, GPT-2, ResNet-50 and ViT-B on an H200
//! (`docs/tricks.md`). Other cards and models differ, so the factors only decide what is rehearsed first, and the
//! ranking if a job's own time is unknown.

use ghostgpu_tricks::Request;

use super::combination::Combination;

/// The factor of tricks that were not measured, between those that cost nothing and those that cost a pass.
const UNMEASURED: f64 = 1.2;

/// The time of a step with these tricks, relative to the plain one. `blocks` is how many blocks the model has.
pub fn coarse_time(combination: &Combination, blocks: u64) -> f64 {
    let requests = combination.requests().iter();
    requests.map(|request| factor(request, blocks)).product()
}

fn factor(request: &Request, blocks: u64) -> f64 {
    let number = |option: &str| request.value(option).and_then(|it| it.parse::<f64>().ok());
    match request.name.as_str() {
        "checkpointing" => {
            let all = match request.value("keep") {
                Some("matmuls") => 1.15,
                _ => 1.3,
            };
            let share = number("blocks").map_or(1.0, |count| count / blocks.max(1) as f64);
            1.0 + (all - 1.0) * share.min(1.0)
        }
        // One additional pass, and kernels that get smaller with the number of chunks.
        "chunking" => 1.5 + 0.02 * number("chunks").unwrap_or(2.0),
        // Smaller kernels only: the forward pass is not repeated.
        "accumulation" => 1.0 + 0.01 * number("steps").unwrap_or(2.0),
        "surviving-oom" => 1.6,
        "offload-activations" => 2.8,
        "offload-optimizer" => 1.7,
        "optimizer-in-backward" => 1.1,
        "loss-head" => 1.02,
        "adafactor" => 1.3,
        "autocast" => 0.5,
        "bfloat16-weights" => 0.4,
        "lora" => 0.8,
        // Evaluation is a small part of a training.
        "evaluation-chunks" | "small-evaluation-batch" => 1.01,
        "empty-cache" => 1.02,
        "smaller-batch" | "shorter-sequences" => 1.0,
        "inplace-activations"
        | "early-zero-grad"
        | "drop-gradients"
        | "no-grad-evaluation"
        | "allocator"
        | "optimizer-form"
        | "eight-bit-optimizer" => 1.0,
        _ => UNMEASURED,
    }
}

#[cfg(test)]
mod tests {
    use super::super::combination::request;
    use super::*;

    fn time(requests: &[Request]) -> f64 {
        let all = requests.iter().cloned();
        let all = all
            .into_iter()
            .try_fold(Combination::none(), |all, request| all.with(request));
        coarse_time(&all.expect("no conflict"), 12)
    }

    #[test]
    fn more_of_a_trick_never_takes_less_time() {
        let blocks =
            |count: u64| time(&[request("checkpointing", &[("blocks", count.to_string())])]);
        let chunks = |count: u64| time(&[request("chunking", &[("chunks", count.to_string())])]);
        for count in 1..12 {
            assert!(blocks(count) < blocks(count + 1));
            assert!(chunks(count) < chunks(count + 1));
        }
        assert_eq!(blocks(12), time(&[Request::named("checkpointing")]));
    }

    #[test]
    fn moving_memory_over_the_bus_takes_longer_than_computing_it_again() {
        let alone = |name| time(&[Request::named(name)]);
        assert!(alone("loss-head") < alone("checkpointing"));
        assert!(alone("checkpointing") < alone("chunking"));
        assert!(alone("chunking") < alone("offload-activations"));
        assert_eq!(time(&[]), 1.0);
    }
}
