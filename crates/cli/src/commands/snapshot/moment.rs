//! Which moment of a history is meant.

use std::str::FromStr;

use ghostgpu_ledger::{CardLedger, Moment};

use crate::failure::Failure;
use ghostgpu_text::grouped;

/// `peak`, `end`, or the number of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    Peak,
    End,
    Event(usize),
}

impl FromStr for At {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "peak" => Ok(Self::Peak),
            "end" => Ok(Self::End),
            number => number
                .replace([',', '_'], "")
                .parse()
                .map(Self::Event)
                .map_err(|_| "a moment is `peak`, `end` or the number of an event".to_owned()),
        }
    }
}

impl At {
    /// The moment in a history; for an event, the moment after it.
    pub fn of(self, ledger: &CardLedger) -> Result<Moment, Failure> {
        let end = ledger.end().moment;
        match self {
            Self::Peak => Ok(ledger.peak().moment),
            Self::End => Ok(end),
            Self::Event(event) if event < end.0 => Ok(Moment(event + 1)),
            Self::Event(event) => Err(Failure::new(format!(
                "there is no event {}: the history has {}",
                grouped(event as u64),
                grouped(end.0 as u64)
            ))),
        }
    }

    /// The moment in words.
    pub fn words(self) -> String {
        match self {
            Self::Peak => "at the peak".to_owned(),
            Self::End => "at the end".to_owned(),
            Self::Event(event) => format!("after event {}", grouped(event as u64)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_word_or_a_number() {
        assert_eq!("peak".parse(), Ok(At::Peak));
        assert_eq!("end".parse(), Ok(At::End));
        assert_eq!("1,234".parse(), Ok(At::Event(1234)));
        assert!("-1".parse::<At>().is_err());
        assert!("start".parse::<At>().is_err());
    }
}
