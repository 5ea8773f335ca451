//! Reasons in words, as sentence endings.

use std::fmt::{Display, Formatter, Result};

use ghostgpu_rehearse::Ending;

use crate::fixes::Variant;
use crate::growth::{NoSeries, SetThrough};
use crate::largest_batch::WholeBecause;
use crate::need::UnknownNeed;

/// How the rehearsal with unlimited memory ended: `ended with exit code 1`.
impl Display for UnknownNeed {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Result {
        match self {
            Self::OutOfMemoryToo => formatter.write_str("ran out of memory too"),
            Self::TimedOut => formatter.write_str("did not end in time"),
            Self::NotSimulated => formatter.write_str("stopped at a call that is not simulated"),
            Self::PreloadBlocked => formatter.write_str("did not load the stand-in library"),
            Self::Exception(exception) => write!(formatter, "ended with {exception}"),
            Self::Ended(Ending::Exited(code)) => write!(formatter, "ended with exit code {code}"),
            Self::Ended(Ending::Killed(signal)) => {
                write!(formatter, "was killed by signal {signal}")
            }
        }
    }
}

/// `since the script runs threads (loader)`.
impl Display for WholeBecause {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Result {
        match self {
            Self::Asked => formatter.write_str("because of --no-fork"),
            Self::SeveralCards => formatter.write_str("since there are several cards"),
            Self::Unforkable(because) => write!(formatter, "since {because}"),
            Self::ForkFails(reason) => {
                write!(
                    formatter,
                    "since a forked copy of the script failed: {reason}"
                )
            }
            Self::ForkingFailed(because) => {
                write!(formatter, "since forking did not work: {because}")
            }
            Self::NotArgparse => {
                formatter.write_str("since the script does not read its arguments with argparse")
            }
        }
    }
}

/// `the argument --batch-size`.
impl Display for SetThrough {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Result {
        match self {
            Self::Argument(option) => write!(formatter, "the argument {option}"),
            Self::Place(place) => formatter.write_str(place),
            Self::Tokens => formatter.write_str("the tokens of each sample"),
            Self::CutBatches(tensors) => write!(formatter, "batches that were cut: {tensors}"),
        }
    }
}

/// Why growth is unknown.
impl Display for NoSeries {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Result {
        const SEQUENCE_HINT: &str =
            "name the script's argument that sets it, `--seq-arg --max-length`";
        match self {
            Self::Problem(problem) => formatter.write_str(problem),
            Self::NoSuchArgument { option, similar } => write!(
                formatter,
                "the script has no argument `{option}`; it has {}",
                similar.join(", ")
            ),
            Self::NotArgparse { option } => write!(
                formatter,
                "the script does not read `{option}` with argparse, so that its own value is known \
                 only if it is given with the script"
            ),
            Self::NoLoader => formatter.write_str(
                "the script iterates no DataLoader: name its argument that sets the batch, `--arg \
                 --batch-size`",
            ),
            Self::OutOfMemory(place) => write!(formatter, "out of memory {place}"),
            Self::Fails(reason) => reason.fmt(formatter),
            Self::NothingSetsSequence => write!(
                formatter,
                "nothing says what sets it: name the script's argument that does, `--seq-arg \
                 --max-length`"
            ),
            Self::NoSequenceInBatches(because) => {
                let because = because.as_deref().unwrap_or("no batch was seen");
                write!(formatter, "{because}: {SEQUENCE_HINT}")
            }
            Self::NoSequences => formatter.write_str("the model takes no sequences"),
            Self::JobDidNotEnd => formatter.write_str("the script did not run to its end"),
        }
    }
}

/// `line 12, summed-loss alone`.
impl Display for Variant {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Result {
        match self {
            Self::AsItIs => formatter.write_str("as it is"),
            Self::Alone { line, rule, .. } => write!(formatter, "line {line}, {rule} alone"),
            Self::All { count: 1, rules } => {
                let rule = rules.first().unwrap_or(&"its rule");
                write!(formatter, "with the fix of {rule}")
            }
            Self::All { count, .. } => write!(formatter, "with all {count} fixes"),
        }
    }
}
