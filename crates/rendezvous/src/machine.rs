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

    /// The processor time that a process and those it has started have used, in ticks of a hundredth of a second.
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
        ticks_of_all(process.pid)
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

/// A rank that waits for what it has started works: processes that prepare data, compilers, downloads.
fn ticks_of_all(pid: u32) -> u64 {
    let own = read_stat(pid).map_or(0, |stat| stat.ticks);
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"));
    let children = threads.into_iter().flatten().flatten().flat_map(|thread| {
        let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        let pids = children.split_whitespace().map(str::parse::<u32>);
        pids.flatten().collect::<Vec<u32>>()
    });
    own + children.map(ticks_of_all).sum::<u64>()
}

struct Stat {
    state: char,
    /// Its own, and those of children that have ended.
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
        ticks: (11..=14).map(number).sum::<Option<u64>>()?,
        began: number(19)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_of_what_a_process_has_started_is_its_own() {
        let busy = || {
            let script = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; read line";
            let mut shell = std::process::Command::new("sh");
            shell
                .args(["-c", script])
                .stdin(std::process::Stdio::piped());
            shell.spawn().expect("a shell")
        };
        let before = Machine.processor_ticks(this_process());
        let mut shell = busy();
        let of_shell = || {
            Machine.processor_ticks(ProcessId {
                pid: shell.id(),
                began: 0,
            })
        };
        while of_shell() < 5 {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(Machine.processor_ticks(this_process()) >= before + 5);
        drop(shell.stdin.take());
        shell.wait().expect("its end");
        assert!(
            Machine.processor_ticks(this_process()) >= before + 5,
            "it has ended"
        );
    }

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
