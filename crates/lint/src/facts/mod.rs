//! What the code of one file does (under construction).
use crate::python::Tree;
use crate::source::Source;

/// Everything the rules may ask.
pub struct Facts<'a> {
    pub source: &'a Source,
    pub tree: &'a Tree,
}

impl<'a> Facts<'a> {
    pub fn of(source: &'a Source, tree: &'a Tree) -> Self {
        Self { source, tree }
    }
}
