//! The card's memory as a message accounts for it: who has what, and does it add up?

use serde::Serialize;

use crate::amount::Amount;
use crate::finding::{FREE_BELOW_ZERO, Figures, Finding};

/// The parts of a card, in the order in which a picture shows them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Account {
    pub parts: Vec<Part>,
    pub total: Option<Amount>,
    /// Nothing contradicts anything, within what printing rounded away; absent where nothing can
    /// be compared.
    pub adds_up: Option<bool>,
    /// What was compared, and what cannot be true.
    pub remarks: Vec<String>,
    /// What other processes have, as far as they are told apart.
    pub others: Option<Amount>,
    /// Everything but PyTorch's: contexts, libraries, others, where they are not told apart.
    pub outside: Option<Amount>,
    /// The process whose number differs from the one in its own container.
    pub own_pid_elsewhere: Option<u64>,
}

/// A part of the card.
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
    /// This process beside PyTorch: its context, libraries, NCCL.
    Context,
    OtherProcesses,
    /// Context and other processes, not told apart.
    Outside,
    /// Nobody's, by the message.
    Unexplained,
    Free,
}

impl PartName {
    pub fn words(self) -> &'static str {
        match self {
            Self::Allocated => "allocated by tensors",
            Self::Cached => "cached by PyTorch, unused",
            Self::Context => "context and libraries",
            Self::OtherProcesses => "other processes",
            Self::Outside => "context and other processes",
            Self::Unexplained => "not explained",
            Self::Free => "free",
        }
    }
}

/// In a container, the process's own number differs: it is the one that has a little more than PyTorch.
const MOST_CONTEXT_BYTES: u64 = 3 << 30;

/// Less than this is the driver's own.
const DRIVERS_OWN_BYTES: u64 = 700 << 20;

impl Account {
    pub fn of(finding: &Finding) -> Self {
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
        account.add_rest(figures);
        account.add(PartName::Free, figures.free);
        account.contradict(figures);
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

    /// What is neither PyTorch's nor free.
    fn add_rest(&mut self, figures: &Figures) {
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
                self.remarks.push(format!(
                    "{total} in all - {free} free - {reserved} of PyTorch's leaves {rest}: the CUDA \
                     context, libraries, and other processes, if any"
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
        let mut sentence = format!("{own} of this process + {others} of others + {free} free");
        match unexplained {
            Some(rest) if rest.bytes > DRIVERS_OWN_BYTES + rest.off_by => {
                self.add(PartName::Unexplained, Some(rest));
                sentence.push_str(&format!(
                    " is {rest} less than {total}: somebody whom the driver does not name here (another \
                     container, a display) has it"
                ));
            }
            Some(rest) => sentence.push_str(&format!(
                " is {total}, but for {rest} that the driver keeps or rounding hides"
            )),
            None => sentence.push_str(&format!(" is more than {total}")),
        }
        self.remarks.push(sentence);
    }

    /// What this process has on the card, if the message tells, and what the others have.
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
                self.own_pid_elsewhere = Some(own.pid);
                (Some(own.used), sum(Some(own.pid)))
            }
            None => (None, sum(None)),
        }
    }

    /// What cannot be true on a card by itself.
    fn contradict(&mut self, figures: &Figures) {
        let mut say = |sentence: String| {
            self.adds_up = Some(false);
            self.remarks.push(sentence);
        };
        if let (Some(reserved), Some(total)) =
            (figures.reserved.or(figures.allocated), figures.total)
            && reserved.exceeds(total)
        {
            say(format!(
                "PyTorch has {reserved}, and the card only {total}: the Windows driver lends the \
                     machine's memory when the card is full, which is slow, and ends too"
            ));
        }
        if let (Some(allocated), Some(reserved)) = (figures.allocated, figures.reserved)
            && allocated.exceeds(reserved)
        {
            say(format!(
                "{allocated} allocated cannot be more than {reserved} reserved: the text is damaged"
            ));
        }
        if let Some(printed) = figures.text_named(FREE_BELOW_ZERO) {
            say(format!(
                "{printed} free is a number below zero, printed as a huge one: nothing was free"
            ));
        }
        if let (Some(free), Some(total)) = (figures.free, figures.total)
            && free.exceeds(total)
        {
            say(format!(
                "{free} free cannot be more than {total} in all: the text is damaged"
            ));
        }
    }
}
