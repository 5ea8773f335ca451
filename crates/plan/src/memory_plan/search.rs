//! The search: what every trick saves for itself, then combinations, the quickest first.
//!
//! 1. Each trick alone, on the card; one that runs out of memory once more with unlimited memory, to see what it saves.
//! 2. All that save something together. If that does not fit, no part of it does.
//! 3. Combinations of them, the quickest first. Left out is what contains a combination that fits, and what the
//!    savings of its tricks, added up, would not bring below the card: tricks that save the same memory save
//!    less together, never more. When enough have been rehearsed, so is what takes much longer than one that fits.
//!
//! Amounts (blocks, chunks) are lowered to the least that fits. Estimates only choose what is rehearsed: nothing is an
//! answer that was not.

use ghostgpu_rehearse::{Peaks, Stop};
use ghostgpu_tricks::{Numerics, Request};

use super::Question;
use super::allowed::{Allowance, Allowed};
use super::bench::{Bench, CameTo, FOR_EVALUATION, Where};
use super::coarse_time::coarse_time;
use super::combination::{Combination, request};
use super::composition::{Composition, floor_bytes};
use super::families::{
    FREE, Family, LadderKind, accumulation, checkpointing, families, shorter_sequences, singles,
};
use super::least::Least;

/// A trick that saves less than this part of what the job needs is not worth its place in a plan.
const LEAST_SAVING: f64 = 0.002;

/// The same for a trick that costs time.
const LEAST_COSTLY_SAVING: f64 = 0.01;

/// So many rehearsals are spent on what is built on one change of the numbers.
const REHEARSALS_PER_CHANGE: usize = 12;

/// Estimates may be off by this much and still keep a combination in the search.
const TOLERANCE: f64 = 1.03;

/// With so many combinations rehearsed, those that take [`MUCH_LONGER`] than one that fits are left out.
const ENOUGH: usize = 24;
const MUCH_LONGER: f64 = 1.25;

/// So many rehearsals are worth making at the same time where not all of them may be needed.
const AT_ONCE: usize = 2;

/// Where a search stands.
pub struct Search<'a> {
    pub bench: Bench<'a>,
    question: &'a Question<'a>,
    composition: &'a Composition,
    needed: Peaks,
    /// What single tricks have with unlimited memory, or on the card.
    alone: Vec<(Combination, u64)>,
    /// Combinations that do not fit, though they have every trick that saves something and goes with the others.
    too_large: Vec<Combination>,
    /// Combinations that were left out, by reason.
    pub left_out: LeftOut,
}

/// How many families of combinations were not rehearsed, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// They contain one that fits.
    pub contain_one_that_fits: usize,
    /// Their tricks cannot save enough.
    pub too_large: usize,
    /// They take much longer than something that fits, when enough others have been rehearsed.
    pub slower: usize,
}

impl<'a> Search<'a> {
    pub fn new(
        bench: Bench<'a>,
        question: &'a Question<'a>,
        composition: &'a Composition,
        needed: Peaks,
    ) -> Self {
        Self {
            bench,
            question,
            composition,
            needed,
            alone: Vec::new(),
            too_large: Vec::new(),
            left_out: LeftOut::default(),
        }
    }

    /// What must be enough for a plan.
    fn target_bytes(&self) -> u64 {
        let card = &self.question.card;
        card.capacity_bytes().saturating_sub(card.margin_bytes())
    }

    /// Tricks that leave the numbers as they are, up to rounding.
    pub fn without_other_numbers(&mut self) -> Result<(), Stop> {
        let mut alone = singles(self.composition);
        alone.retain(|family| {
            !family.has_any(|name| !self.question.allowed.permits(name) || self.is_too_little(name))
        });
        alone.sort_by(|one, other| self.time(one).total_cmp(&self.time(other)));
        for some in alone.chunks(AT_ONCE) {
            self.alone(some)?;
        }
        self.allocator_settings()?;
        let none = Combination::none();
        self.try_strongest(&none)?;
        self.families_on(&none, usize::MAX)
    }

