//! Why ranks cannot go on together, in a sentence each.

use std::fmt;

/// What keeps a rank from going on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Two ranks made different calls in the same place.
    Disagreement {
        rank: u32,
        called: String,
        other: u32,
        other_called: String,
    },
    /// A rank has ended without the call that another one waits for.
    Ended {
        rank: u32,
        waits_in: String,
        ended: u32,
    },
    /// Ranks wait for each other: each one, and what it waits in.
    Circle(Vec<(u32, String)>),
    /// The same on their cards, of which some wait until others take what they send.
    CircleOfMessages(Vec<(u32, String)>),
    /// A rank does nothing.
    StandsStill {
        rank: u32,
        waits_in: String,
        still: u32,
        /// Where, if that is known.
        stands_at: Option<String>,
        seconds: u64,
    },
    /// Ranks were told different numbers of ranks: two ranks, with their numbers and lines.
    WorldSizes([(u32, u32, String); 2]),
    /// Two processes are the same rank.
    SameRank { rank: u32 },
    /// Two ranks of one machine use the same card.
    SameCard {
        rank: u32,
        other: u32,
        bus: String,
        line: String,
    },
    /// Ranks of which nothing was seen.
    NeverCame {
        missing: Vec<u32>,
        size: u32,
        seconds: u64,
    },
    /// The process was asked to stop waiting.
    Interrupted,
    /// The run's folder cannot be used.
    Folder(String),
}

impl Trouble {
    /// Whether this only follows from the end of another rank, which may have told why.
    pub fn is_consequence(&self) -> bool {
        matches!(self, Self::Ended { .. } | Self::Interrupted)
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disagreement {
                rank,
                called,
                other,
                other_called,
            } => write!(
                formatter,
                "rank {rank} called {called} where rank {other} called {other_called}: a real job would \
                 hang there, or mix up data"
            ),
            Self::Ended {
                rank,
                waits_in,
                ended,
            } => write!(
                formatter,
                "rank {rank} waits in {waits_in} for rank {ended}, which has ended: a real job would hang there"
            ),
            Self::Circle(waiting) | Self::CircleOfMessages(waiting) => {
                for (place, (rank, waits_in)) in waiting.iter().enumerate() {
                    let separator = if place == 0 { "" } else { ", " };
                    let (next, _) = &waiting[(place + 1) % waiting.len()];
                    write!(
                        formatter,
                        "{separator}rank {rank} waits in {waits_in} for rank {next}"
                    )?;
                }
                formatter.write_str(": a real job would hang there")?;
                match self {
                    Self::CircleOfMessages(_) => formatter.write_str(
                        ", unless NCCL's buffers hold the messages, which it does not promise \
                         (torch.distributed.batch_isend_irecv)",
                    ),
                    _ => Ok(()),
                }
            }
            Self::StandsStill {
                rank,
                waits_in,
                still,
                stands_at,
                seconds,
            } => {
                write!(
                    formatter,
                    "rank {rank} waits in {waits_in} for rank {still}, which has done nothing for {seconds} s"
                )?;
                stands_at
                    .iter()
                    .try_for_each(|line| write!(formatter, " at {line}"))
            }
            Self::WorldSizes([(rank, size, line), (other, other_size, other_line)]) => write!(
                formatter,
                "rank {rank} makes a group of {size} ranks{} where rank {other} makes one of {other_size}{}: a real job \
                 would hang there",
                At(line),
                At(other_line)
            ),
            Self::SameRank { rank } => {
                write!(formatter, "two processes take part as rank {rank}")
            }
            // NCCL's own words.
            Self::SameCard {
                rank,
                other,
                bus,
                line,
            } => write!(
                formatter,
                "Duplicate GPU detected : rank {rank} and rank {other} both on CUDA device {bus}{} \
                 (torch.cuda.set_device gives each rank its own)",
                At(line)
            ),
            Self::NeverCame {
                missing,
                size,
                seconds,
            } => {
                let names: Vec<String> = missing.iter().map(u32::to_string).collect();
                write!(
                    formatter,
                    "rank {} of a group of {size} did not come within {seconds} s: a real job would hang there",
                    names.join(", ")
                )
            }
            Self::Interrupted => formatter.write_str("interrupted while waiting for other ranks"),
            Self::Folder(problem) => {
                write!(formatter, "the ranks' folder cannot be used: {problem}")
            }
        }
    }
}

/// ` at train.py:41`, or nothing where the line is not known.
struct At<'a>(&'a str);

impl fmt::Display for At<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "" => Ok(()),
            line => write!(formatter, " at {line}"),
        }
    }
}

impl std::error::Error for Trouble {}

impl From<std::io::Error> for Trouble {
    fn from(error: std::io::Error) -> Self {
        Self::Folder(error.to_string())
    }
}
