//! Names and stacks, each stored once; everything else refers to them by number.
//!
//! Number 0 of each list means "unknown" or "none", so that a list is never empty.

/// An index in [`Names::texts`]; 0 is no name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameId(pub u32);

/// An index in [`Names::operators`]; 0 is an unknown one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperatorId(pub u32);

/// An index in [`Names::modules`]; 0 is outside any module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModuleId(pub u32);

/// An index in [`Names::frames`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId(pub u32);

/// An index in [`Names::stacks`]; 0 is no stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackId(pub u32);

/// A module of the script's models.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Module {
    /// `encoder.layer.7.attention`; for a model itself, the name of its class in brackets.
    pub path: String,
    /// `BertAttention`.
    pub class: String,
    /// The most bytes of tensors that a call returned; 0 if unknown.
    pub output_bytes: u64,
}

/// Whose code a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameOwner {
    /// The script and its own modules.
    User,
    /// An installed package that is not PyTorch (`transformers`).
    Package,
    /// PyTorch itself, or Python's library.
    Torch,
    /// C++, or anything that is no Python file.
    Native,
}

/// One frame of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    pub file: String,
    pub line: u32,
    pub function: String,
    pub owner: FrameOwner,
}

/// Everything that has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    pub texts: Vec<String>,
    pub operators: Vec<String>,
    pub modules: Vec<Module>,
    pub frames: Vec<Frame>,
    /// Frames of each stack, innermost first.
    pub stacks: Vec<Vec<FrameId>>,
}

impl Default for Names {
    fn default() -> Self {
        Self {
            texts: vec![String::new()],
            operators: vec![String::new()],
            modules: vec![Module::default()],
            frames: Vec::new(),
            stacks: vec![Vec::new()],
        }
    }
}
