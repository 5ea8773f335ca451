//! Answers that outlive the run: one small file per operation graph.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::protocol::{Answer, Node, Question};

/// A folder of answers of one cuDNN version about one kind of card.
#[derive(Debug)]
pub struct Store {
    folder: Option<PathBuf>,
}

/// Everything known about one graph.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    /// Kept to tell apart graphs whose file names collide.
    graph: Node,
    answers: Vec<(Question, Answer)>,
}

impl Store {
    /// `kind_of_card` must name everything about the card that the answers depend on.
    pub fn new(root: Option<&Path>, version: usize, kind_of_card: &str) -> Self {
        let folder = root.map(|root| root.join(format!("cudnn-{version}-{kind_of_card}")));
        Self { folder }
    }

    /// What earlier runs learned about this graph.
    pub fn load(&self, graph: &Node) -> BTreeMap<Question, Answer> {
        let Some(path) = self.path(graph) else {
            return BTreeMap::new();
        };
        // A file that is missing or damaged is only a question to be asked again.
        let record = fs::read(path)
            .ok()
            .and_then(|text| serde_json::from_slice::<Record>(&text).ok());
        match record {
            Some(record) if record.graph == *graph => record.answers.into_iter().collect(),
            _ => BTreeMap::new(),
        }
    }

    /// Replaces what is known about this graph. A store that cannot be written stays as it was.
    pub fn save(&self, graph: &Node, answers: &BTreeMap<Question, Answer>) {
        let (Some(folder), Some(path)) = (&self.folder, self.path(graph)) else {
            return;
        };
        let record = Record {
            graph: graph.clone(),
            answers: answers
                .iter()
                .map(|(question, answer)| (question.clone(), answer.clone()))
                .collect(),
        };
        let temporary = folder.join(format!(".{}.tmp", std::process::id()));
        let written = fs::create_dir_all(folder)
            .and_then(|()| fs::File::create(&temporary))
            .and_then(|mut file| file.write_all(&serde_json::to_vec(&record)?))
            .and_then(|()| fs::rename(&temporary, path));
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
    }

    fn path(&self, graph: &Node) -> Option<PathBuf> {
        let text = serde_json::to_vec(graph).ok()?;
        Some(
            self.folder
                .as_ref()?
                .join(format!("{:016x}.json", fnv1a(&text))),
        )
    }
}

/// The FNV-1a hash: the same on every machine and in every version of Rust.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::PlanAnswer;

    fn graph(kind: i32) -> Node {
        Node {
            kind,
            attributes: Vec::new(),
        }
    }

    fn one_answer() -> BTreeMap<Question, Answer> {
        let question = Question::Plan {
            engine: 62,
            knobs: vec![(2, 1)],
            sm_target: None,
        };
        let answer = Answer::Plan(PlanAnswer {
            status: 0,
            workspace_bytes: 4096,
        });
        BTreeMap::from([(question, answer)])
    }

    #[test]
    fn an_answer_is_found_again_by_a_later_run() {
        let folder = tempfile::tempdir().unwrap();
        Store::new(Some(folder.path()), 91900, "sm90").save(&graph(15), &one_answer());
        let later = Store::new(Some(folder.path()), 91900, "sm90");
        assert_eq!(later.load(&graph(15)), one_answer());
        assert!(later.load(&graph(16)).is_empty());
    }

    #[test]
    fn another_card_or_version_knows_nothing() {
        let folder = tempfile::tempdir().unwrap();
        Store::new(Some(folder.path()), 91900, "sm90").save(&graph(15), &one_answer());
        for (version, card) in [(91900, "sm80"), (91400, "sm90")] {
            let other = Store::new(Some(folder.path()), version, card);
            assert!(other.load(&graph(15)).is_empty());
        }
    }

    #[test]
    fn a_damaged_file_is_a_question_to_ask_again() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(Some(folder.path()), 91900, "sm90");
        store.save(&graph(15), &one_answer());
        fs::write(store.path(&graph(15)).unwrap(), b"{\"graph\":").unwrap();
        assert!(store.load(&graph(15)).is_empty());
    }
}
