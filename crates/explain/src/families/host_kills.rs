//! Killed processes: by the kernel, a batch system, a container runtime, or an unnamed killer.

use super::{Family, Message, amount, number, pattern, range};
use crate::amount::{Amount, read_amount};
use crate::finding::FigureValue;
use crate::kind::Kind;
use crate::window::Window;

pub const FAMILY: Family = Family {
    needles: &[
        "Killed",
        "已杀死",
        "oom-kill",
        "oom_kill",
        "oom-killer",
        "OOMKilled",
        "Out Of Memory",
        "OUT_OF_MEMORY",
        "OUT_OF_ME+",
        "SIGKILL",
        "code 137",
        "code: 137",
        "code=137",
        "code = 137",
        "exitcode: -9",
        "exitcode : -9",
        "exitcode:-9",
        "return code = -9",
        "exit code -9",
        "signal 9",
        "9/KILL",
        "exit_code",
        "Negsignal",
        "memory-restart",
        "SIG_KILL",
        "RayOutOfMemoryError",
        "large alloc",
        "cgroup out-of-memory",
        "killed by signal",
        "Killed process",
        "node running low on memory",
        "killed due to memory pressure",
        "memory limit",
        "TERM_MEMLIMIT",
        "low on resource",
        "killed by the OOM",
        "all available RAM",
        "所有可用的 RAM",
        "所有可用 RAM",
        "systemd-oomd",
        "sending SIGTERM to process",
        "sending SIGKILL to process",
        "signal: killed",
        "Runtime.OutOfMemory",
        "Memory quota",
        "exceeding memory limits",
        "memory limits. Current usage",
        "beyond physical memory",
        "more memory than is available",
        "已砍掉",
        "强制终止",
        "強制終了",
        "죽었음",
        "Убито",
        "Getötet",
        "Processus arrêté",
    ],
    read,
};