    /// What else was allowed: smaller batches, which keep the samples of a step, then changes of the numbers with
    /// everything before, then shorter sequences. `allowed` says what.
    pub fn with_other_numbers(&mut self, allowed: &Allowed) -> Result<(), Stop> {
        let none = Combination::none();
        let permits = |allowance| allowed.changes.contains(&allowance);
        let smaller = accumulation(&none, self.composition);
        if let Some(family) = smaller.filter(|_| permits(Allowance::Batch)) {
            self.least(&family)?;
        }
        for prefix in self.prefixes(allowed) {
            self.on_prefix(&prefix)?;
        }
        let shorter = shorter_sequences(&none, self.composition);
        if let Some(family) = shorter.filter(|_| permits(Allowance::Sequence)) {
            self.least(&family)?;
        }
        Ok(())
    }

    /// Changes of precision, optimizer and model, the quickest first.
    fn prefixes(&self, allowed: &Allowed) -> Vec<Combination> {
        let has_bfloat16 = self.question.card.sheet.capability.major >= 8;
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
        let mut prefixes = vec![Combination::none()];
        for axis in [&precision[..], &optimizer, &lora] {
            let requests = axis.iter().flatten();
            let permitted = requests.filter(|request| allowed.permits(&request.name));
            let more: Vec<Combination> = permitted
                .flat_map(|request| {
                    let with = prefixes.iter().map(|prefix| prefix.with(request.clone()));
                    with.flatten().collect::<Vec<Combination>>()
                })
                .collect();
            prefixes.extend(more);
        }
        prefixes.retain(|prefix| !prefix.is_empty());
        let key = |prefix: &Combination| (prefix.requests().len(), prefix.numerics());
        prefixes.sort_by(|one, other| {
            let time = |prefix| coarse_time(prefix, self.composition.blocks);
            let order = key(one).cmp(&key(other));
            order.then(time(one).total_cmp(&time(other)))
        });
        prefixes
    }

    fn on_prefix(&mut self, prefix: &Combination) -> Result<(), Stop> {
        if self.contains_one_that_fits(prefix) {
            self.left_out.contain_one_that_fits += 1;
            return Ok(());
        }
        let Some(index) = self.bench.on_card(prefix)? else {
            return Ok(());
        };
        match &self.bench.tried[index].came_to {
            CameTo::Fits { .. } => return Ok(()),
            CameTo::DoesNotFit { .. } => {}
            CameTo::NotKnown(_) | CameTo::Fails(_) => return Ok(()),
        }
        if let Some(peaks) = self.bench.with_unlimited_memory(index)? {
            self.alone.push((prefix.clone(), peaks.device_bytes));
        }
        // What checkpointing saved of the plain job may say little here: with less gradients and state the peak
        // moves from the optimizer's step, which has no activations, to the backward pass.
        if !self.is_saving("checkpointing") && self.question.allowed.permits("checkpointing") {
            self.least(&checkpointing(prefix, self.composition))?;
        }
        self.try_strongest(prefix)?;
        self.families_on(prefix, REHEARSALS_PER_CHANGE)
    }

