//! From a log to its explanation: what failed, in which situation, and what to do.

use serde::Serialize;

use crate::account::Account;
use crate::advice::{Advice, Unhelpful, advice, unhelpful};
use crate::catalogue::{Catalogue, Language};
use crate::finding::Finding;
use crate::program::{Purpose, Tool, purpose, tool};
use crate::ranks::{Ranks, ranks};
use crate::reader::Log;
use crate::situation::{Reasoned, Stage, situations, stage};

/// The explanation of a log.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// The failure that is explained.
    pub finding: Finding,
    pub account: Account,
    /// The main situation first, then others that also apply.
    pub situations: Vec<Reasoned>,
    pub stage: Option<Stage>,
    /// What the program was for, and which it was where that is known.
    pub purpose: Purpose,
    pub tool: Option<Tool>,
    pub advice: Vec<Advice>,
    pub does_not_help: Vec<Unhelpful>,
    pub ranks: Option<Ranks>,
    /// The other failures in the log, in log order.
    pub others: Vec<Finding>,
}

/// Explains the most informative failure, in English; `None` if the log has none.
pub fn explain(log: &Log) -> Option<Explanation> {
    explain_on(log, |_| None, Language::English.catalogue())
}

/// The same in another language, and with the card's name in commands, where `card` knows it of a failure.
pub fn explain_on(
    log: &Log,
    card: impl FnOnce(&Finding) -> Option<String>,
    catalogue: &Catalogue,
) -> Option<Explanation> {
    let main = main_finding(log)?;
    let finding = log.findings.get(main)?.clone();
    let account = Account::of(&finding, catalogue);
    let situations = situations(&finding, &account, log, catalogue);
    let others = log.findings.iter().enumerate();
    Some(Explanation {
        advice: advice(
            &finding,
            &account,
            &situations,
            log,
            card(&finding),
            catalogue,
        ),
        does_not_help: unhelpful(&finding, &situations, catalogue),
        stage: stage(&finding, log),
        purpose: purpose(&finding, log),
        tool: tool(&finding, log),
        ranks: ranks(log, &finding),
        others: others
            .filter(|(index, _)| *index != main)
            .map(|(_, other)| other.clone())
            .collect(),
        finding,
        account,
        situations,
    })
}

/// The first of the most informative findings that has a traceback, else the first of them.
///
/// A finding without a traceback was often caught; one with a traceback ended the program.
fn main_finding(log: &Log) -> Option<usize> {
    let weight = log
        .findings
        .iter()
        .map(|finding| finding.kind.weight())
        .max()?;
    let strongest = || {
        let findings = log.findings.iter().enumerate();
        findings.filter(move |(_, finding)| finding.kind.weight() == weight)
    };
    let first_ending = strongest().find(|(_, finding)| finding.traceback.is_some());
    let (index, first) = first_ending.or_else(|| strongest().next())?;
    // TensorRT and others first say that memory ran out, and how much was requested in the next line.
    let says_more = strongest().find(|(_, finding)| {
        finding.kind == first.kind
            && finding.writer == first.writer
            && finding.figures.requested.is_some()
            && finding.line <= first.line + 12
    });
    match says_more {
        Some((more, _)) if first.figures.requested.is_none() => Some(more),
        _ => Some(index),
    }
}
