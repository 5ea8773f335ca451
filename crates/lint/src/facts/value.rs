//! What is known about a value: its kind, and whether it has a graph.

use super::structure::{ClassId, UnitId};

/// A property that is yes, no or open; paths that disagree leave it open.
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

    /// True if either is: for values computed from both.
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

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Kind {
    #[default]
    Unknown,
    /// Not assigned on this path.
    Unset,
    None,
    /// A Python number or bool, or a NumPy object: never on the card.
    Number,
    Text,
    /// A tensor, or the output of a model (which may be several).
    Tensor,
    /// A `torch.nn.Module`, with its class if that is in this file.
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
    /// A tuple with known elements, as an index into the table of tuples.
    Tuple(usize),
    /// What a function with `yield` gives: the elements are what it yields.
    Generator(UnitId),
    Function(UnitId),
    Class(ClassId),
    /// An object of a class in this file that is not a module.
    Object(ClassId),
    Device,
    Accelerator,
    Tokenizer,
}

/// Everything known about a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Value {
    pub kind: Kind,
    /// Whether it has a graph: keeping it keeps everything it was computed from.
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

    /// Not a tensor, and holds none.
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

    /// What is known when the value may be either of two.
    pub fn join(self, other: Self) -> Self {
        match (self.kind, other.kind) {
            (Kind::Unset, _) => other,
            (_, Kind::Unset) => self,
            // `x = None` before a loop says nothing about what the loop puts there.
            (Kind::None, _) => other,
            (_, Kind::None) => self,
            // Of a container, the properties are those of any of its elements: where one way adds none,
            // those of the other are still there.
            (Kind::Container, Kind::Container) => Self {
                kind: Kind::Container,
                graph: self.graph.or(other.graph),
                card: self.card.or(other.card),
                scalar: self.scalar.join(other.scalar),
            },
            // `total = 0` and later `total += loss`: a tensor from the first step on.
            (Kind::Number, Kind::Tensor) => Self {
                scalar: self.scalar.join(other.scalar),
                ..other
            },
            (Kind::Tensor, Kind::Number) => Self {
                scalar: self.scalar.join(other.scalar),
                ..self
            },
            _ => {
                let kind = if self.kind == other.kind {
                    self.kind
                } else if self.is_module() && other.is_module() {
                    Kind::Module(None)
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
