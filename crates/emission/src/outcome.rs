//! The result: an edited script, or the reason why there is none.

use ghostgpu_tricks::Request;

/// A script with tricks written into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    /// The edited script.
    pub text: String,
    /// The diff to the edited script, for `patch -p0`; empty if the script already has everything.
    pub diff: String,
    /// What was done for each trick, in the order in which they were written.
    pub changes: Vec<Change>,
}

/// What was done for a trick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub trick: String,
    /// In a few words: "`fused=True` for AdamW".
    pub what: String,
    /// The script already had it.
    pub was_there: bool,
}

/// Why a trick cannot be written into a script. It can still be launched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{trick} cannot be written into this script: {reason}")]
pub struct NotMechanical {
    pub trick: String,
    pub reason: String,
}

impl NotMechanical {
    /// How to apply the trick without an edit.
    pub fn alternative(&self) -> &'static str {
        "`ghostgpu launch` applies it without a change to the script, with the same flags or `--plan`"
    }
}

/// Why there is no patch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error(transparent)]
    NotMechanical(#[from] NotMechanical),
    /// The script has a syntax error.
    #[error("line {line}: {message}")]
    NotPython { line: usize, message: String },
}

/// What one trick does to one script: edits, which are empty if the script already has it, or a reason against it.
pub(crate) type Outcome = Result<Written, String>;

/// The edits of one trick.
pub(crate) struct Written {
    pub edits: Vec<ghostgpu_lint::Edit>,
    pub what: String,
}

impl Written {
    pub fn new(what: impl Into<String>, edits: Vec<ghostgpu_lint::Edit>) -> Outcome {
        Ok(Self {
            edits,
            what: what.into(),
        })
    }
}

pub(crate) fn not_mechanical(request: &Request, reason: String) -> NotMechanical {
    NotMechanical {
        trick: request.name.clone(),
        reason,
    }
}
