//! Step times of a real H200 and what the same steps had a virtual one do: `ground_truth/h200/tricks`.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;

use flate2::read::GzDecoder;
use ghostgpu_cost::{Direction, Operation, Rates, Work};
use ghostgpu_device::Catalogue;
use serde_json::Value;

/// The models to which the shares of [`ghostgpu_cost::Efficiency`] are fitted.
pub const FITTED: [&str; 2] = ["gpt2", "resnet50"];

/// One case of `ground_truth/harness/launch_equals_rehearsal.py`.
pub struct Recorded {
    /// The model, a slash, and the trick.
    pub name: String,
    pub model: String,
    /// Seconds for a step.
    pub measured: f64,
    pub work: Work,
}

pub fn cases() -> Vec<Recorded> {
    let mut works: BTreeMap<String, Work> = lines("work.jsonl.gz")
        .into_iter()
        .map(|line| {
            let work = serde_json::from_value(line["work"].clone()).expect("work");
            (name_of(&line), work)
        })
        .collect();
    let cases = lines("launched.jsonl").into_iter().filter_map(|line| {
        let name = name_of(&line);
        let (model, _) = name.split_once('/')?;
        Some(Recorded {
            model: model.to_owned(),
            measured: line["seconds_per_step"].as_f64()?,
            work: without_batch(works.remove(&name).expect("recorded work")),
            name,
        })
    });
    cases.collect()
}

pub fn rates() -> Rates {
    let card = Catalogue::builtin().find("h200").expect("a card");
    Rates::of(&card.sheet())
}

fn lines(name: &str) -> Vec<Value> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../ground_truth/h200/tricks");
    let bytes = std::fs::read(folder.join(name)).expect("recorded");
    let mut text = String::new();
    if name.ends_with(".gz") {
        let mut unpacked = GzDecoder::new(bytes.as_slice());
        unpacked.read_to_string(&mut text).expect("gzip");
    } else {
        text = String::from_utf8(bytes).expect("text");
    }
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

fn name_of(line: &Value) -> String {
    line["name"].as_str().expect("a name").to_owned()
}

/// The batch is on the card before the clock starts.
fn without_batch(mut work: Work) -> Work {
    for stretch in &mut work.stretches {
        stretch.operations.retain(|each| {
            !matches!(
                each.operation,
                Operation::Copy {
                    direction: Direction::ToCard,
                    bytes: 38_535_168 | 65_536 | 512 | 256,
                    is_pinned: false,
                }
            )
        });
    }
    work.stretches
        .retain(|stretch| !stretch.operations.is_empty());
    work
}