    /// Tricks for themselves: does each fit, and in which least amount? If not, what does it save?
    fn alone(&mut self, families: &[Family]) -> Result<(), Stop> {
        let strongest: Vec<(&Family, Combination)> = families
            .iter()
            .filter_map(|family| Some((family, strongest_of(family)?)))
            .collect();
        let place = |it: &Combination| match self.cannot_be_enough(it) {
            true => Where::Unlimited,
            false => Where::OnCard,
        };
        let wanted: Vec<(Combination, Where)> = strongest
            .iter()
            .map(|(_, it)| (it.clone(), place(it)))
            .collect();
        self.bench.expect(&wanted)?;
        let mut rehearsed = Vec::new();
        for (family, strongest) in strongest {
            let index = match self.cannot_be_enough(&strongest) {
                true => self.bench.known_not_to_fit(&strongest)?,
                false => self.bench.on_card(&strongest)?,
            };
            rehearsed.extend(index.map(|index| (family, strongest, index)));
        }
        let lacking = rehearsed.iter().map(|(_, _, index)| *index);
        let lacking = lacking.filter(|index| self.bench.lacks_figures(*index));
        let lacking: Vec<(Combination, Where)> = lacking
            .map(|index| self.bench.tried[index].combination.clone())
            .map(|combination| (combination, Where::Unlimited))
            .collect();
        self.bench.expect(&lacking)?;
        for (family, strongest, index) in rehearsed {
            self.saving_alone(family, strongest, index)?;
        }
        Ok(())
    }

    fn saving_alone(
        &mut self,
        family: &Family,
        strongest: Combination,
        index: usize,
    ) -> Result<(), Stop> {
        let bytes = match &self.bench.tried[index].came_to {
            CameTo::Fits { peaks, .. } => Some(peaks.device_bytes),
            CameTo::DoesNotFit { .. } => {
                let peaks = self.bench.with_unlimited_memory(index)?;
                peaks.map(|peaks| peaks.device_bytes)
            }
            CameTo::NotKnown(_) | CameTo::Fails(_) => None,
        };
        if let Some(bytes) = bytes {
            self.alone.push((strongest, bytes));
        }
        if family.ladder.is_some() && bytes.is_some() {
            self.least(family)?;
        }
        Ok(())
    }

    /// A trick that costs time, and can save next to nothing of what this job has.
    fn is_too_little(&self, name: &str) -> bool {
        let least = LEAST_COSTLY_SAVING * self.needed.device_bytes as f64;
        let most = self.composition.most_saved_by(name);
        !FREE.contains(&name) && most.is_some_and(|most| (most as f64) < least)
    }

    /// All that a trick can save is not enough, by what the job is made of: then only how much it saves is asked.
    fn cannot_be_enough(&self, combination: &Combination) -> bool {
        let saved: Option<u64> = combination
            .requests()
            .iter()
            .map(|request| self.composition.most_saved_by(&request.name))
            .sum();
        saved.is_some_and(|saved| {
            self.needed.allocated_bytes.saturating_sub(saved) > self.question.card.capacity_bytes()
        })
    }

    /// Other settings of the allocator are worth a script started anew only where memory lies idle.
    fn allocator_settings(&mut self) -> Result<(), Stop> {
        let target = self.target_bytes();
        let used = self
            .needed
            .device_bytes
            .saturating_sub(self.composition.unused_bytes());
        let lost = self
            .needed
            .reserved_bytes
            .saturating_sub(self.needed.allocated_bytes);
        let could_fit = used.min(self.needed.device_bytes.saturating_sub(lost)) <= target;
        let combination = Combination::of(Request::named("allocator"));
        if let Some(combination) = combination.filter(|_| could_fit)
            && self.question.allowed.permits("allocator")
        {
            self.bench.on_card(&combination)?;
        }
        Ok(())
    }

    /// All tricks that save something, together: if they do not fit, no part of them does.
    fn try_strongest(&mut self, prefix: &Combination) -> Result<(), Stop> {
        let strongest = self.strongest(prefix);
        if strongest == *prefix || self.fits_within(prefix) {
            return Ok(());
        }
        let Some(index) = self.bench.on_card(&strongest)? else {
            return Ok(());
        };
        if matches!(self.bench.tried[index].came_to, CameTo::DoesNotFit { .. }) {
            self.bench.with_unlimited_memory(index)?;
            self.too_large.push(strongest);
        }
        Ok(())
    }

