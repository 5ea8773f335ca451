//! How much memory a job that does not fit would have needed: found by running it again.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use crate::answer::Need;
use crate::judge::{Rehearsal, Verdict};
use crate::process::{Cause, Ending};
use crate::recorded_memory::Memory;
use crate::rehearsal::{Plan, ScriptOutput};
use crate::run_dir::RunDir;
use ghostgpu_text::seconds;

/// A second run that takes longer than this says that it is there.
const QUIET_FOR: Duration = Duration::from_secs(2);

/// What the second run says: the need, and whose memory it was.
pub struct Measured {
    pub need: Need,
    pub memory: Memory,
}

/// Runs the plan on cards whose memory does not end.
pub fn measure_need(plan: &Plan) -> anyhow::Result<Measured> {
    let run_dir = RunDir::create(&plan.layout.library)?;
    let mut progress = Progress::default();
    let finished = plan.rehearse(run_dir, true, ScriptOutput::Hidden, &mut |elapsed| {
        progress.show(elapsed);
    })?;
    progress.clear();
    Ok(Measured {
        need: need_from(&finished.rehearsal),
        memory: finished.memory,
    })
}

fn need_from(run: &Rehearsal) -> Need {
    if let Cause::Interrupted(_) = run.supervised.cause {
        return Need::Unknown {
            because: "the second run, with unlimited memory, was interrupted".to_owned(),
        };
    }
    let because = match run.verdict() {
        Verdict::Fits => {
            return Need::Measured {
                device_bytes: run.findings.peak_device_bytes(),
                allocated_bytes: run.findings.peak_allocated_bytes(),
                reserved_bytes: run.findings.peak_reserved_bytes(),
            };
        }
        Verdict::DoesNotFit => "ran out of memory too".to_owned(),
        Verdict::TimedOut => "did not end in time".to_owned(),
        Verdict::Refused => "stopped at a call that is not simulated".to_owned(),
        Verdict::PreloadBlocked => "did not load the stand-in library".to_owned(),
        Verdict::ScriptFailed | Verdict::ScriptKilled => {
            match (run.exception(), run.supervised.ending) {
                (Some(exception), _) => format!("ended with {exception}"),
                (None, Ending::Exited(code)) => format!("ended with exit code {code}"),
                (None, Ending::Killed(signal)) => format!("was killed by signal {signal}"),
            }
        }
    };
    Need::Unknown {
        because: format!("the second run, with unlimited memory, {because}"),
    }
}

/// One line on standard error: renewed every second on a terminal, said once elsewhere.
#[derive(Default)]
struct Progress {
    is_shown: bool,
}

impl Progress {
    const TEXT: &str =
        "ghostgpu: it does not fit; running again with unlimited memory to find the need";

    fn show(&mut self, elapsed: Duration) {
        if elapsed < QUIET_FOR {
            return;
        }
        let mut stderr = std::io::stderr();
        // Nobody can be told that telling failed.
        if stderr.is_terminal() {
            let whole = Duration::from_secs(elapsed.as_secs());
            let _ = write!(stderr, "\r{} ({})", Self::TEXT, seconds(whole));
        } else if !self.is_shown {
            let _ = writeln!(stderr, "{}", Self::TEXT);
        }
        self.is_shown = true;
    }

    fn clear(&mut self) {
        let mut stderr = std::io::stderr();
        if self.is_shown && stderr.is_terminal() {
            let _ = write!(stderr, "\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::Findings;
    use crate::process::Supervised;
    use ghostgpu_session::card_usage::CardUse;
    use ghostgpu_session::{AllocatorPeaks, ProcessReport};

    fn run(ending: Ending, cause: Cause, exception: Option<&str>) -> Rehearsal {
        Rehearsal {
            capacity_bytes: None,
            supervised: Supervised { ending, cause },
            findings: Findings {
                processes: vec![ProcessReport {
                    exception: exception.map(str::to_owned),
                    peaks: vec![AllocatorPeaks {
                        peak_allocated_bytes: 10,
                        peak_reserved_bytes: 20,
                        ..AllocatorPeaks::default()
                    }],
                    ..ProcessReport::default()
                }],
                cards: vec![CardUse {
                    used_bytes: 0,
                    peak_bytes: 30,
                }],
                ..Findings::default()
            },
        }
    }

    #[test]
    fn the_need_is_the_peak_of_the_elastic_run() {
        assert_eq!(
            need_from(&run(Ending::Exited(0), Cause::Own, None)),
            Need::Measured {
                device_bytes: 30,
                allocated_bytes: Some(10),
                reserved_bytes: Some(20),
            }
        );
    }

    #[test]
    fn a_failed_elastic_run_says_why_the_need_is_unknown() {
        let check = |ending, cause, exception, end: &str| {
            let Need::Unknown { because } = need_from(&run(ending, cause, exception)) else {
                panic!("the need cannot be known");
            };
            assert!(because.ends_with(end), "{because}");
        };
        check(
            Ending::Exited(1),
            Cause::Own,
            Some("KeyError: 'x'"),
            "ended with KeyError: 'x'",
        );
        check(Ending::Exited(4), Cause::Own, None, "exit code 4");
        check(Ending::Killed(9), Cause::Own, None, "killed by signal 9");
        check(
            Ending::Killed(9),
            Cause::TimedOut,
            None,
            "did not end in time",
        );
        check(
            Ending::Killed(2),
            Cause::Interrupted(2),
            None,
            "was interrupted",
        );
    }
}
