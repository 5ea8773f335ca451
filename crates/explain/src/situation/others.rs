//! Other processes on the card: named by the message, or inferred from what nothing else explains.

use super::allocator::percent;
use super::{Reasoned, Situation};
use crate::account::Account;
use crate::finding::Finding;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// The largest size of a CUDA context; anything beyond it belongs to another process.
const CONTEXT: u64 = 3 * GIB / 2;

pub fn other_process(finding: &Finding, account: &Account) -> Option<Reasoned> {
    let figures = &finding.figures;
    let (total, free) = (figures.total?, figures.free?);
    let requested = figures.requested?;
    if let Some(others) = account.others {
        if others.bytes * 10 < total.bytes || free.plus(others).bytes < requested.bytes {
            return None;
        }
        let own = account.own_host_pid;
        let named: Vec<String> = figures
            .processes
            .iter()
            .filter(|each| Some(each.pid) != own)
            .map(|each| format!("process {} holds {}", each.pid, each.used))
            .collect();
        let reason = format!(
            "other processes hold {others} of {total} ({} %): {}",
            percent(others, total),
            named.join(", ")
        );
        return Some(
            Reasoned::new(Situation::OtherProcess, reason)
                .and(format!(
                    "without them, {} would have been free",
                    free.plus(others)
                ))
                .and_if(ranks_on_one_card(finding, account)),
        );
    }
    let outside = account.outside?;
    let is_much = outside.bytes >= CONTEXT.max(total.bytes / 5);
    if !is_much || free.plus(outside).bytes < requested.bytes {
        return None;
    }
    let reserved = figures.reserved?;
    Some(
        Reasoned::new(
            Situation::OtherProcess,
            format!(
                "{total} in total - {free} free - {reserved} reserved by this PyTorch leaves {outside}, and \
                 a CUDA context takes 0.3 to 0.8 GiB"
            ),
        )
        .and("the rest is another process, another rank on the same card, or a display (this older message names none)"),
    )
}

/// Other processes that hold little, but as much as was missing.
pub fn small_others(finding: &Finding, account: &Account) -> Option<Reasoned> {
    let figures = &finding.figures;
    let (others, free, requested) = (account.others?, figures.free?, figures.requested?);
    let would_do = others.bytes > 0 && free.plus(others).bytes >= requested.bytes;
    would_do.then(|| {
        Reasoned::new(
            Situation::OtherProcess,
            format!(
                "other processes hold {others}; with the {free} free, that is more than the {requested} \
                 requested: without them this request would have fitted, the next may not"
            ),
        )
        .and_if(ranks_on_one_card(finding, account))
    })
}

/// Several small processes on one card are contexts of ranks that touched the wrong card.
fn ranks_on_one_card(finding: &Finding, account: &Account) -> Option<String> {
    let contexts = finding.figures.processes.iter().filter(|each| {
        Some(each.pid) != account.own_host_pid && (150 * MIB..1200 * MIB).contains(&each.used.bytes)
    });
    let count = contexts.count();
    (count >= 2).then(|| {
        format!(
            "{count} of them hold no more than a context: ranks that opened this card by mistake (call \
             torch.cuda.set_device(local_rank) before anything else)"
        )
    })
}
