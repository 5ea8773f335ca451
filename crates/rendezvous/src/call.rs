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
