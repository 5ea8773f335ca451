//! What can be asked about other processes of this machine.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A process, by its number and the moment at which it began: numbers are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ProcessId {
    pub pid: u32,
    pub began: u64,
}

/// What waiting needs of the machine.
pub trait Surroundings {
    /// Lets some time pass. False if the process was asked to stop waiting.
    fn pause(&self, time: Duration) -> bool;

    fn is_alive(&self, process: ProcessId) -> bool;

    /// The processor time that a process has used, in ticks of a hundredth of a second.
    fn processor_ticks(&self, process: ProcessId) -> u64;
}

/// The machine itself.
#[derive(Clone, Copy, Debug)]
pub struct Machine;

impl Surroundings for Machine {
    fn pause(&self, time: Duration) -> bool {
        std::thread::sleep(time);
        true
    }

    fn is_alive(&self, process: ProcessId) -> bool {
        read_stat(process.pid)
            .is_some_and(|stat| stat.began == process.began && !matches!(stat.state, 'Z' | 'X'))
    }

    fn processor_ticks(&self, process: ProcessId) -> u64 {
        read_stat(process.pid).map_or(0, |stat| stat.ticks)
    }
}

/// The calling process.
pub fn this_process() -> ProcessId {
    let pid = std::process::id();
    ProcessId {
        pid,
        began: read_stat(pid).map_or(0, |stat| stat.began),
    }
}

struct Stat {
    state: char,
    ticks: u64,
    began: u64,
}

fn read_stat(pid: u32) -> Option<Stat> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in brackets, may contain anything.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |place: usize| fields.get(place)?.parse::<u64>().ok();
    Some(Stat {
        state: fields.first()?.chars().next()?,
        ticks: number(11)? + number(12)?,
        began: number(19)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives_and_another_under_its_number_does_not() {
        let own = this_process();
        assert!(Machine.is_alive(own));
        assert!(!Machine.is_alive(ProcessId {
            began: own.began + 1,
            ..own
        }));
    }
}
