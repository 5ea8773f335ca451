//! Which advice belongs to each situation, in what order.

use super::{Advice, device, habits, host, serving};
use crate::account::Account;
use crate::finding::Finding;
use crate::reader::Log;
use crate::situation::{Reasoned, Situation};

/// What to do, best first. Advice for the main situation precedes that for the others.
pub fn advice(
    finding: &Finding,
    account: &Account,
    situations: &[Reasoned],
    log: &Log,
    card: Option<String>,
) -> Vec<Advice> {
    let words = device::Words::of(finding, log, card);
    let mut all = Vec::new();
    // A wrong shape has to be corrected before any other advice makes sense.
    let is_shape = situations
        .first()
        .is_some_and(|main| main.situation == Situation::ShapeBug);
    for reasoned in situations
        .iter()
        .take(if is_shape { 1 } else { usize::MAX })
    {
        all.extend(for_one(reasoned.situation, finding, account, &words));
    }
    let mut kept: Vec<Advice> = Vec::new();
    for each in all {
        if !kept.iter().any(|known| known.what == each.what) {
            kept.push(each);
        }
    }
    // More advice than this goes unread.
    kept.truncate(8);
    kept
}

fn for_one(
    situation: Situation,
    finding: &Finding,
    account: &Account,
    words: &device::Words,
) -> Vec<Advice> {
    match situation {
        Situation::Fragmentation => [
            words.fragmentation(),
            vec![words.smaller_batch(), habits::steady_shapes()],
        ]
        .concat(),
        Situation::OtherProcess if finding.kind == crate::kind::Kind::MpsAllocator => {
            vec![
                serving::close_programs().not_rehearsed(ON_A_MAC),
                serving::mps_watermark().not_rehearsed(ON_A_MAC),
                words.smaller_batch(),
            ]
        }
        Situation::OtherProcess if finding.kind == crate::kind::Kind::VllmNotFree => {
            vec![
                words.see_processes(finding, account),
                serving::utilization_down(finding).not_rehearsed(NO_SERVER),
            ]
        }
        Situation::OtherProcess => vec![
            words.see_processes(finding, account),
            words.empty_card(),
            words.other_card(),
            words.set_device(),
            words.smaller_batch(),
        ],
        Situation::ModelDoesNotFit if finding.kind == crate::kind::Kind::LlamaCpp => {
            not_rehearsed(serving::llama_cpp(), ONLY_PYTORCH)
        }
        Situation::ModelDoesNotFit => vec![
            words.half_weights(),
            words.quantised(),
            habits::shard(),
            words.larger_card(),
        ],
        Situation::OptimizerState => vec![
            words.lean_optimizer(),
            words.half_weights(),
            habits::lora(),
            habits::shard(),
            words.larger_card(),
        ],
        Situation::Activations | Situation::Full
            if finding.kind == crate::kind::Kind::MpsAllocator =>
        {
            vec![
                words.smaller_batch(),
                words.half_precision(),
                serving::mps_watermark().not_rehearsed(ON_A_MAC),
            ]
        }
        Situation::Activations | Situation::Full => vec![
            words.smaller_batch(),
            words.checkpointing(),
            words.half_precision(),
            words.shorter(),
            words.larger_card(),
        ],
        Situation::OneLargeRequest => vec![
            habits::in_pieces(finding),
            words.smaller_batch(),
            words.half_precision(),
            words.checkpointing(),
            words.larger_card(),
        ],
        Situation::Evaluation => vec![
            habits::no_grad(),
            habits::outputs_to_cpu(),
            words.smaller_eval_batch(),
            habits::leftovers(),
        ],
        Situation::Growth => vec![habits::item(), words.find_growth(), habits::detach()],
        Situation::ShapeBug => vec![habits::print_shapes(finding), habits::in_pieces(finding)],
        Situation::FractionLimit => vec![words.raise_limit(), words.smaller_batch()],
        Situation::FreeButRefused => vec![
            host::page_file().not_rehearsed(NOT_THE_CARD),
            words.empty_card(),
            words.see_processes(finding, account),
        ],
        Situation::OutsideTheAllocator => device::room_for_libraries(finding, words),
        Situation::HostMemory => not_rehearsed(host::host_memory(finding), NOT_THE_CARD),
        Situation::SharedMemory => not_rehearsed(host::shared_memory(), NOT_THE_CARD),
        Situation::PinnedMemory => not_rehearsed(host::pinned(), NOT_THE_CARD),
        Situation::KernelSharedMemory => not_rehearsed(serving::smaller_kernel(), NO_KERNELS),
        Situation::ServingCache => not_rehearsed(serving::cache(finding), NO_SERVER),
        Situation::FrameworkPool => not_rehearsed(serving::framework(finding), ONLY_PYTORCH),
    }
}

const ON_A_MAC: &str = "needs a Mac";
const NO_SERVER: &str = "a rehearsal does not start a server";
const NOT_THE_CARD: &str = "it concerns host memory, which a rehearsal does not limit";
const NO_KERNELS: &str = "a rehearsal does not run kernels";
const ONLY_PYTORCH: &str = "only PyTorch can be rehearsed";

fn not_rehearsed(all: Vec<Advice>, because: &str) -> Vec<Advice> {
    all.into_iter()
        .map(|each| each.not_rehearsed(because))
        .collect()
}
