//! Memory figures that a training prints as it runs, and whether they grow.

use serde::Serialize;

use crate::amount::read_amount_in;

/// The figures printed under one name, thinned out to bound memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Series {
    /// The word before the figure.
    pub name: String,
    pub points: Vec<Point>,
    /// How many figures were seen.
    pub seen: u64,
}

/// One printed figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Point {
    pub line: u64,
    pub bytes: u64,
}

/// When a series reaches this many points, every other one is dropped and the stride doubles.
const MOST_POINTS: usize = 64;
const MOST_SERIES: usize = 6;

/// Any of these in a line makes it worth reading.
pub const NEEDLES: [&str; 8] = [
    "memory:", "mem:", "mem ", "_mem", "llocated", "eserved:", "memory ", "memory_",
];

/// Words before a figure, with the unit of a bare number. Longer words before their own suffixes.
const WORDS: [(&str, u64); 10] = [
    ("max_memory_allocated", 1),
    ("memory_allocated", 1),
    ("max_mem", MIB),
    ("max mem", MIB),
    ("gpu_mem", GIB),
    ("memory", MIB),
    ("mem", MIB),
    ("max allocated", MIB),
    ("allocated", MIB),
    ("reserved", MIB),
];

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// All series in a log.
#[derive(Clone, Debug, Default)]
pub struct Prints {
    series: Vec<Series>,
    seen: u64,
    stride: u64,
}

impl Prints {
    /// Counts a matching line; true if the stride skips it.
    pub fn is_skipped(&mut self) -> bool {
        self.seen += 1;
        !(self.seen - 1).is_multiple_of(self.stride.max(1))
    }

    /// Reads a line that contains one of the words.
    pub fn note(&mut self, line_number: u64, line: &str) {
        let Some((name, bytes)) = read(line) else {
            return;
        };
        let point = Point {
            line: line_number,
            bytes,
        };
        let known = self.series.iter().position(|series| series.name == name);
        if known.is_none() && self.series.len() < MOST_SERIES {
            self.series.push(Series {
                name: name.to_owned(),
                points: Vec::new(),
                seen: 0,
            });
        }
        let Some(series) = self.series.iter_mut().find(|series| series.name == name) else {
            return;
        };
        series.seen += 1;
        series.points.push(point);
        if series.points.len() >= MOST_POINTS {
            let mut index = 0;
            series.points.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.stride = self.stride.max(1) * 2;
        }
    }

    pub fn into_series(self) -> Vec<Series> {
        self.series
    }
}

/// The word, and the amount right after it.
fn read(line: &str) -> Option<(&'static str, u64)> {
    let lower = line.to_ascii_lowercase();
    WORDS.iter().find_map(|(word, unit)| {
        let at = lower.find(word)?;
        let before = lower[..at].chars().next_back();
        let rest = &line[at + word.len()..];
        // `remember`, `members`: other words.
        if before.is_some_and(char::is_alphanumeric) {
            return None;
        }
        let digits = rest.find(|character: char| character.is_ascii_digit())?;
        let between = &rest[..digits];
        let is_close = between.len() <= 16
            && between
                .chars()
                .all(|each| " :=(){}[]|\"'\tGMiBbmg".contains(each))
            && between.contains([':', '=', ' ', '|']);
        if !is_close {
            return None;
        }
        let amount = read_amount_in(&rest[digits..], *unit)?;
        // A value that cannot be card memory is a count or a time.
        ((1 << 20)..(1 << 43))
            .contains(&amount.bytes)
            .then_some((*word, amount.bytes))
    })
}

impl Series {
    /// The first and last figure, if the series rises and hardly ever falls.
    pub fn growth(&self) -> Option<(u64, u64)> {
        let bytes: Vec<u64> = self.points.iter().map(|point| point.bytes).collect();
        let (first, last) = (*bytes.first()?, *bytes.last()?);
        let steps = bytes.len().checked_sub(1)?;
        let rising = bytes.windows(2).filter(|pair| pair[1] > pair[0]).count();
        let falling = bytes.windows(2).filter(|pair| pair[1] < pair[0]).count();
        let is_steady = steps >= 4 && rising * 2 >= steps && falling * 8 <= steps;
        // The first steps allocate what stays: real growth continues in the second half.
        let middle = bytes[bytes.len() / 2];
        let goes_on = last.saturating_sub(middle) * 5 >= last.saturating_sub(first);
        let is_much = last.saturating_sub(first) * 10 >= last;
        (is_steady && goes_on && is_much).then_some((first, last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_of_many_trainers_are_read() {
        for (line, name, bytes) in [
            ("eta: 1 day, memory: 5123, loss: 0.2", "memory", 5123 << 20),
            ("data: 0.0  max mem: 1000", "max mem", 1000 << 20),
            ("max_mem: 5123M", "max_mem", 5123 << 20),
            ("step: 3  memory: 40.50GiB(84%)", "memory", 81 << 29),
            ("allocated: 1.50 GB", "allocated", 3 << 29),
            (
                "memory_allocated = 104857600",
                "memory_allocated",
                100 << 20,
            ),
        ] {
            assert_eq!(read(line), Some((name, bytes)), "{line}");
        }
        for line in [
            "CUDA out of memory. Tried to allocate 2",
            "remember: 500",
            "mem",
            "memory of 3",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }

    #[test]
    fn growth_is_steady_and_goes_on() {
        let series = |bytes: &[u64]| {
            let points = bytes
                .iter()
                .map(|&bytes| Point { line: 1, bytes })
                .collect();
            Series {
                name: String::new(),
                points,
                seen: 0,
            }
        };
        assert_eq!(series(&[10, 20, 30, 40, 50, 60]).growth(), Some((10, 60)));
        assert_eq!(series(&[10, 50, 50, 50, 50, 50, 50]).growth(), None);
        assert_eq!(series(&[50, 10, 50, 10, 50, 10, 60]).growth(), None);
        assert_eq!(series(&[10, 20]).growth(), None);
        assert_eq!(series(&[]).growth(), None);
    }

    #[test]
    fn a_long_log_keeps_few_points() {
        let mut prints = Prints::default();
        for line in 0..200_000 {
            if !prints.is_skipped() {
                prints.note(line, &format!("memory: {} loss", 1000 + line / 200));
            }
        }
        let series = prints.into_series();
        assert!(series[0].points.len() <= MOST_POINTS);
        assert!(series[0].growth().is_some());
    }
}
