//! A runner without processes, for tests: a closure supplies the result of each rehearsal.

use ghostgpu_rehearse::{
    Change, Dimension, Ending, Findings, Held, Purpose, Rehearsal, Rehearse, Run, Runner,
    SizePoint, SizePointReport, Stop,
};
use ghostgpu_session::card_usage::CardUse;
use ghostgpu_session::{AllocatorPeaks, OomReport, ProcessReport};

type Answer = Box<dyn FnMut(&Rehearsal) -> Result<Run, Stop>>;

/// What a script does when it is held at a size point.
pub enum Holds {
    /// It waits at every point, with this report.
    Waits(SizePointReport),
    /// It ends, with this report, after a run that fits.
    Ends(SizePointReport),
}

pub struct FakeRunner {
    answer: Answer,
    holds: Holds,
    /// The purpose of each rehearsal, and whether it was a fork.
    pub seen: Vec<(Purpose, bool)>,
    /// Points at which the script was held.
    pub held: Vec<SizePoint>,
    is_forked: bool,
}

impl FakeRunner {
    pub fn new(answer: impl FnMut(&Rehearsal) -> Result<Run, Stop> + 'static) -> Self {
        Self {
            answer: Box::new(answer),
            holds: Holds::Ends(SizePointReport::default()),
            seen: Vec::new(),
            held: Vec::new(),
            is_forked: false,
        }
    }

    pub fn holding(mut self, holds: Holds) -> Self {
        self.holds = holds;
        self
    }

    /// The sizes that were rehearsed, in order.
    pub fn sizes(&self, of: Dimension) -> Vec<u64> {
        let sizes = self.seen.iter().filter_map(|(purpose, _)| match purpose {
            Purpose::Size {
                dimension, size, ..
            } if *dimension == of => Some(*size),
            _ => None,
        });
        sizes.collect()
    }
}

impl Rehearse for FakeRunner {
    fn rehearse(&mut self, rehearsal: &Rehearsal) -> Result<Run, Stop> {
        self.seen.push((rehearsal.purpose.clone(), self.is_forked));
        (self.answer)(rehearsal)
    }
}

impl Runner for FakeRunner {
    fn hold_at(&mut self, point: &SizePoint, _: &[Change]) -> Result<Held<'_>, Stop> {
        self.held.push(point.clone());
        match &self.holds {
            Holds::Waits(seen) => {
                let seen = seen.clone();
                self.is_forked = true;
                Ok(Held::Waiting {
                    seen,
                    forks: Box::new(FakeForks(self)),
                })
            }
            Holds::Ends(seen) => Ok(Held::Ended {
                seen: seen.clone(),
                run: Box::new(fits(1)?),
            }),
        }
    }
}

struct FakeForks<'a>(&'a mut FakeRunner);

impl Rehearse for FakeForks<'_> {
    fn rehearse(&mut self, rehearsal: &Rehearsal) -> Result<Run, Stop> {
        self.0.rehearse(rehearsal)
    }
}

impl Drop for FakeForks<'_> {
    fn drop(&mut self) {
        self.0.is_forked = false;
    }
}

/// The batch of a rehearsal, if it sets one.
pub fn batch_of(rehearsal: &Rehearsal) -> Option<u64> {
    rehearsal.changes.iter().find_map(|change| match change {
        Change::Sizes { sizes, .. } => sizes.batch,
        _ => None,
    })
}

/// The sequence length of a rehearsal, if it sets one.
pub fn sequence_of(rehearsal: &Rehearsal) -> Option<u64> {
    rehearsal.changes.iter().find_map(|change| match change {
        Change::Sizes { sizes, .. } => sizes.sequence,
        _ => None,
    })
}

fn run(ending: Ending, bytes: u64, process: ProcessReport) -> Run {
    let peaks = AllocatorPeaks {
        peak_allocated_bytes: bytes,
        peak_reserved_bytes: bytes,
        ..AllocatorPeaks::default()
    };
    let process = ProcessReport {
        peaks: vec![peaks],
        ..process
    };
    Run::new(
        ending,
        Findings {
            processes: vec![process],
            cards: vec![CardUse {
                used_bytes: 0,
                peak_bytes: bytes,
            }],
            ..Findings::default()
        },
    )
}

pub fn fits(bytes: u64) -> Result<Run, Stop> {
    Ok(run(Ending::Exited(0), bytes, ProcessReport::default()))
}

/// It fits, and a process reports this.
pub fn fits_with(bytes: u64, process: ProcessReport) -> Result<Run, Stop> {
    Ok(run(Ending::Exited(0), bytes, process))
}

pub fn does_not_fit() -> Result<Run, Stop> {
    let oom = OomReport {
        device: 0,
        requested_bytes: 1,
        message: String::new(),
        step: 0,
        stage: "forward".to_owned(),
        stack: Vec::new(),
        is_fatal: true,
        moment: None,
    };
    let process = ProcessReport {
        ooms: vec![oom],
        ..ProcessReport::default()
    };
    Ok(run(Ending::Exited(1), 0, process))
}

/// A run that fits if `bytes` are no more than the card has.
pub fn on_card(bytes: u64, capacity_bytes: u64) -> Result<Run, Stop> {
    match bytes <= capacity_bytes {
        true => fits(bytes),
        false => does_not_fit(),
    }
}

pub fn fails(exception: &str) -> Result<Run, Stop> {
    let process = ProcessReport {
        exception: Some(exception.to_owned()),
        ..ProcessReport::default()
    };
    Ok(run(Ending::Exited(1), 0, process))
}

pub fn times_out() -> Result<Run, Stop> {
    let mut run = run(Ending::Killed(9), 0, ProcessReport::default());
    run.has_timed_out = true;
    Err(Stop::TimedOut(Box::new(run)))
}

pub fn interrupted() -> Result<Run, Stop> {
    Err(Stop::Interrupted(2))
}
