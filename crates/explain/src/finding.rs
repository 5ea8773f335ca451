//! What was found in a log: failures for want of memory, each with its figures.

use serde::Serialize;

use crate::amount::Amount;
use crate::clean::Writer;
use crate::kind::Kind;
use crate::progress::Progress;
use crate::traceback::Traceback;

/// One failure, however often the log repeats it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    pub kind: Kind,
    pub writer: Writer,
    /// The line on which it stands first, from 1.
    pub line: u64,
    /// On how many lines the same text stands.
    pub times: u64,
    /// The message, put together again where it was wrapped.
    pub text: String,
    pub figures: Figures,
    /// The releases whose wording this is.
    pub wording: Option<&'static str>,
    pub traceback: Option<Traceback>,
    /// How far the training had come.
    pub progress: Option<Progress>,
}

/// The amounts that a message names. What it does not name is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Figures {
    /// The number of the card, as the process counts them.
    pub device: Option<u32>,
    pub asked: Option<Amount>,
    pub total: Option<Amount>,
    /// What the driver had left.
    pub free: Option<Amount>,
    /// The process's own limit, by a fraction of the card.
    pub allowed: Option<Amount>,
    /// In use by tensors.
    pub allocated: Option<Amount>,
    /// What PyTorch had from the driver: allocated and cached.
    pub reserved: Option<Amount>,
    /// Reserved, but not allocated.
    pub cached: Option<Amount>,
    pub private_pools: Option<Amount>,
    /// Everything that this process had on the card, with its context.
    pub this_process: Option<Amount>,
    /// Other processes on the card.
    pub processes: Vec<ProcessUse>,
    /// Figures that only some messages have.
    pub more: Vec<NamedFigure>,
}

/// The name of the figure that says whose allocator it was.
pub const LIBRARY: &str = "library";

/// The name of what was printed for the free memory where that cannot be an amount.
pub const FREE_BELOW_ZERO: &str = "free, as printed";

/// What a process has on the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessUse {
    pub pid: u64,
    pub used: Amount,
}

/// A figure with its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NamedFigure {
    pub name: &'static str,
    #[serde(flatten)]
    pub value: FigureValue,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureValue {
    Amount(Amount),
    Count(u64),
    Text(String),
}

impl Figures {
    /// Fills in what follows from the rest: of allocated, reserved and cached, two give the third.
    pub fn complete(mut self) -> Self {
        match (self.allocated, self.reserved, self.cached) {
            (Some(allocated), Some(reserved), None) => self.cached = reserved.minus(allocated),
            (Some(allocated), None, Some(cached)) => self.reserved = Some(allocated.plus(cached)),
            _ => {}
        }
        self
    }

    pub fn add(&mut self, name: &'static str, value: FigureValue) {
        self.more.push(NamedFigure { name, value });
    }

    pub fn amount_named(&self, name: &str) -> Option<Amount> {
        self.more.iter().find_map(|figure| match &figure.value {
            FigureValue::Amount(amount) if figure.name == name => Some(*amount),
            _ => None,
        })
    }

    pub fn text_named(&self, name: &str) -> Option<&str> {
        self.more.iter().find_map(|figure| match &figure.value {
            FigureValue::Text(text) if figure.name == name => Some(text.as_str()),
            _ => None,
        })
    }

    pub fn count_named(&self, name: &str) -> Option<u64> {
        self.more.iter().find_map(|figure| match &figure.value {
            FigureValue::Count(count) if figure.name == name => Some(*count),
            _ => None,
        })
    }

    /// Names nothing at all.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
