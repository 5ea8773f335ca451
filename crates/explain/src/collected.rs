//! Findings as they arrive: a repeated one is counted, not kept again.

use std::collections::BTreeMap;

use crate::clean::Writer;
use crate::finding::Finding;

/// The most distinct findings that are kept: the first ones, and the last.
const MOST: usize = 256;

#[derive(Debug, Default)]
pub struct Collected {
    findings: Vec<Finding>,
    left_out: u64,
    /// How far each writer's messages have been read.
    read_until: BTreeMap<Writer, (u64, usize)>,
}

impl Collected {
    /// Adds a finding, unless it or a later one of its writer has been added before.
    pub fn add(&mut self, place: (u64, usize), finding: Finding) {
        let until = self.read_until.get(&finding.writer);
        if until.is_some_and(|until| place <= *until) {
            return;
        }
        self.read_until.insert(finding.writer.clone(), place);
        let is_same = |known: &&mut Finding| {
            known.kind == finding.kind
                && known.writer == finding.writer
                && known.figures == finding.figures
        };
        if let Some(known) = self.findings.iter_mut().rev().find(is_same) {
            known.times += 1;
            if known.traceback.is_none() {
                known.traceback = finding.traceback;
            }
            return;
        }
        if self.findings.len() >= MOST {
            self.findings.pop();
            self.left_out += 1;
        }
        self.findings.push(finding);
    }

    pub fn count_unread(&mut self) {
        self.left_out += 1;
    }

    /// In the order of the log.
    pub fn finish(mut self) -> (Vec<Finding>, u64) {
        self.findings.sort_by_key(|finding| finding.sequence);
        (self.findings, self.left_out)
    }
}
