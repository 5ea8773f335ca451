//! What is known of a value while the code is read: its kind, and whether it hangs on a graph.

use super::structure::{ClassId, UnitId};

/// What can be said of a property: two ways that disagree leave it open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Truth {
    No,
    Yes,
    #[default]
    Maybe,
}

impl Truth {
    pub fn join(self, other: Self) -> Self {
        if self == other { self } else { Self::Maybe }
    }

    /// True if one of two is: for values that are made of both.
    pub fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Yes, _) | (_, Self::Yes) => Self::Yes,
            (Self::No, Self::No) => Self::No,
            _ => Self::Maybe,
        }
    }

    pub fn is_yes(self) -> bool {
        self == Self::Yes
    }

    pub fn is_no(self) -> bool {
        self == Self::No
    }
}

impl From<bool> for Truth {
    fn from(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }
}

/// What sort of thing a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Kind {
    #[default]
    Unknown,
    /// Not assigned on this way.
    Unset,
    None,
    /// A number or a truth value of Python's own, or something of NumPy's: never on the card.
    Number,
    Text,
    /// A tensor, or what a model returned (which may be several).
    Tensor,
    /// A `torch.nn.Module`; of which class of this file, if of one.
    Module(Option<ClassId>),
    /// A module that computes a loss.
    Criterion,
    Optimizer,
    Scheduler,
    Scaler,
    Loader,
    Dataset,
    StateDict,
    /// What `parameters()` gives.
    Parameters,
    /// A list, a dict or a set; the other properties are those of its elements.
    Container,
    /// A tuple whose elements are known, by its number in the table of tuples.
    Tuple(usize),
    Function(UnitId),
    Class(ClassId),
    /// An object of a class of this file that is not a module.
    Object(ClassId),
    Device,
    Accelerator,
    Tokenizer,
}

/// All that is known of one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Value {
    pub kind: Kind,
    /// Whether autograd can go back from it: keeping it keeps what made it.
    pub graph: Truth,
    /// Whether it is on the card (when there is one).
    pub card: Truth,
    /// Whether it is a single number, such as a loss.
    pub scalar: Truth,
}

impl Value {
    pub const UNKNOWN: Self = Self {
        kind: Kind::Unknown,
        graph: Truth::Maybe,
        card: Truth::Maybe,
        scalar: Truth::Maybe,
    };
    pub const UNSET: Self = Self {
        kind: Kind::Unset,
        ..Self::UNKNOWN
    };

    /// Something that is no tensor and holds none.
    pub const fn plain(kind: Kind) -> Self {
        Self {
            kind,
            graph: Truth::No,
            card: Truth::No,
            scalar: Truth::Maybe,
        }
    }

    pub const fn of(kind: Kind) -> Self {
        Self {
            kind,
            ..Self::UNKNOWN
        }
    }

    pub const fn tensor(graph: Truth, card: Truth, scalar: Truth) -> Self {
        Self {
            kind: Kind::Tensor,
            graph,
            card,
            scalar,
        }
    }

    pub fn number() -> Self {
        Self {
            scalar: Truth::Yes,
            ..Self::plain(Kind::Number)
        }
    }

    pub fn is_tensor(self) -> bool {
        self.kind == Kind::Tensor
    }

    pub fn is_module(self) -> bool {
        matches!(self.kind, Kind::Module(_) | Kind::Criterion)
    }

    /// What is known when either of two values may be there.
    pub fn join(self, other: Self) -> Self {
        match (self.kind, other.kind) {
            (Kind::Unset, _) => other,
            (_, Kind::Unset) => self,
            // `x = None` before a loop says nothing about what the loop puts there.
            (Kind::None, _) => other,
            (_, Kind::None) => self,
            _ => {
                let kind = if self.kind == other.kind {
                    self.kind
                } else if self.is_module() && other.is_module() {
                    Kind::Module(None)
                } else if matches!(
                    (self.kind, other.kind),
                    (Kind::Number, Kind::Tensor) | (Kind::Tensor, Kind::Number)
                ) {
                    // `total = 0` and later `total += loss`: a tensor from the first step on.
                    Kind::Tensor
                } else {
                    Kind::Unknown
                };
                Self {
                    kind,
                    graph: self.graph.join(other.graph),
                    card: self.card.join(other.card),
                    scalar: self.scalar.join(other.scalar),
                }
            }
        }
    }
}
