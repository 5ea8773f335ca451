//! Prefixes that launchers and loggers add to a line: ranks, times, levels, boxes.
//!
//! Only known prefixes are removed, and only so that a wrapped message can be joined again: messages are
//! searched for anywhere in a line.

use std::sync::LazyLock;

use regex::Regex;
use serde::Serialize;

/// Who wrote a line, as far as its prefix says.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "by", content = "value", rename_all = "kebab-case")]
pub enum Writer {
    /// The line has no prefix that tells.
    #[default]
    Unnamed,
    Rank(u32),
    /// `(RayTrainWorker pid=1234)`: a process without a rank.
    Process(String),
}

impl Writer {
    /// The name to display.
    pub fn name(&self) -> String {
        match self {
            Self::Unnamed => "unnamed".to_owned(),
            Self::Rank(rank) => format!("rank {rank}"),
            Self::Process(name) => name.clone(),
        }
    }
}

/// A line without its prefixes.
#[derive(Debug, PartialEq, Eq)]
pub struct Unprefixed<'a> {
    pub writer: Writer,
    pub text: &'a str,
}

/// Longer writer names are truncated, since every writer's name is kept.
const LONGEST_NAME: usize = 80;

/// The most prefixes that are removed from one line.
const MOST_PREFIXES: usize = 8;

pub fn without_prefixes(line: &str) -> Unprefixed<'_> {
    let mut found = Unprefixed {
        writer: Writer::Unnamed,
        text: line,
    };
    for _ in 0..MOST_PREFIXES {
        if let Some((writer, rest)) = writer_prefix(found.text, &found.writer) {
            found.writer = writer;
            found.text = rest;
        } else if let Some(rest) = logger_prefix(found.text) {
            found.text = rest;
        } else {
            break;
        }
    }
    found
}

macro_rules! pattern {
    ($name:ident, $text:expr) => {
        static $name: LazyLock<Option<Regex>> = LazyLock::new(|| crate::families::compile($text));
    };
}

// `[rank3]: `, `[Rank 0]`, `rank3: `, `[default0]:` (torchrun), `[trainer0|2]:`
pattern!(
    RANK,
    r"(?x)^\s*(?: \[(?:rank|Rank|RANK|default|trainer\d+\|)\s?(\d{1,6})\]:?
                | (?:rank|Rank|RANK)\s?(\d{1,6})\s?: )\s?"
);
// `[1,2]<stderr>:` (Open MPI: job, rank)
pattern!(
    MPI,
    r"^\s*\[\d+,(\d{1,6})\]<(?:stderr|stdout|stddiag)>:?\s?"
);
// `[2] ` (MPICH, Gloo) and `12: ` (srun --label)
pattern!(LABEL, r"^(?:\[(\d{1,3})\] |\s?(\d{1,4}): )");
// `(RayTrainWorker pid=1, ip=…)`, `(Worker_TP3 pid=549)`, `(EngineCore_DP0 pid=3)`
pattern!(
    ACTOR,
    r"^\s*\(([A-Za-z_][\w.:<>/-]*)[^()]{0,80}?\bpid=(\d+)[^()]{0,80}\)\s?"
);
pattern!(ACTOR_RANK, r"_(?:TP|DP|PP|EP|RANK)(\d{1,4})$");
// `vllm-1  | ` (docker compose)
pattern!(COMPOSE, r"^([A-Za-z][\w.-]*-\d+)\s*\| ");
// `worker-1: `, `10.0.0.2: ` (pdsh)
pattern!(
    HOST,
    r"^((?:[A-Za-z][\w]*[-.][\w.-]*\d|\d{1,3}(?:\.\d{1,3}){3})): "
);

/// A rank says more than a name (`worker-3: [rank27]: …`); anything else that looks like a second writer
/// is a number in the message.
fn writer_prefix<'a>(text: &'a str, known: &Writer) -> Option<(Writer, &'a str)> {
    let first = text.trim_start().bytes().next()?;
    // Most lines begin with none of these characters and need no pattern.
    if !matches!(first, b'[' | b'(' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z') {
        return None;
    }
    let numbered = |pattern: &LazyLock<Option<Regex>>| {
        let found = pattern.as_ref()?.captures(text)?;
        let digits = found.iter().skip(1).flatten().next()?;
        let rank = digits.as_str().parse().ok()?;
        Some((Writer::Rank(rank), &text[found.get(0)?.end()..]))
    };
    match known {
        Writer::Rank(_) => return None,
        Writer::Process(_) => return numbered(&RANK),
        Writer::Unnamed => {}
    }
    let rank = numbered(&RANK).or_else(|| numbered(&MPI));
    if let Some(found) = rank.or_else(|| numbered(&LABEL)) {
        return Some(found);
    }
    if let Some(found) = ACTOR.as_ref().and_then(|actor| actor.captures(text)) {
        let name = found.get(1)?.as_str();
        let rest = &text[found.get(0)?.end()..];
        let rank = ACTOR_RANK
            .as_ref()
            .and_then(|pattern| pattern.captures(name));
        let rank = rank.and_then(|found| found.get(1)?.as_str().parse().ok());
        let writer = match rank {
            Some(rank) => Writer::Rank(rank),
            None => Writer::Process(shortened(&format!("{name} pid {}", found.get(2)?.as_str()))),
        };
        return Some((writer, rest));
    }
    for pattern in [&COMPOSE, &HOST] {
        if let Some(found) = pattern.as_ref().and_then(|pattern| pattern.captures(text)) {
            let writer = Writer::Process(shortened(found.get(1)?.as_str()));
            return Some((writer, &text[found.get(0)?.end()..]));
        }
    }
    None
}

