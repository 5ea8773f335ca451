//! What a rank called.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A function of NCCL that needs others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Function {
    AllReduce,
    AllGather,
    ReduceScatter,
    Reduce,
    Broadcast,
    Gather,
    Scatter,
    AllToAll,
    Split,
    Send,
    Receive,
}

impl Function {
    /// As PyTorch calls it.
    const fn title(self) -> &'static str {
        match self {
            Self::AllReduce => "all_reduce",
            Self::AllGather => "all_gather",
            Self::ReduceScatter => "reduce_scatter",
            Self::Reduce => "reduce",
            Self::Broadcast => "broadcast",
            Self::Gather => "gather",
            Self::Scatter => "scatter",
            Self::AllToAll => "all_to_all",
            Self::Split => "split of the group",
            Self::Send => "send",
            Self::Receive => "recv",
        }
    }
}

/// The calls of a rank in one communicator that follow one another, by number: collectives, and messages of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Channel {
    Collectives,
    /// Messages from a rank.
    From(u32),
    /// Messages to a rank.
    To(u32),
}

/// An earlier call of the same rank's that has to be over before another one can begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dependency {
    /// By its name; `None` if it is the communicator of both.
    pub communicator: Option<String>,
    pub channel: Channel,
    pub number: u64,
}

/// The largest message that NCCL is taken to send before its receiver has come. NCCL promises to send none. Over
/// sockets, its release 2.28 took 4 MiB although the receiver had not been called, and not 16 MiB.
const MOST_BUFFERED_BYTES: u64 = 4 << 20;

/// Size of an element of `ncclDataType_t`: four kinds of integers in two signs, then floats.
pub fn element_bytes(data_type: i32) -> usize {
    match data_type {
        2 | 3 | 7 => 4,
        4 | 5 | 8 => 8,
        6 | 9 => 2,
        _ => 1,
    }
}

/// One call of a rank's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    pub function: Function,
    /// Elements, as NCCL counts them.
    pub count: u64,
    /// The number of NCCL's type.
    pub data_type: i32,
    /// The number of NCCL's reduction, where there is one.
    pub operation: Option<i32>,
    /// The root of a collective, or the other side of a message.
    pub root: Option<u32>,
    /// For a split: which part this rank goes to, and its place there.
    pub part: Option<(i32, i32)>,
    /// The line of the script, as `train.py:41`; empty where it is not known.
    pub line: String,
    /// What its stream, or the thread that made the call, has waited for before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<Dependency>,
}

impl Call {
    /// Whether two ranks of a communicator may make these calls together.
    pub fn agrees_with(&self, other: &Self) -> bool {
        self.function == other.function
            && self.count == other.count
            && self.data_type == other.data_type
            && self.operation == other.operation
            && self.root == other.root
    }

    /// Whether this is a message that is sent only as its receiver takes it.
    pub fn needs_receiver(&self) -> bool {
        let bytes = self
            .count
            .saturating_mul(element_bytes(self.data_type) as u64);
        self.function == Function::Send && bytes > MOST_BUFFERED_BYTES
    }

    /// Whether a message was sent as it is received.
    pub fn is_answered_by(&self, sent: &Self) -> bool {
        self.count == sent.count && self.data_type == sent.data_type
    }
}

/// The names of `ncclDataType_t`, as PyTorch calls them.
fn type_name(number: i32) -> String {
    const NAMES: [&str; 12] = [
        "int8",
        "uint8",
        "int32",
        "uint32",
        "int64",
        "uint64",
        "float16",
        "float32",
        "float64",
        "bfloat16",
        "float8_e4m3fn",
        "float8_e5m2",
    ];
    let name = usize::try_from(number)
        .ok()
        .and_then(|number| NAMES.get(number));
    name.map_or_else(|| format!("type {number}"), |name| (*name).to_owned())
}

fn operation_name(number: i32) -> &'static str {
    const NAMES: [&str; 5] = ["sum", "product", "max", "min", "average"];
    let name = usize::try_from(number)
        .ok()
        .and_then(|number| NAMES.get(number));
    name.copied().unwrap_or("an operation of its own")
}

/// `all_reduce (sum) of 4 × float32 at train.py:12`.
impl fmt::Display for Call {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.function.title())?;
        if self.function != Function::Split {
            if let Some(operation) = self.operation {
                write!(formatter, " ({})", operation_name(operation))?;
            }
            write!(
                formatter,
                " of {} × {}",
                self.count,
                type_name(self.data_type)
            )?;
            match (self.function, self.root) {
                (Function::Send, Some(peer)) => write!(formatter, " to rank {peer}")?,
                (Function::Receive | Function::Broadcast | Function::Scatter, Some(root)) => {
                    write!(formatter, " from rank {root}")?;
                }
                (_, Some(root)) => write!(formatter, " to rank {root}")?,
                (_, None) => {}
            }
        }
        if !self.line.is_empty() {
            write!(formatter, " at {}", self.line)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(function: Function) -> Call {
        Call {
            function,
            count: 4,
            data_type: 7,
            operation: None,
            root: None,
            part: None,
            line: "train.py:12".to_owned(),
            after: Vec::new(),
        }
    }

    #[test]
    fn calls_are_told_as_pytorch_names_them() {
        let with = |function, operation, root| Call {
            operation,
            root,
            ..call(function)
        };
        let cases = [
            (
                with(Function::AllReduce, Some(0), None),
                "all_reduce (sum) of 4 × float32 at train.py:12",
            ),
            (
                with(Function::Broadcast, None, Some(3)),
                "broadcast of 4 × float32 from rank 3 at train.py:12",
            ),
            (
                with(Function::Reduce, Some(2), Some(0)),
                "reduce (max) of 4 × float32 to rank 0 at train.py:12",
            ),
            (
                with(Function::Receive, None, Some(1)),
                "recv of 4 × float32 from rank 1 at train.py:12",
            ),
            (
                with(Function::Split, None, None),
                "split of the group at train.py:12",
            ),
        ];
        for (call, words) in cases {
            assert_eq!(call.to_string(), words);
        }
    }

    #[test]
    fn calls_agree_whatever_their_lines_are() {
        let one = call(Function::AllGather);
        let other = |change: fn(&mut Call)| {
            let mut other = one.clone();
            change(&mut other);
            one.agrees_with(&other)
        };
        assert!(other(|call| call.line.clear()));
        assert!(!other(|call| call.count = 5));
        assert!(!other(|call| call.data_type = 4));
        assert!(!other(|call| call.operation = Some(1)));
        assert!(!other(|call| call.root = Some(1)));
        assert!(!other(|call| call.function = Function::AllReduce));
    }
}
