//! The card's memory as a message accounts for it: who holds what, and whether it adds up.

use serde::Serialize;

use crate::amount::Amount;
use crate::catalogue::Catalogue;
use crate::finding::{FREE_BELOW_ZERO, Figures, Finding};
use crate::say;

/// The parts of a card's memory, in display order.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Account {
    pub parts: Vec<Part>,
    pub total: Option<Amount>,
    /// The figures are consistent within rounding; `None` where nothing can be compared.
    pub adds_up: Option<bool>,
    /// What was compared, and which figures contradict each other.
    pub remarks: Vec<String>,
    /// What other processes hold, where the message names them.
    pub others: Option<Amount>,
    /// Everything outside PyTorch's allocator: contexts, libraries, other processes.
    pub outside: Option<Amount>,
    /// The pid that the driver reports for this process, where a container hides it from the process.
    pub own_host_pid: Option<u64>,
}

/// One part of a card's memory.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    pub name: PartName,
    pub size: Amount,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartName {
    Allocated,
    Cached,
    /// This process outside PyTorch's allocator: context, libraries, NCCL.
    Context,
    OtherProcesses,
    /// Context and other processes together.
    Outside,
    /// Memory in use that the message attributes to no process.
    Unexplained,
    Free,
}

impl PartName {
    pub fn words(self, catalogue: &Catalogue) -> String {
        let id = match self {
            Self::Allocated => "part-allocated",
            Self::Cached => "part-cached",
            Self::Context => "part-context",
            Self::OtherProcesses => "part-other-processes",
            Self::Outside => "part-outside",
            Self::Unexplained => "part-unexplained",
            Self::Free => "part-free",
        };
        say!(catalogue, id)
    }
}

/// A process that holds at most this much more than PyTorch reserved may be this process, whose pid
/// differs inside a container.
const MOST_CONTEXT_BYTES: u64 = 3 << 30;

/// Unattributed memory up to this size belongs to the driver.
const DRIVERS_OWN_BYTES: u64 = 700 << 20;

impl Account {
    pub fn of(finding: &Finding, catalogue: &Catalogue) -> Self {
        if !finding.kind.is_caching_allocator() {
            return Self::default();
        }
        let figures = &finding.figures;
        let mut account = Self {
            total: figures.total,
            ..Self::default()
        };
        account.add(PartName::Allocated, figures.allocated);
        account.add(PartName::Cached, figures.cached);
        account.add_rest(figures, catalogue);
        account.add(PartName::Free, figures.free);
        account.contradict(figures, catalogue);
        account
    }

    fn add(&mut self, name: PartName, size: Option<Amount>) {
        if let Some(size) = size {
            self.parts.push(Part { name, size });
        }
    }

    pub fn part(&self, name: PartName) -> Option<Amount> {
        self.parts
            .iter()
            .find(|part| part.name == name)
            .map(|part| part.size)
    }

    /// Adds what is neither PyTorch's nor free.
    fn add_rest(&mut self, figures: &Figures, catalogue: &Catalogue) {
        let (Some(total), Some(free), Some(reserved)) =
            (figures.total, figures.free, figures.reserved)
        else {
            return;
        };
        let used = total.minus(free);
        self.outside = used.and_then(|used| used.minus(reserved));
        let (own, others) = self.own_and_others(figures, reserved);
        let Some(own) = own else {
            let rest = self.outside;
            self.add(PartName::Outside, rest.filter(|rest| rest.bytes > 0));
            self.adds_up = Some(rest.is_some());
            if let Some(rest) = rest {
                self.remarks.push(say!(
                    catalogue,
                    "sum-leaves",
                    total = total,
                    free = free,
                    reserved = reserved,
                    rest = rest
                ));
            }
            return;
        };
        let context = own.minus(reserved);
        self.others = Some(others);
        self.add(
            PartName::Context,
            context.filter(|context| context.bytes > 0),
        );
        self.add(
            PartName::OtherProcesses,
            Some(others).filter(|others| others.bytes > 0),
        );
        let claimed = own.plus(others);
        let unexplained = used.and_then(|used| used.minus(claimed));
        self.adds_up = Some(context.is_some() && unexplained.is_some());
        let id = match unexplained {
            Some(rest) if rest.bytes > DRIVERS_OWN_BYTES + rest.off_by => {
                self.add(PartName::Unexplained, Some(rest));
                "sum-less"
            }
            Some(_) => "sum-exact",
            None => "sum-more",
        };
        let sentence = say!(
            catalogue,
            id,
            own = own,
            others = others,
            free = free,
            total = total,
            rest = unexplained.unwrap_or_default()
        );
        self.remarks.push(sentence);
    }

    /// What this process holds on the card, if the message tells, and what the others hold.
    fn own_and_others(&mut self, figures: &Figures, reserved: Amount) -> (Option<Amount>, Amount) {
        let sum = |skipped: Option<u64>| {
            let rest = figures
                .processes
                .iter()
                .filter(|each| Some(each.pid) != skipped);
            rest.fold(Amount::default(), |sum, each| sum.plus(each.used))
        };
        if figures.this_process.is_some() {
            return (figures.this_process, sum(None));
        }
        let mut candidates: Vec<_> = figures
            .processes
            .iter()
            .filter(|each| {
                let more = each.used.minus(reserved);
                more.is_some_and(|more| more.bytes <= MOST_CONTEXT_BYTES)
            })
            .collect();
        candidates.sort_by_key(|each| (each.used.bytes, each.pid));
        match candidates.first() {
            Some(own) => {
                self.own_host_pid = Some(own.pid);
                (Some(own.used), sum(Some(own.pid)))
            }
            None => (None, sum(None)),
        }
    }

    /// Adds a remark for every figure that contradicts another.
    fn contradict(&mut self, figures: &Figures, catalogue: &Catalogue) {
        let mut tell = |sentence: String| {
            self.adds_up = Some(false);
            self.remarks.push(sentence);
        };
        if let (Some(reserved), Some(total)) =
            (figures.reserved.or(figures.allocated), figures.total)
            && reserved.exceeds(total)
        {
            tell(say!(
                catalogue,
                "holds-more-than-card",
                reserved = reserved,
                total = total
            ));
        }
        if let (Some(allocated), Some(reserved)) = (figures.allocated, figures.reserved)
            && allocated.exceeds(reserved)
        {
            tell(say!(
                catalogue,
                "allocated-over-reserved",
                allocated = allocated,
                reserved = reserved
            ));
        }
        if let Some(printed) = figures.text_named(FREE_BELOW_ZERO) {
            tell(say!(catalogue, "free-negative", printed = printed));
        }
        if let (Some(free), Some(total)) = (figures.free, figures.total)
            && free.exceeds(total)
        {
            tell(say!(
                catalogue,
                "free-over-total",
                free = free,
                total = total
            ));
        }
    }
}
