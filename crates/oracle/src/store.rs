//! Answers that outlive the run: one small file per operation graph.
//!
//! A file grows by one line for each answer. A search through cuDNN's engines asks thousands of
//! questions, dozens about one graph, so writing the others again with each would take longer than the
//! answers do.

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

/// One line of a file. Two runs may write at the same time, so lines come in any order, or twice.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    /// Kept to tell apart graphs whose file names collide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    graph: Option<Node>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
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
        let text = fs::read(&path).unwrap_or_default();
        let mut graphs = Vec::new();
        let mut answers = BTreeMap::new();
        // What is missing or damaged is only a question to be asked again.
        let lines = text.split(|&byte| byte == b'\n');
        for line in lines.filter_map(|line| serde_json::from_slice::<Line>(line).ok()) {
            graphs.extend(line.graph);
            answers.extend(line.answers);
        }
        if graphs.is_empty() || graphs.iter().any(|other| other != graph) {
            // Never append to a file that is unreadable or belongs to another graph.
            let _ = fs::remove_file(path);
            return BTreeMap::new();
        }
        answers
    }

    /// Adds one answer to what is known about this graph. A store that cannot be written stays as it was.
    pub fn add(&self, graph: &Node, question: &Question, answer: &Answer) {
        let (Some(folder), Some(path)) = (&self.folder, self.path(graph)) else {
            return;
        };
        let line = Line {
            graph: (!path.exists()).then(|| graph.clone()),
            answers: vec![(question.clone(), answer.clone())],
        };
        let Ok(mut text) = serde_json::to_vec(&line) else {
            return;
        };
        // At the beginning too: the last line may be half of one, left by a process that was ended.
        text.insert(0, b'\n');
        text.push(b'\n');
        // One write at the end of the file: lines of two processes do not mix.
        let append = || fs::OpenOptions::new().append(true).create(true).open(&path);
        let _ = append()
            .or_else(|_| fs::create_dir_all(folder).and_then(|()| append()))
            .and_then(|mut file| file.write_all(&text));
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

    fn question(engine: i64) -> Question {
        Question::Plan {
            engine,
            knobs: vec![(2, 1)],
            sm_target: None,
        }
    }

    fn answer(workspace_bytes: i64) -> Answer {
        Answer::Plan(PlanAnswer {
            status: 0,
            workspace_bytes,
        })
    }

    fn store(folder: &Path) -> Store {
        Store::new(Some(folder), 91900, "sm90")
    }

    fn with_one_answer(folder: &Path) -> Store {
        let store = store(folder);
        store.add(&graph(15), &question(62), &answer(4096));
        store
    }

    fn one_answer() -> BTreeMap<Question, Answer> {
        BTreeMap::from([(question(62), answer(4096))])
    }

    #[test]
    fn answers_are_found_again_by_a_later_run() {
        let folder = tempfile::tempdir().unwrap();
        with_one_answer(folder.path()).add(&graph(15), &question(63), &answer(0));
        let later = store(folder.path());
        let expected = BTreeMap::from([(question(62), answer(4096)), (question(63), answer(0))]);
        assert_eq!(later.load(&graph(15)), expected);
        assert!(later.load(&graph(16)).is_empty());
    }

    #[test]
    fn another_card_or_version_knows_nothing() {
        let folder = tempfile::tempdir().unwrap();
        with_one_answer(folder.path());
        for (version, card) in [(91900, "sm80"), (91400, "sm90")] {
            let other = Store::new(Some(folder.path()), version, card);
            assert!(other.load(&graph(15)).is_empty());
        }
    }

    #[test]
    fn a_damaged_file_is_a_question_to_ask_again() {
        let folder = tempfile::tempdir().unwrap();
        let store = with_one_answer(folder.path());
        fs::write(store.path(&graph(15)).unwrap(), b"{\"graph\":").unwrap();
        assert!(store.load(&graph(15)).is_empty());
        store.add(&graph(15), &question(62), &answer(4096));
        assert_eq!(store.load(&graph(15)), one_answer());
    }

    #[test]
    fn a_line_that_was_cut_off_costs_only_its_own_answer() {
        let folder = tempfile::tempdir().unwrap();
        let store = with_one_answer(folder.path());
        let path = store.path(&graph(15)).unwrap();
        let mut text = fs::read(&path).unwrap();
        text.extend_from_slice(b"\n{\"answers\":[[{\"pl");
        fs::write(&path, text).unwrap();
        store.add(&graph(15), &question(63), &answer(0));
        let expected = BTreeMap::from([(question(62), answer(4096)), (question(63), answer(0))]);
        assert_eq!(store.load(&graph(15)), expected);
    }

    #[test]
    fn a_file_with_all_answers_in_one_line_is_read_too() {
        let folder = tempfile::tempdir().unwrap();
        let store = with_one_answer(folder.path());
        let line = Line {
            graph: Some(graph(15)),
            answers: one_answer().into_iter().collect(),
        };
        let path = store.path(&graph(15)).unwrap();
        fs::write(path, serde_json::to_vec(&line).unwrap()).unwrap();
        assert_eq!(store.load(&graph(15)), one_answer());
    }

    #[test]
    fn a_file_of_another_graph_with_the_same_name_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let store = with_one_answer(folder.path());
        let path = |kind| store.path(&graph(kind)).unwrap();
        fs::rename(path(15), path(16)).unwrap();
        assert!(store.load(&graph(16)).is_empty());
    }
}