    /// Everything that saves something and can be combined, what saves most first.
    fn strongest(&self, prefix: &Combination) -> Combination {
        let mut savers: Vec<(u64, &Combination)> = self
            .alone
            .iter()
            .filter(|(combination, _)| combination.keeps_numbers())
            .map(|(combination, bytes)| (self.saving(*bytes), combination))
            .filter(|(saving, _)| self.is_worth_it(*saving))
            .collect();
        savers.sort_by_key(|(saving, _)| std::cmp::Reverse(*saving));
        let mut all = prefix.clone();
        for (_, saver) in savers {
            let has_it = saver
                .requests()
                .iter()
                .any(|request| all.has(&request.name));
            if !has_it && let Some(more) = all.and(saver) {
                all = more;
            }
        }
        let chunks = super::families::chunking(&all.without("chunking"), self.composition);
        match all.has("chunking") {
            true => chunks.at(chunks.height()).unwrap_or(all),
            false => all,
        }
    }

    fn families_on(&mut self, prefix: &Combination, most: usize) -> Result<(), Stop> {
        let free: Vec<&str> = FREE
            .into_iter()
            .filter(|name| self.is_saving(name) && self.question.allowed.permits(name))
            .collect();
        let mut all = families(prefix, &free, self.composition);
        all.retain(|family| {
            !family.has_any(|name| {
                let is_own = prefix.has(name);
                !is_own && (!self.question.allowed.permits(name) || !self.is_saving(name))
            })
        });
        all.sort_by(|one, other| {
            let size = |family: &Family| family.fixed.requests().len();
            let order = self.time(one).total_cmp(&self.time(other));
            order.then(size(one).cmp(&size(other)))
        });
        let until = self.bench.rehearsals.saturating_add(most);
        for family in all {
            if self.bench.is_spent() || self.bench.rehearsals >= until {
                break;
            }
            if self.contains_one_that_fits(&family.fixed) {
                self.left_out.contain_one_that_fits += 1;
                continue;
            }
            if self.bench.tried.len() >= ENOUGH && self.is_much_slower(&family, prefix) {
                self.left_out.slower += 1;
                continue;
            }
            let strongest = family.at(family.height());
            if strongest.is_some_and(|all| self.is_too_large(&all) || !self.may_fit(&all, prefix)) {
                self.left_out.too_large += 1;
                continue;
            }
            self.least(&family)?;
        }
        Ok(())
    }

    /// Takes tricks out of the best way that it does not need.
    pub fn leave_out_what_is_not_needed(&mut self) -> Result<(), Stop> {
        let blocks = self.composition.blocks;
        let mut removable: Vec<&str> = FREE.to_vec();
        removable.extend(["loss-head", "optimizer-in-backward"]);
        // What was added for evaluation may have been needed by other combinations alone.
        for (name, _) in FOR_EVALUATION.iter().rev() {
            if !removable.contains(name) {
                removable.push(name);
            }
        }
        let mut before = None;
        loop {
            super::ranking::rank(&mut self.bench.tried, blocks);
            let best = self
                .bench
                .tried
                .first()
                .filter(|tried| tried.fits_with_room());
            let best = best.map(|tried| tried.combination.clone());
            // What is smaller may rank behind it: then the best is what it was.
            let Some(best) = best.filter(|best| before.as_ref() != Some(best)) else {
                return Ok(());
            };
            let present: Vec<&str> = removable
                .iter()
                .copied()
                .filter(|it| best.has(it))
                .collect();
            let without = present
                .iter()
                .map(|name| (best.without(name), Where::OnCard));
            self.bench
                .expect(&without.take(AT_ONCE).collect::<Vec<_>>())?;
            for name in present {
                self.bench.leave_out_in_evaluation(name);
                let index = self.bench.on_card(&best.without(name))?;
                let tried = index.map(|index| &self.bench.tried[index]);
                if tried.is_some_and(|it| it.fits_with_room() && it.combination != best) {
                    break;
                }
            }
            before = Some(best);
        }
    }

