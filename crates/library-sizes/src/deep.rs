//! What cuDNN is asked: engines and workspaces of operation graphs, sizes of recurrent networks.

use crate::Question;

/// Which configurations do heuristics propose for a graph? Not a function of cuDNN's: the answer is
/// an attribute of a descriptor.
const HEURISTICS: &str = "cudnn.heuristics";

/// How much workspace does an engine with these knobs take for a graph?
const WORKSPACE: &str = "cudnn.workspace";

/// What the answer to that is called.
pub const WORKSPACE_BYTES: &str = "workspace_bytes";

/// What the answer about heuristics is called: configurations in words, separated by `|`.
pub const CONFIGS: &str = "configs";

pub fn heuristics_question(graph_words: &str, mode: i64) -> Question {
    let mut question = Question::new(HEURISTICS);
    question.add("mode", mode).add("graph", graph_words);
    question
}

pub fn workspace_question(graph_words: &str, engine: i64, knobs: &[(i32, i64)]) -> Question {
    let mut question = Question::new(WORKSPACE);
    question
        .add("engine", engine)
        .add("knobs", pairs(knobs))
        .add("graph", graph_words);
    question
}

/// One proposed configuration: an engine, its knobs with their values, and its two kinds of notes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    pub engine: i64,
    pub knobs: Vec<(i32, i64)>,
    pub numerical_notes: Vec<i32>,
    pub behavior_notes: Vec<i32>,
}

impl Config {
    /// `engine;knob:value,…;numerical notes;behaviour notes`
    pub fn words(&self) -> String {
        let listed = |notes: &[i32]| {
            let notes: Vec<String> = notes.iter().map(i32::to_string).collect();
            notes.join(",")
        };
        format!(
            "{};{};{};{}",
            self.engine,
            pairs(&self.knobs),
            listed(&self.numerical_notes),
            listed(&self.behavior_notes)
        )
    }

    /// A list of configurations in words, read back.
    pub fn read_list(text: &str) -> Option<Vec<Self>> {
        text.split('|')
            .filter(|words| !words.is_empty())
            .map(Self::read)
            .collect()
    }

    fn read(words: &str) -> Option<Self> {
        let mut parts = words.split(';');
        let mut part = || parts.next();
        let engine = part()?.parse().ok()?;
        let knobs = listed(part()?, |one| {
            let (knob, value) = one.split_once(':')?;
            Some((knob.parse().ok()?, value.parse().ok()?))
        })?;
        let number = |one: &str| one.parse().ok();
        Some(Self {
            engine,
            knobs,
            numerical_notes: listed(part()?, number)?,
            behavior_notes: listed(part()?, number)?,
        })
    }
}

fn listed<T>(text: &str, read: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    text.split(',')
        .filter(|one| !one.is_empty())
        .map(read)
        .collect()
}

fn pairs(knobs: &[(i32, i64)]) -> String {
    let mut knobs = knobs.to_vec();
    knobs.sort_unstable();
    let knobs: Vec<String> = knobs
        .iter()
        .map(|(knob, value)| format!("{knob}:{value}"))
        .collect();
    knobs.join(",")
}

/// What `cudnnSetRNNDescriptor_v8` is told; numbers are cuDNN's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    pub algorithm: i32,
    pub cell: i32,
    pub bias: i32,
    pub direction: i32,
    pub input_mode: i32,
    pub data_type: i32,
    pub math_precision: i32,
    pub math_type: i32,
    pub input: i32,
    pub hidden: i32,
    pub projection: i32,
    pub layers: i32,
    pub flags: u32,
    pub has_dropout: bool,
}

impl Network {
    pub fn words(&self) -> String {
        format!(
            "algorithm{},cell{},bias{},direction{},mode{},type{},precision{},math{},{}->{}->{},\
             layers{},flags{},{}",
            self.algorithm,
            self.cell,
            self.bias,
            self.direction,
            self.input_mode,
            self.data_type,
            self.math_precision,
            self.math_type,
            self.input,
            self.hidden,
            self.projection,
            self.layers,
            self.flags,
            if self.has_dropout { "dropout" } else { "plain" }
        )
    }
}

/// What `cudnnSetRNNDataDescriptor` is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sequences {
    pub data_type: i32,
    pub layout: i32,
    pub longest: i32,
    pub batch: i32,
    pub vector: i32,
    /// Time steps of all sequences together.
    pub total_steps: i64,
}

impl Sequences {
    pub fn words(&self) -> String {
        format!(
            "type{},layout{},longest{},batch{},vector{},steps{}",
            self.data_type, self.layout, self.longest, self.batch, self.vector, self.total_steps
        )
    }
}

/// Calls `$define!` with the functions that are asked for sizes, as
/// [`sparse_questions`](crate::sparse_questions) does.
#[macro_export]
macro_rules! recurrent_questions {
    ($define:ident) => {
        $define! {
            "cuDNN";
            (
                skip handle: Object, object network: Object, key mode: i32,
                object sequences: Object, out workspace_bytes: *mut usize,
                out reserve_bytes: *mut usize
            ) => cudnnGetRNNTempSpaceSizes;
            (skip handle: Object, object network: Object, out weight_bytes: *mut usize)
                => cudnnGetRNNWeightSpaceSize;
            (skip handle: Object, out state_bytes: *mut usize) => cudnnDropoutGetStatesSize;
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations_are_read_as_they_were_written() {
        let configs = [
            Config {
                engine: 67,
                knobs: vec![(0, -1), (25, 3)],
                numerical_notes: vec![0, 5],
                behavior_notes: Vec::new(),
            },
            Config {
                engine: 0,
                ..Config::default()
            },
        ];
        let text = format!("{}|{}", configs[0].words(), configs[1].words());
        assert_eq!(text, "67;0:-1,25:3;0,5;|0;;;");
        assert_eq!(Config::read_list(&text).as_deref(), Some(&configs[..]));
        assert_eq!(Config::read_list("67;x;;"), None);
    }

    #[test]
    fn the_order_of_knobs_does_not_matter() {
        let first = workspace_question("15{}", 67, &[(3, 1), (0, -1)]);
        let second = workspace_question("15{}", 67, &[(0, -1), (3, 1)]);
        assert_eq!(first, second);
        assert_eq!(first.arguments, "engine=67 knobs=0:-1,3:1 graph=15{}");
    }
}
