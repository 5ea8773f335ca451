//! The corpus, and a log of it.

#![allow(dead_code, reason = "each test file uses a part of it")]

use ghostgpu_explain::{Log, Reader};
use serde::Deserialize;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    pub source: String,
    pub text: String,
    pub kind: String,
    pub situation: String,
    pub asked: Option<String>,
    pub total: Option<String>,
    pub free: Option<String>,
    pub allowed: Option<String>,
    pub allocated: Option<String>,
    pub reserved: Option<String>,
    pub cached: Option<String>,
    pub private_pools: Option<String>,
    pub this_process: Option<String>,
    pub device: Option<u32>,
    pub processes: Option<usize>,
    pub wording: Option<String>,
    pub adds_up: Option<bool>,
    pub rank: Option<u32>,
    pub findings: Option<usize>,
    pub place: Option<String>,
    /// A situation that applies besides the main one.
    pub also: Option<String>,
    /// Which memory ran out.
    pub memory: Option<String>,
    /// What the program was for.
    pub purpose: Option<String>,
    /// At least one of these words stands in the advice.
    #[serde(default)]
    pub helps: Vec<String>,
    /// None of these words stands in the advice.
    #[serde(default)]
    pub never: Vec<String>,
}

#[derive(Deserialize)]
struct Corpus {
    message: Vec<Expected>,
}

pub fn corpus() -> Vec<Expected> {
    let corpus: Corpus = toml::from_str(include_str!("../corpus.toml")).expect("the corpus");
    corpus.message
}

/// Texts that were not used to build the recognition, in three rounds.
pub fn heldout() -> Vec<Expected> {
    let rounds = [
        include_str!("../heldout.toml"),
        include_str!("../heldout_second.toml"),
        include_str!("../heldout_third.toml"),
    ];
    let rounds = rounds.map(|text| toml::from_str::<Corpus>(text).expect("the texts"));
    rounds.into_iter().flat_map(|round| round.message).collect()
}

/// Reads a log in chunks of this size.
pub fn read(bytes: &[u8], chunk: usize) -> Log {
    let mut reader = Reader::default();
    for chunk in bytes.chunks(chunk.max(1)) {
        reader.push(chunk);
    }
    reader.finish()
}

/// An amount as the corpus writes it.
pub fn bytes_of(text: &str) -> u64 {
    let (number, unit) = text.split_once(' ').expect("a number and a unit");
    let unit: f64 = match unit {
        "bytes" => 1.0,
        "KiB" | "KB" => 1024.0,
        "MiB" | "MB" => 1_048_576.0,
        "GiB" | "GB" => 1_073_741_824.0,
        other => panic!("unknown unit {other}"),
    };
    (number.parse::<f64>().expect("a number") * unit).round() as u64
}
