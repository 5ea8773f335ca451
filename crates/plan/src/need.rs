//! How much memory a job that does not fit would have needed: found by running it again.

use ghostgpu_rehearse::{
    Change, Completion, Ending, Memory, Purpose, Rehearsal, Rehearse, Run, Stop,
};

/// What is known about the memory that a job needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    Found(Smallest),
    Unknown(UnknownNeed),
}

/// The smallest memory with which a job ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Smallest {
    /// The smallest card: all processes, with context and libraries.
    pub device_bytes: u64,
    /// The smallest memory for PyTorch; none where no process could report.
    pub reserved_bytes: Option<u64>,
    pub allocated_bytes: Option<u64>,
    /// From here on PyTorch never has to flush its cache.
    pub comfortable_device_bytes: Option<u64>,
    /// Of the run that confirmed it.
    pub flushes: Option<u64>,
    pub steps: u64,
    /// A rehearsal with exactly this memory ended.
    pub is_confirmed: bool,
}

/// How the rehearsal with unlimited memory ended instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnknownNeed {
    OutOfMemoryToo,
    TimedOut,
    NotSimulated,
    PreloadBlocked,
    Exception(String),
    Ended(Ending),
}

/// A need, and whose memory it was.
#[derive(Debug)]
pub struct MeasuredNeed {
    pub need: Need,
    pub memory: Memory,
}

/// Rehearses the job with `changes` on cards with unlimited memory.
pub fn need(
    runner: &mut dyn Rehearse,
    changes: &[Change],
    records_memory: bool,
) -> Result<MeasuredNeed, Stop> {
    let rehearsal = Rehearsal {
        purpose: Purpose::Need,
        changes: [changes, &[Change::UnlimitedMemory]].concat(),
        records_memory,
    };
    let run = Run::even_if_timed_out(runner.rehearse(&rehearsal))?;
    Ok(MeasuredNeed {
        need: need_of(&run),
        memory: run.memory,
    })
}

fn need_of(run: &Run) -> Need {
    Need::Unknown(match run.completion() {
        Completion::Completed => {
            return Need::Found(Smallest {
                device_bytes: run.findings.peak_device_bytes(),
                allocated_bytes: run.findings.peak_allocated_bytes(),
                reserved_bytes: run.findings.peak_reserved_bytes(),
                ..Smallest::default()
            });
        }
        Completion::OutOfMemory => UnknownNeed::OutOfMemoryToo,
        Completion::TimedOut => UnknownNeed::TimedOut,
        Completion::Refused => UnknownNeed::NotSimulated,
        Completion::PreloadBlocked => UnknownNeed::PreloadBlocked,
        Completion::ScriptFailed | Completion::ScriptKilled => match run.exception() {
            Some(exception) => UnknownNeed::Exception(exception.to_owned()),
            None => UnknownNeed::Ended(run.ending),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::{MadeUp, fails, fits, interrupted, times_out};

    fn asked(mut runner: MadeUp) -> Result<Need, Stop> {
        need(&mut runner, &[], true).map(|measured| measured.need)
    }

    #[test]
    fn the_need_is_the_peak_with_unlimited_memory() {
        let mut runner = MadeUp::new(|rehearsal| {
            assert_eq!(rehearsal.changes, [Change::UnlimitedMemory]);
            fits(10)
        });
        let measured = need(&mut runner, &[], true).expect("a run");
        assert_eq!(
            measured.need,
            Need::Found(Smallest {
                device_bytes: 10,
                allocated_bytes: Some(10),
                reserved_bytes: Some(10),
                ..Smallest::default()
            })
        );
    }

    #[test]
    fn a_rehearsal_that_fails_says_why_the_need_is_unknown() {
        let unknown = |runner| match asked(runner) {
            Ok(Need::Unknown(because)) => because.to_string(),
            other => panic!("{other:?}"),
        };
        assert_eq!(
            unknown(MadeUp::new(|_| fails("KeyError: 'x'"))),
            "ended with KeyError: 'x'"
        );
        assert_eq!(unknown(MadeUp::new(|_| times_out())), "did not end in time");
    }

    #[test]
    fn an_interrupt_is_passed_on() {
        let stopped = asked(MadeUp::new(|_| interrupted()));
        assert!(matches!(stopped, Err(Stop::Interrupted(2))), "{stopped:?}");
    }
}
