//! Several ranks in one log: which failed, which was first, and whether their figures differ.

use serde::Serialize;

use crate::clean::Writer;
use crate::finding::Finding;
use crate::kind::Kind;
use crate::reader::Log;

/// All ranks that failed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ranks {
    /// In the order in which they failed.
    pub failed: Vec<RankFailure>,
    /// Their figures differ.
    pub differ: bool,
}

/// The failure of one rank.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RankFailure {
    pub name: String,
    pub kind: Kind,
    pub line: u64,
    pub requested_bytes: Option<u64>,
    pub allocated_bytes: Option<u64>,
    pub free_bytes: Option<u64>,
    pub device: Option<u32>,
}

/// The ranks that failed; `None` where only one process did.
pub fn ranks(log: &Log, main: &Finding) -> Option<Ranks> {
    let mut failed: Vec<(&Finding, RankFailure)> = Vec::new();
    for finding in &log.findings {
        let name = name_of(finding);
        if failed.iter().any(|(_, known)| known.name == name)
            || finding.kind.weight() < main.kind.weight()
        {
            continue;
        }
        let bytes = |amount: Option<crate::amount::Amount>| amount.map(|amount| amount.bytes);
        let figures = &finding.figures;
        failed.push((
            finding,
            RankFailure {
                name,
                kind: finding.kind,
                line: finding.line,
                requested_bytes: bytes(figures.requested),
                allocated_bytes: bytes(figures.allocated),
                free_bytes: bytes(figures.free),
                device: figures.device,
            },
        ));
    }
    if failed.len() < 2 {
        return None;
    }
    let first = failed.first().map(|(finding, _)| finding.figures.clone())?;
    let same = |finding: &Finding| {
        finding.figures.requested == first.requested && finding.figures.allocated == first.allocated
    };
    Some(Ranks {
        differ: !failed.iter().all(|(finding, _)| same(finding)),
        failed: failed.into_iter().map(|(_, failure)| failure).collect(),
    })
}

/// The rank where the log names ranks, else the card.
fn name_of(finding: &Finding) -> String {
    match (&finding.writer, finding.figures.device) {
        (Writer::Unnamed, Some(device)) => format!("GPU {device}"),
        (writer, _) => writer.name(),
    }
}
