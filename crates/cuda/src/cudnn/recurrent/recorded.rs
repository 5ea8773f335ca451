//! Sizes of a recurrent network from a table that the user has recorded.

use ghostgpu_library_sizes::Question;

use crate::library_sizes::users_answer;

pub fn weight_bytes(network_words: &str) -> Option<u64> {
    let answer = users_answer(|| {
        let mut question = Question::new("cudnnGetRNNWeightSpaceSize");
        question.add("network", network_words);
        question
    })?;
    u64::try_from(answer.number("weight_bytes")?).ok()
}

/// Workspace and reserve, as far as they were recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Temporary {
    pub work: Option<u64>,
    pub reserve: Option<u64>,
}

impl Temporary {
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
}

pub fn temporary_bytes(network_words: &str, mode: i32, sequences_words: &str) -> Temporary {
    let answer = users_answer(|| {
        let mut question = Question::new("cudnnGetRNNTempSpaceSizes");
        question
            .add("network", network_words)
            .add("mode", mode)
            .add("sequences", sequences_words);
        question
    });
    let part = |name| {
        let number = answer.as_ref()?.number(name)?;
        u64::try_from(number).ok()
    };
    Temporary {
        work: part("workspace_bytes"),
        reserve: part("reserve_bytes"),
    }
}