    /// What is recommended has been rehearsed with everything that a training does. What does not fit then makes way for the
    /// next.
    pub fn rehearse_best_thoroughly(&mut self) -> Result<(), Stop> {
        loop {
            super::ranking::rank(&mut self.bench.tried, self.composition.blocks);
            let best = self.bench.tried.first();
            if best.is_none_or(|best| best.is_thorough || !best.fits()) {
                return Ok(());
            }
            self.bench.rehearse_thoroughly(0)?;
        }
    }

    /// The least amount of a family that fits.
    fn least(&mut self, family: &Family) -> Result<(), Stop> {
        let mut least = Least::up_to(family.height());
        for (rung, is_enough) in self.known_rungs(family) {
            least.note(rung, is_enough);
        }
        let starts_at_top = family
            .ladder
            .as_ref()
            .is_some_and(|ladder| ladder.kind == LadderKind::Blocks);
        let mut guess = match (least.found(), starts_at_top) {
            (None, true) => Some(family.height()),
            _ => self.first_guess(family),
        };
        let mut guesses = 0;
        while let Some(rung) = least.next(guess) {
            let Some(combination) = family.at(rung) else {
                break;
            };
            // If it is enough, the one below it is asked next; else the one above.
            if rung < family.height() && guesses == usize::from(starts_at_top) {
                let below = rung.checked_sub(1).and_then(|rung| family.at(rung));
                let both = below.into_iter().chain([combination.clone()]);
                let both: Vec<_> = both.map(|it| (it, Where::OnCard)).collect();
                self.bench.expect(&both)?;
            }
            let Some(index) = self.bench.on_card(&combination)? else {
                break;
            };
            let tried = &self.bench.tried[index];
            let is_enough = tried.fits_with_room();
            if matches!(tried.came_to, CameTo::Fails(_) | CameTo::NotKnown(_)) {
                break;
            }
            least.note(rung, is_enough);
            if !is_enough && rung == family.height() {
                break;
            }
            guesses += 1;
            guess = match guesses {
                1 if rung == family.height() => self.first_guess(family),
                1 | 2 if is_enough => Some(rung.saturating_sub(1)),
                1 | 2 if least.found().is_some() => Some(rung + 1),
                _ => None,
            };
        }
        Ok(())
    }

    /// What is known of a family's rungs from combinations with fewer tricks: what fits there is enough here too.
    fn known_rungs(&self, family: &Family) -> Vec<(u64, bool)> {
        let tried = self.bench.tried.iter();
        let known = tried.filter_map(|tried| {
            let rung = family.rung_of(&tried.combination)?;
            let names = family.at(rung)?;
            let is_enough = tried.fits_with_room();
            let is_same = tried.combination.requests().len() == names.requests().len();
            let is_less = tried.combination.is_within(&names);
            (is_less && (is_enough || is_same)).then_some((rung, is_enough))
        });
        known.collect()
    }

    /// The rung that should do, by what was measured.
    fn first_guess(&self, family: &Family) -> Option<u64> {
        (1..=family.height()).find(|rung| {
            family
                .at(*rung)
                .is_some_and(|combination| self.estimate(&combination) <= self.target_bytes())
        })
    }

    fn is_too_large(&self, combination: &Combination) -> bool {
        self.too_large.iter().any(|all| combination.is_within(all))
    }

    fn may_fit(&self, combination: &Combination, prefix: &Combination) -> bool {
        let has_unknown = combination
            .requests()
            .iter()
            .any(|request| !prefix.has(&request.name) && self.measured(&request.name).is_none());
        let most = self.target_bytes() as f64 * TOLERANCE;
        has_unknown || self.estimate(combination) as f64 <= most
    }

