//! What each trick saves, as its rehearsal alone showed, and what combinations are estimated to need.
//!
//! Estimates only decide what to rehearse; every answer was rehearsed.

use ghostgpu_rehearse::Peaks;
use ghostgpu_tricks::Request;

use super::combination::Combination;
use super::composition::{Composition, floor_bytes};
use super::families::{FREE, chunking};

/// A trick that saves less than this fraction of the job's memory is not worth its place in a plan.
const LEAST_SAVING: f64 = 0.002;

/// The same for a trick that costs time.
const LEAST_COSTLY_SAVING: f64 = 0.01;

/// A combination stays in the search if its estimate exceeds the card by no more than this factor.
const TOLERANCE: f64 = 1.03;

/// The peaks of single tricks, compared with those of the job as it is.
pub struct Savings<'a> {
    composition: &'a Composition,
    needed: Peaks,
    /// Single tricks and changes of the numbers, each with its peak on the card or with unlimited memory.
    alone: Vec<(Combination, u64)>,
}

impl<'a> Savings<'a> {
    pub fn new(composition: &'a Composition, needed: Peaks) -> Self {
        Self {
            composition,
            needed,
            alone: Vec::new(),
        }
    }

    /// Notes the peak of a single trick, or of changes of the numbers.
    pub fn note(&mut self, combination: Combination, device_bytes: u64) {
        self.alone.push((combination, device_bytes));
    }

    /// Whether a trick was rehearsed and saves enough.
    pub fn has(&self, name: &str) -> bool {
        let alone = self.alone(name);
        alone.is_some_and(|(_, bytes)| self.is_worth_it(self.saved(bytes)))
    }

    /// Whether a trick costs time and can save next to nothing for this job.
    pub fn can_only_be_small(&self, name: &str) -> bool {
        let least = LEAST_COSTLY_SAVING * self.needed.device_bytes as f64;
        let most = self.composition.most_saved_by(name);
        !FREE.contains(&name) && most.is_some_and(|most| (most as f64) < least)
    }

    /// Whether even the most that its tricks can save leaves more than `capacity_bytes`.
    pub fn cannot_be_enough(&self, combination: &Combination, capacity_bytes: u64) -> bool {
        let requests = combination.requests().iter();
        let saved: Option<u64> = requests
            .map(|request| self.composition.most_saved_by(&request.name))
            .sum();
        saved
            .is_some_and(|saved| self.needed.allocated_bytes.saturating_sub(saved) > capacity_bytes)
    }

    /// Whether `combination`, which builds on `prefix`, may fit into `target_bytes`.
    pub fn may_fit(
        &self,
        combination: &Combination,
        prefix: &Combination,
        target_bytes: u64,
    ) -> bool {
        let mut requests = combination.requests().iter();
        let has_unknown = requests
            .any(|request| !prefix.has(&request.name) && self.alone(&request.name).is_none());
        let most = target_bytes as f64 * TOLERANCE;
        has_unknown || self.estimate(combination) as f64 <= most
    }

    /// The estimated peak of a combination, as if the savings of its tricks added up.
    pub fn estimate(&self, combination: &Combination) -> u64 {
        let floor = floor_bytes(self.composition, &self.needed);
        // A combination that builds on a rehearsed change of the numbers is estimated from that.
        let changed = self
            .alone
            .iter()
            .filter(|(alone, _)| !alone.keeps_numbers() && alone.is_within(combination))
            .max_by_key(|(alone, _)| alone.requests().len());
        let base = changed.map_or(self.needed.device_bytes, |(_, bytes)| *bytes);
        let scale = base.saturating_sub(floor) as f64
            / self.needed.device_bytes.saturating_sub(floor).max(1) as f64;
        let requests = combination.requests().iter();
        let saved: f64 = requests
            .filter(|request| changed.is_none_or(|(alone, _)| !alone.has(&request.name)))
            .map(|request| self.saved_by(request) * scale)
            .sum();
        base.saturating_sub(saved as u64).max(floor)
    }

    /// `prefix` with every compatible trick that saves something, preferring those that save most.
    pub fn strongest(&self, prefix: &Combination) -> Combination {
        let mut savers: Vec<(u64, &Combination)> = self
            .alone
            .iter()
            .filter(|(combination, _)| combination.keeps_numbers())
            .map(|(combination, bytes)| (self.saved(*bytes), combination))
            .filter(|(saved, _)| self.is_worth_it(*saved))
            .collect();
        savers.sort_by_key(|(saved, _)| std::cmp::Reverse(*saved));
        let mut all = prefix.clone();
        for (_, saver) in savers {
            let mut requests = saver.requests().iter();
            let has_it = requests.any(|request| all.has(&request.name));
            if !has_it && let Some(more) = all.and(saver) {
                all = more;
            }
        }
        let chunks = chunking(&all.without("chunking"), self.composition);
        match all.has("chunking") {
            true => chunks.at(chunks.height()).unwrap_or(all),
            false => all,
        }
    }

    /// What a trick saves in this amount, according to its rehearsal alone.
    fn saved_by(&self, wanted: &Request) -> f64 {
        let Some((alone, bytes)) = self.alone(&wanted.name) else {
            return 0.0;
        };
        let saved = self.saved(bytes) as f64;
        let number = |request: &Request, option| {
            let value = request.value(option);
            value.and_then(|value| value.parse::<f64>().ok())
        };
        match wanted.name.as_str() {
            "checkpointing" => {
                let blocks = self.composition.blocks.max(1) as f64;
                saved * number(wanted, "blocks").map_or(1.0, |count| (count / blocks).min(1.0))
            }
            "chunking" => {
                let part = |request: &Request| {
                    1.0 - 1.0 / number(request, "chunks").unwrap_or(2.0).max(1.0)
                };
                let base = alone.get("chunking").map_or(0.5, part);
                saved / base * part(wanted)
            }
            _ => saved,
        }
    }

    /// A trick as it was rehearsed alone, with its peak; of several amounts, the one with the lowest.
    fn alone(&self, name: &str) -> Option<(&Combination, u64)> {
        let alone = self.alone.iter().filter(|(combination, _)| {
            let requests = combination.requests();
            requests.len() == 1 && requests[0].name == name
        });
        let lowest = alone.min_by_key(|(_, bytes)| *bytes)?;
        Some((&lowest.0, lowest.1))
    }

    fn saved(&self, bytes: u64) -> u64 {
        self.needed.device_bytes.saturating_sub(bytes)
    }

    fn is_worth_it(&self, saved: u64) -> bool {
        saved as f64 >= LEAST_SAVING * self.needed.device_bytes as f64
    }
}