pattern!(
    KERNEL,
    r"(Memorycgroupo|O)utofmemory:\n?Kill(?:ed)?process(\d+),?\(([^)]{1,40})\)(?:score\d+orsacrificechild|.{0,40}?total-vm:({A}),anon-rss:({A}))?"
);
pattern!(
    KERNEL_OLD,
    r"Killedprocess(\d+),?\(([^)]{1,40})\),?(?:UID\d+,?)?total-vm:({A}),anon-rss:({A})"
);
pattern!(
    SLURM,
    r"(?:slurmstepd[^:]*:error:)?Detected(\d+)oom[-_ ]?killevents?(?:\(s\))?in(?:[^\n]{0,200}?out-of-memoryhandler)?|srun:error:\S{1,80}?:tasks?[\d,-]+:OutOfMemory|cgroupout-of-memoryhandler|Exceeded(?:step|job)memorylimit|exceededmemorylimit\(\d+>\d+\)|PBS:jobkilled:v?mem[^\n]{0,80}?exceeded|TERM_MEMLIMIT|Thenodewaslowonresource:memory|killedbytheOOMkiller|Failedwithresult'oom-kill'|goneover(?:cgroup)?memorylimitof\d+|memoryusageexceeded(?:the)?request_?memory|exceededitsmemorylimit|exceeds--max-memory-restartvalue|crashedafterusingallavailableRAM|triedtoallocatemorememorythanisavailable|使用了?所有可用的?RAM后崩溃"
);
// Those who kill before the kernel has to: their configuration is printed with nearly the same words.
pattern!(
    EARLY,
    r"Killed/[^\n]{4,240}?dueto(?:memorypressure|memoryused|swapused)|systemd-oomdkilled\d+process|sendingSIG(?:TERM|KILL)toprocess(\d+)uid\d+\x22([^\x22\n]{1,40})\x22:[^\n]{0,60}?badness\d+,VmRSS({A})"
);
// What hosts of functions, applications and Hadoop's containers say of their limit.
pattern!(
    HOSTED,
    r"Runtimeexitedwitherror:signal:killed|Runtime\.OutOfMemory|ErrorR1[45]\(Memoryquota(?:vastly)?exceeded\)|killedbyYARNforexceeding(?:physical|virtual)?memorylimits\.?(?:({A})of({A}))?|runningbeyond(?:physical|virtual)memorylimits"
);
// Ray monitors the machine and kills a worker before the kernel does; its first releases only raised an error.
pattern!(
    RAY,
    r"RayOutOfMemoryError:Morethan\d+%ofthememoryonnode[^()]{1,80}isused\(([\d.]+)/([\d.]+)GB\)|Taskwaskilledduetothenoderunninglowonmemory(?:\.\s?Memoryonthenode[^\n]{0,400}?wasrunningwas({A})/({A}))?|Workers\(tasks/actors\)killedduetomemorypressure"
);
// Google's allocator warns of a large request, and then the kernel of the notebook is gone.
pattern!(
    ALLOCATION,
    r"tcmalloc:largealloc(\d{9,})bytes(?s:.{0,600}?)(?:\n\^C|\bkernel[0-9a-f-]{30,40}restarted)|\bkernel[0-9a-f-]{30,40}restarted(?s:.{0,400}?)tcmalloc:largealloc(\d{9,})bytes"
);
// An argument or a function of that name is no state of a job.
pattern!(
    STATE,
    r#"(?:^|[\s|"':,(])OUT_OF_ME(?:MORY(?:$|[\s|"',;.)])|\+)|\bOOMKilled\b"#
);
// What `docker inspect` says of every container.
pattern!(NOT_KILLED, r"OOMKilled\W{1,4}false");
pattern!(
    ELASTIC,
    r"exitcode ?: ?-9\)?.*?local_rank: ?(\d+) ?\(pid: ?(\d+)\)"
);
pattern!(
    LIKELY,
    r"(?x)^\W*(?:Killed(?::\s?9)?|已杀死|已砍掉|强制终止|強制終了|죽었음|Убито|Getötet|Processus\sarrêté)\W*$ | (?:line|行)\s?\d+:\s*\d+\s+(?:Killed|已杀死)(?::\s9)?(?:\s|$) | \d+\s+(?:Killed|已杀死)\s{3,}
      | \d/\d+\s\[[^\]]{1,60}\]\s*(?:Killed|已杀死)(?:\W*$|`)
      | exit(?:ed\swith)?\s?(?:code|status):?\s?=?\s?(?:137|-9)\b | \bstatus\scode:?\s137\b | code[=:]\s?137\b | return\scode\s=\s-9
      | exitcode\s*:\s*-9 | Signal\s9\s?\(SIGKILL\) | signal\s9:\sSIGKILL | died\swith\s<Signals\.SIGKILL
      | (?:都会|就会|总是|被)\s?killed\b | ^zsh:\skilled\s | exit_?code['\x22]?\s?[=:]\s?-(?:9|SIGKILL)\b | Negsignal\.SIGKILL | via\ssignal\s\[SIGKILL\] | code=killed,\sstatus=9/KILL
      | (?:terminated|killed|exited|died|crashed|stopped|aborted|ended)\s(?:abnormally\s|unexpectedly\s|prematurely\s)?(?:by|with|due\sto|from|on|via|because\sof):?\s(?:a\s)?(?:signal:?\s(?:9|SIGKILL|killed)|SIGKILL)\b
      | was\ssent\sSIGKILL | (?:got|received)\s(?:a\s)?(?:signal\s)?SIGKILL | (?:got|received)\ssignal\s9\b"
);

// What every match of `LIKELY` contains: most lines of a window have nothing of it.
pattern!(
    SIGN,
    r"killed|已杀死|已砍掉|强制终止|強制終了|죽었음|Убито|Getötet|arrêté|137|-9|signal 9|SIGKILL"
);

fn read(window: &Window) -> Vec<Message> {
    let mut messages = kernel(window);
    let text = window.squeezed();
    for found in SLURM.all(text) {
        let (start, end) = range(&found);
        let mut message = Message::new(Kind::JobLimit, start, end);
        if let Some(events) = number(&found, 1) {
            message.figures.add("kills", FigureValue::Count(events));
        }
        messages.push(message);
    }
    for found in RAY.printed(text) {
        let (start, end) = range(&found);
        let mut message = Message::new(Kind::JobLimit, start, end);
        let sizes = match found.get(1) {
            Some(_) => [1, 2].map(|group| gigabytes(&found, group)),
            None => [3, 4].map(|group| amount(&found, group)),
        };
        for (size, name) in sizes
            .into_iter()
            .zip(["in use on the machine", "RAM of the machine"])
        {
            if let Some(size) = size {
                message.figures.add(name, FigureValue::Amount(size));
            }
        }
        messages.push(message);
    }
    for found in EARLY.printed(text) {
        let (start, end) = range(&found);
        let mut message = Message::new(Kind::HostKill, start, end);
        if let Some(pid) = number(&found, 1) {
            message.figures.add("process", FigureValue::Count(pid));
        }
        if let Some(program) = found.get(2) {
            let program = FigureValue::Text(program.as_str().to_owned());
            message.figures.add("program", program);
        }
        if let Some(resident) = amount(&found, 3) {
            message
                .figures
                .add("resident", FigureValue::Amount(resident));
        }
        messages.push(message);
    }
    for found in ALLOCATION.printed(text) {
        let (start, end) = range(&found);
        let mut message = Message::new(Kind::HostKillLikely, start, end);
        message.figures.requested = number(&found, 1).or(number(&found, 2)).map(Amount::exact);
        messages.push(message);
    }
    for found in HOSTED.printed(text) {
        let (start, end) = range(&found);
        messages.push(Message::new(Kind::JobLimit, start, end));
    }
    for index in window.wanted_lines() {
        let line = window.undressed(index);
        let (start, end) = (window.start_of(index), window.start_of(index + 1));
        let is_new = |message: &Message| message.start >= end || message.end <= start;
        if !messages.iter().all(is_new) {
            continue;
        }
        // A line may have been wrapped at any blank.
        let next = window.undressed(index + 1);
        let both = format!("{line} {next}");
        let is_killed = |line: &str| SIGN.find(line).is_some() && LIKELY.find(line).is_some();
        if STATE.find(line).is_some() && NOT_KILLED.find(line).is_none() {
            messages.push(Message::new(Kind::JobLimit, start, end));
        } else if (is_killed(line) || (is_killed(&both) && !is_killed(next)))
            && !both.contains("DataLoader worker")
        {
            let mut message = Message::new(Kind::HostKillLikely, start, end);
            let more = [
                both.as_str(),
                window.undressed(index + 2),
                window.undressed(index + 3),
            ];
            if let Some(found) = ELASTIC.captures(&more.join(" ")) {
                let rank = number(&found, 1).unwrap_or_default();
                message.figures.add("local rank", FigureValue::Count(rank));
            }
            messages.push(message);
        }
    }
    messages
}

fn kernel(window: &Window) -> Vec<Message> {
    let text = window.squeezed();
    let mut messages: Vec<Message> = Vec::new();
    for (pattern, first) in [(&KERNEL, 2), (&KERNEL_OLD, 1)] {
        for found in pattern.all(text) {
            let (start, end) = range(&found);
            // Old kernels say on one line whom they chose, and on the next how large it was.
            let pid = number(&found, first).map(FigureValue::Count);
            let is_same = |known: &&mut Message| {
                let mut figures = known.figures.more.iter();
                figures
                    .any(|figure| figure.name == "process" && Some(&figure.value) == pid.as_ref())
            };
            if let Some(known) = messages.iter_mut().find(is_same) {
                add_sizes(known, &found, first);
                known.end = known.end.max(end);
                continue;
            }
            if messages
                .iter()
                .any(|known| start < known.end && known.start < end)
            {
                continue;
            }
            let is_limit = first == 2 && found[1].starts_with(['M', 'm']);
            let kind = if is_limit {
                Kind::JobLimit
            } else {
                Kind::HostKill
            };
            let mut message = Message::new(kind, start, end);
            let figures = &mut message.figures;
            if let Some(pid) = number(&found, first) {
                figures.add("process", FigureValue::Count(pid));
            }
            figures.add("program", FigureValue::Text(found[first + 1].to_owned()));
            add_sizes(&mut message, &found, first);
            messages.push(message);
        }
    }
    messages
}

/// A number whose unit stands behind another one: `11.8 / 12.3 GB`.
fn gigabytes(found: &regex::Captures, group: usize) -> Option<Amount> {
    let number = found.get(group)?.as_str();
    read_amount(&format!("{number}GB")).map(|read| read.0)
}

/// How large the process was, in RAM and in addresses.
fn add_sizes(message: &mut Message, found: &regex::Captures, first: usize) {
    for (group, name) in [(first + 3, "resident"), (first + 2, "address space")] {
        let is_known = message.figures.amount_named(name).is_some();
        if let Some(size) = amount(found, group).filter(|_| !is_known) {
            message.figures.add(name, FigureValue::Amount(size));
        }
    }
}
