//! The question that cuFFT is asked: how large is the work area of this plan?

use crate::question::joined;
use crate::{Question, descriptions::data_type};

/// `cufftXtMakePlanMany`.
pub const MAKE_PLAN: &str = "cufftXtMakePlanMany";

/// What the plan answers with.
pub const WORK_BYTES: &str = "work_bytes";

/// How one side of a transform lies in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    /// The sizes that the data is embedded in; `None`: it is packed, and strides are ignored.
    pub embedded: Option<Vec<i64>>,
    pub stride: i64,
    pub distance: i64,
    /// `cudaDataType`
    pub element: i32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub sizes: Vec<i64>,
    pub input: Side,
    pub output: Side,
    pub batch: i64,
    /// `cudaDataType` in which it is computed.
    pub execution: i32,
}

impl Plan {
    pub fn question(&self) -> Question {
        let mut question = Question::new(MAKE_PLAN);
        question
            .add("n", joined(&self.sizes))
            .add("batch", self.batch)
            .add("from", self.input.words())
            .add("to", self.output.words())
            .add("in", data_type(self.execution));
        question
    }
}

impl Side {
    fn words(&self) -> String {
        let element = data_type(self.element);
        match &self.embedded {
            None => format!("{element}:packed"),
            Some(sizes) => format!(
                "{element}:{}/{}/{}",
                joined(sizes),
                self.stride,
                self.distance
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_put_into_words() {
        let plan = Plan {
            sizes: vec![256, 256],
            input: Side {
                embedded: Some(vec![256, 256]),
                stride: 1,
                distance: 65536,
                element: 0,
            },
            output: Side {
                embedded: None,
                stride: 1,
                distance: 0,
                element: 4,
            },
            batch: 8,
            execution: 4,
        };
        assert_eq!(
            plan.question().arguments,
            "n=256x256 batch=8 from=f32:256x256/1/65536 to=c32:packed in=c32"
        );
    }
}
