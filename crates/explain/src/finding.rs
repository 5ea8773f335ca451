//! What was found in a log: out-of-memory failures, each with its figures.

use serde::Serialize;

use crate::amount::Amount;
use crate::clean::Writer;
use crate::kind::Kind;
use crate::progress::Progress;
use crate::traceback::Traceback;
use crate::wording::Wording;

/// One failure, however often the log repeats it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    pub kind: Kind,
    pub writer: Writer,
    /// The line of its first occurrence, from 1.
    pub line: u64,
    /// The same with lines counted that are escaped in another one: the order of the log.
    #[serde(skip)]
    pub(crate) sequence: u64,
    /// How often the same text occurs.
    pub times: u64,
    /// The message, joined again where it was wrapped.
    pub text: String,
    pub figures: Figures,
    /// The releases that word the message this way.
    pub wording: Option<Wording>,
    pub traceback: Option<Traceback>,
    /// How far the training had got.
    pub progress: Option<Progress>,
}

impl Finding {
    /// PyTorch or its libraries, as far as the message and what stands around it tell.
    pub fn is_pytorch(&self) -> bool {
        self.kind.is_pytorch() && self.figures.text_named(LIBRARY).is_none()
    }

    /// A TPU, which has no pool that could be enlarged.
    pub fn is_on_tpu(&self) -> bool {
        let compiled = self.figures.total.is_some() && self.figures.requested.is_none();
        let text = self.text.to_ascii_lowercase();
        self.kind == Kind::Jax && (compiled || text.contains("that was not possible"))
    }

    /// The traceback goes through PyTorch, or the message names it.
    pub fn mentions_pytorch(&self) -> bool {
        let frames = self.traceback.iter().flat_map(|found| &found.frames);
        let is_torch = |text: &str| text.to_ascii_lowercase().contains("torch");
        is_torch(&self.text) || frames.into_iter().any(|frame| is_torch(&frame.file))
    }
}

/// The figures in a message. What it does not give is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Figures {
    /// The card's index in the process.
    pub device: Option<u32>,
    pub requested: Option<Amount>,
    pub total: Option<Amount>,
    /// Free memory according to the driver.
    pub free: Option<Amount>,
    /// The process's own limit, from a fraction of the card.
    pub allowed: Option<Amount>,
    /// In use by tensors.
    pub allocated: Option<Amount>,
    /// What PyTorch had taken from the driver: allocated and cached.
    pub reserved: Option<Amount>,
    /// Reserved, but not allocated.
    pub cached: Option<Amount>,
    pub private_pools: Option<Amount>,
    /// Everything this process held on the card, including its context.
    pub this_process: Option<Amount>,
    /// Other processes on the card.
    pub processes: Vec<ProcessUse>,
    /// Figures that only some messages give.
    pub more: Vec<NamedFigure>,
}

/// The name of the figure for the library whose allocator failed.
pub const LIBRARY: &str = "library";

/// The name of the figure for free memory that was printed as an impossible amount.
pub const FREE_BELOW_ZERO: &str = "free, as printed";

/// What one process holds on the card.
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
    /// Derives the third of allocated, reserved and cached from the other two.
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

    /// How many figures the message gives.
    pub fn count(&self) -> usize {
        let amounts = [
            self.requested,
            self.total,
            self.free,
            self.allowed,
            self.allocated,
            self.reserved,
            self.cached,
            self.private_pools,
            self.this_process,
        ];
        let amounts = amounts.iter().flatten().count();
        usize::from(self.device.is_some()) + amounts + self.processes.len() + self.more.len()
    }

    /// The message gives no figures.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