    /// What a combination might have on the card if the savings of its tricks added up.
    fn estimate(&self, combination: &Combination) -> u64 {
        let floor = floor_bytes(self.composition, &self.needed);
        // What was rehearsed with other numbers is the base of what is built on it.
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
            .map(|request| self.saving_of(request) * scale)
            .sum();
        base.saturating_sub(saved as u64).max(floor)
    }

    /// What a trick in this amount saves, by what was measured of it alone.
    fn saving_of(&self, wanted: &Request) -> f64 {
        let Some((measured, bytes)) = self.measured(&wanted.name) else {
            return 0.0;
        };
        let saving = self.saving(bytes) as f64;
        let number = |request: &Request, option| {
            let value = request.value(option);
            value.and_then(|value| value.parse::<f64>().ok())
        };
        match wanted.name.as_str() {
            "checkpointing" => {
                let blocks = self.composition.blocks.max(1) as f64;
                saving * number(wanted, "blocks").map_or(1.0, |count| (count / blocks).min(1.0))
            }
            "chunking" => {
                let part = |request: &Request| {
                    1.0 - 1.0 / number(request, "chunks").unwrap_or(2.0).max(1.0)
                };
                let base = measured.get("chunking").map_or(0.5, part);
                saving / base * part(wanted)
            }
            _ => saving,
        }
    }

    /// A trick as it was rehearsed alone, and what that had.
    fn measured(&self, name: &str) -> Option<(&Combination, u64)> {
        let mut alone = self.alone.iter().filter(|(combination, _)| {
            let requests = combination.requests();
            requests.len() == 1 && requests[0].name == name
        });
        let first = alone.next()?;
        let best = alone.fold(
            first,
            |best, next| if next.1 < best.1 { next } else { best },
        );
        Some((&best.0, best.1))
    }

    fn saving(&self, bytes: u64) -> u64 {
        self.needed.device_bytes.saturating_sub(bytes)
    }

    fn is_worth_it(&self, saving: u64) -> bool {
        saving as f64 >= LEAST_SAVING * self.needed.device_bytes as f64
    }

    fn is_saving(&self, name: &str) -> bool {
        let measured = self.measured(name);
        measured.is_some_and(|(_, bytes)| self.is_worth_it(self.saving(bytes)))
    }

    /// Something that fits is within this.
    fn contains_one_that_fits(&self, combination: &Combination) -> bool {
        let mut fitting = self
            .bench
            .tried
            .iter()
            .filter(|tried| tried.fits_with_room());
        fitting.any(|tried| {
            let same = |request: &Request| combination.get(&request.name) == Some(request);
            tried.combination.requests().iter().all(same)
        })
    }

    /// Something that is built on this fits.
    fn fits_within(&self, prefix: &Combination) -> bool {
        let mut fitting = self
            .bench
            .tried
            .iter()
            .filter(|tried| tried.fits_with_room());
        fitting.any(|tried| prefix.is_within(&tried.combination))
    }

    /// Something that fits, and changes the numbers no more, takes much less time.
    fn is_much_slower(&self, family: &Family, prefix: &Combination) -> bool {
        let mut fitting = self
            .bench
            .tried
            .iter()
            .filter(|tried| tried.fits_with_room());
        let least = self.time(family) / MUCH_LONGER;
        fitting.any(|tried| {
            let is_alike =
                tried.combination.numerics() <= prefix.numerics().max(Numerics::Rounding);
            is_alike && coarse_time(&tried.combination, self.composition.blocks) < least
        })
    }

    /// How long a step takes with the least of a family, roughly.
    fn time(&self, family: &Family) -> f64 {
        let least = family.at(1).unwrap_or_default();
        coarse_time(&least, self.composition.blocks)
    }
}

/// The amount in which a trick is rehearsed first.
fn strongest_of(family: &Family) -> Option<Combination> {
    match family.ladder.as_ref().map(|ladder| ladder.kind) {
        // Two chunks tell what more of them save.
        Some(LadderKind::Chunks) => family.at(1),
        _ => family.at(family.height()),
    }
}
