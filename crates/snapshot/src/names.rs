//! Texts of a snapshot, each kept once: file names, function names, metadata.

use std::collections::HashMap;

use ghostgpu_pickle::SeededState;

/// A handle of a text in [`Names`]. Equal texts have equal handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct NameId(pub u32);

impl NameId {
    /// The empty text.
    pub const EMPTY: Self = Self(0);
}

/// All texts of a snapshot. The first is the empty one.
#[derive(Debug, Clone)]
pub struct Names {
    texts: Vec<Box<str>>,
    ids: HashMap<Box<str>, NameId, SeededState>,
}

impl Default for Names {
    fn default() -> Self {
        let mut names = Self {
            texts: Vec::new(),
            ids: HashMap::default(),
        };
        names.intern("");
        names
    }
}

impl Names {
    /// The text of a handle.
    pub fn text(&self, id: NameId) -> &str {
        self.texts.get(id.0 as usize).map_or("", AsRef::as_ref)
    }

    /// The handle of a text, if the snapshot has it.
    pub fn find(&self, text: &str) -> Option<NameId> {
        self.ids.get(text).copied()
    }

    /// The handle of a text, made if it is new.
    pub fn intern(&mut self, text: &str) -> NameId {
        if let Some(id) = self.ids.get(text) {
            return *id;
        }
        let id = NameId(self.texts.len() as u32);
        self.texts.push(text.into());
        self.ids.insert(text.into(), id);
        id
    }

    pub fn len(&self) -> usize {
        self.texts.len()
    }

    pub fn is_empty(&self) -> bool {
        false
    }
}