fn shortened(name: &str) -> String {
    name.chars().take(LONGEST_NAME).collect()
}

// Times, levels, `file.py:12]`, kernel and syslog headers, boxes and quotes.
pattern!(
    LOGGER,
    r#"(?x)^\s*(?:
        \[?\d{4}[-/]\d\d[-/]\d\d[T\ ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?(?:\ TP\d+)?\]?
      | \[\d\d/\d\d/\d\d\ \d\d:\d\d:\d\d\]
      | \[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]?
      | \d\d-\d\d\ \d\d:\d\d:\d\d
      | [A-Z][a-z]{2}\ +\d+\ \d\d:\d\d:\d\d\ \S+\ (?:kernel:|\S+\[\d+\]:)
      | \[\s*\d+\.\d{6}\]
      | [IWEF]\d{4}\ \d\d:\d\d:\d\d\.\d+(?:\ +\d+)?\ [\w./-]+\.(?:py|cc|cpp):\d+\]
      | \[(?:ERROR|WARNING|WARN|INFO|DEBUG|CRITICAL)\]
      | (?:ERROR|WARNING|WARN|INFO|DEBUG|CRITICAL)(?::[\w.]+:|\s*\||:\s|\s|$)
      | \[?[\w./-]+\.py:\d+(?::\w+)?\]
      | \|?\ ?(?:ERROR|WARNING|INFO|stderr|stdout)\ \|
      | \|\ 
      | (?:stderr|stdout):
      | [│┃▎>]\ ?
      | \{[^{}]{0,300}?"(?:message|msg|log|error|text|event|detail)":\ ?"{1,2}
      | (?:[-*+•]|\#{1,6})\ 
    )\s?"#
);

fn logger_prefix(text: &str) -> Option<&str> {
    let found = LOGGER.as_ref()?.find(text)?;
    (found.end() > 0).then(|| &text[found.end()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_of_launchers_and_loggers_are_taken_off() {
        let rank = Writer::Rank;
        let process = |name: &str| Writer::Process(name.to_owned());
        for (line, writer, text) in [
            ("[rank3]: RuntimeError: x", rank(3), "RuntimeError: x"),
            ("[rank3]:   File \"a.py\"", rank(3), "  File \"a.py\""),
            ("[1,2]<stderr>:Killed", rank(2), "Killed"),
            ("12: Killed", rank(12), "Killed"),
            ("[default5]:x", rank(5), "x"),
            (
                "(RayTrainWorker pid=12, ip=10.0.0.1) x",
                process("RayTrainWorker pid 12"),
                "x",
            ),
            (
                "(Worker_TP1 pid=549) ERROR 07-29 21:48:54 [multiproc_executor.py:962] x",
                rank(1),
                "x",
            ),
            (
                "vllm-1  | ERROR 11-18 18:07:28 engine.py:366] ValueError: x",
                process("vllm-1"),
                "ValueError: x",
            ),
            (
                "2025-11-12T11:25:13.4961658Z FAILED",
                Writer::Unnamed,
                "FAILED",
            ),
            (
                "2024-04-27 10:13:05 | ERROR | stderr | Traceback",
                Writer::Unnamed,
                "Traceback",
            ),
            (
                "W0409 07:28:49.530000 1359 torch/distributed/elastic/api.py:719] Received",
                Writer::Unnamed,
                "Received",
            ),
            (
                "[2059991.491542] Out of memory",
                Writer::Unnamed,
                "Out of memory",
            ),
            (
                "Nov 15 10:11:12 node7 kernel: Out of memory",
                Writer::Unnamed,
                "Out of memory",
            ),
            ("worker-1: [rank9]: x", rank(9), "x"),
            (
                "WARNING:root:CUDA out of memory.",
                Writer::Unnamed,
                "CUDA out of memory.",
            ),
            ("> quoted", Writer::Unnamed, "quoted"),
        ] {
            let found = without_prefixes(line);
            assert_eq!((&found.writer, found.text), (&writer, text), "{line}");
        }
    }

    #[test]
    fn lines_of_text_stay_whole() {
        for line in [
            "RuntimeError: CUDA out of memory.",
            "torch.OutOfMemoryError: CUDA out of memory.",
            "  File \"train.py\", line 3, in main",
            "ERRORS were found",
            "INFOrmation",
            "100%|####| 20/20",
            "",
        ] {
            assert_eq!(without_prefixes(line).text, line);
        }
    }
}
