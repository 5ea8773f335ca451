//! Other processes on the card: named by the message, or inferred from what nothing else explains.

use std::collections::BTreeSet;

use super::allocator::{MIB, Reasoner, percent};
use super::{Reasoned, Situation};
use crate::amount::Amount;
use crate::finding::Finding;
use crate::say;

const GIB: u64 = 1 << 30;

/// The largest size of a CUDA context; anything beyond it belongs to another process.
const CONTEXT: u64 = 3 * GIB / 2;

impl Reasoner<'_> {
    pub fn other_process(&self) -> Option<Reasoned> {
        let figures = &self.finding.figures;
        let (total, free) = (figures.total?, figures.free?);
        let requested = figures.requested?;
        if let Some(others) = self.account.others {
            if others.bytes * 10 < total.bytes || free.plus(others).bytes < requested.bytes {
                return None;
            }
            let own = self.account.own_host_pid;
            let named: Vec<String> = figures
                .processes
                .iter()
                .filter(|each| Some(each.pid) != own)
                .map(|each| {
                    let pid = each.pid.to_string();
                    say!(self.catalogue, "process-holds", pid = pid, used = each.used)
                })
                .collect();
            let comma = say!(self.catalogue, "list-comma") + " ";
            let reason = say!(
                self.catalogue,
                "others-hold",
                others = others,
                total = total,
                percent = percent(others, total),
                list = named.join(&comma)
            );
            let without = say!(self.catalogue, "without-them", free = free.plus(others));
            return Some(
                Reasoned::new(Situation::OtherProcess, reason)
                    .and(without)
                    .and_if(self.ranks_on_one_card()),
            );
        }
        let outside = self.account.outside?;
        let is_much = outside.bytes >= CONTEXT.max(total.bytes / 5);
        if !is_much || free.plus(outside).bytes < requested.bytes {
            return None;
        }
        let reserved = figures.reserved?;
        let reason = say!(
            self.catalogue,
            "rest-is-others",
            total = total,
            free = free,
            reserved = reserved,
            outside = outside
        );
        let unnamed = say!(self.catalogue, "rest-unnamed");
        Some(
            Reasoned::new(Situation::OtherProcess, reason)
                .and(unnamed)
                .and_if(self.ranks_of_the_log()),
        )
    }

    /// Several ranks report the same card, and what they hold together is what is in use on it.
    pub fn ranks_share_a_card(&self) -> Option<Reasoned> {
        let reason = self.ranks_of_the_log()?;
        Some(Reasoned::new(Situation::OtherProcess, reason))
    }

    fn ranks_of_the_log(&self) -> Option<String> {
        let figures = &self.finding.figures;
        let (total, free, device) = (figures.total?, figures.free?, figures.device?);
        let mut writers = BTreeSet::new();
        let mut sum = Amount::default();
        for each in &self.log.findings {
            let other = &each.figures;
            let is_same = other.device == Some(device) && other.total == Some(total);
            if is_same && writers.insert(&each.writer) {
                sum = sum.plus(other.reserved.or(other.allocated)?);
            }
        }
        // With a card for each rank they would hold more than one card has, or leave more of it free.
        let used = total.minus(free)?;
        let is_shared = sum.bytes <= total.bytes && sum.bytes * 10 >= used.bytes * 8;
        (writers.len() >= 2 && is_shared).then(|| {
            say!(
                self.catalogue,
                "ranks-share-card",
                count = writers.len(),
                device = device,
                total = total,
                sum = sum
            )
        })
    }

    /// Other processes that hold little, but as much as was missing.
    pub fn small_others(&self) -> Option<Reasoned> {
        let figures = &self.finding.figures;
        let (others, free, requested) = (self.account.others?, figures.free?, figures.requested?);
        let would_do = others.bytes > 0 && free.plus(others).bytes >= requested.bytes;
        would_do.then(|| {
            let reason = say!(
                self.catalogue,
                "others-hold-little",
                others = others,
                free = free,
                requested = requested
            );
            Reasoned::new(Situation::OtherProcess, reason).and_if(self.ranks_on_one_card())
        })
    }

    /// Several small processes on one card are contexts of ranks that touched the wrong card; several like
    /// this one are ranks that share it.
    fn ranks_on_one_card(&self) -> Option<String> {
        let figures = &self.finding.figures;
        let own = self.account.own_host_pid;
        let others = || {
            let processes = figures.processes.iter();
            processes.filter(move |each| Some(each.pid) != own)
        };
        let is_context = |used: Amount| (150 * MIB..1200 * MIB).contains(&used.bytes);
        let contexts = others().filter(|each| is_context(each.used)).count();
        if contexts >= 2 {
            return Some(say!(self.catalogue, "ranks-by-mistake", count = contexts));
        }
        // Ranks that name cards of their own do not share one.
        let has_others = |each: &Finding| each.figures.device != figures.device;
        if self.log.findings.iter().any(has_others) {
            return None;
        }
        let held = figures.this_process.or(figures.reserved)?;
        let is_like_this = |used: Amount| {
            used.bytes > CONTEXT && used.bytes.abs_diff(held.bytes) * 5 <= held.bytes.max(1)
        };
        let alike = others().filter(|each| is_like_this(each.used)).count();
        (alike >= 1).then(|| say!(self.catalogue, "ranks-alike", count = alike))
    }
}
