//! `--ranks`: which ranks of a job are run, as the user types it.

use std::collections::BTreeSet;

use ghostgpu_rehearse::RankChoice;

/// More ranks than any job has; a longer list is a typing error.
const MOST_RANKS: u32 = 1 << 16;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RanksOption {
    All,
    /// Those that must be run so that the memory of every rank is known.
    Distinct,
    Listed(Vec<u32>),
}

impl RanksOption {
    /// As the user types it; `None` for the default.
    pub fn word(&self) -> Option<String> {
        match self {
            Self::All => None,
            Self::Distinct => Some("distinct".to_owned()),
            Self::Listed(ranks) => {
                let numbers: Vec<String> = ranks.iter().map(u32::to_string).collect();
                Some(numbers.join(","))
            }
        }
    }

    /// The ranks to begin with.
    pub fn choice(&self) -> RankChoice {
        match self {
            Self::All => RankChoice::All,
            Self::Distinct => RankChoice::Ends,
            Self::Listed(ranks) => RankChoice::Listed(ranks.clone()),
        }
    }
}

/// Reads `all`, `distinct`, or ranks and intervals of them: `0,8-15`.
pub fn parse_ranks(text: &str) -> Result<RanksOption, String> {
    match text {
        "all" => return Ok(RanksOption::All),
        "distinct" => return Ok(RanksOption::Distinct),
        _ => {}
    }
    let mut ranks = BTreeSet::new();
    for part in text.split(',') {
        let (first, last) = part.split_once(['-', '–']).unwrap_or((part, part));
        let [first, last] = [first, last].map(|number| number.trim().parse::<u32>().ok());
        match (first, last) {
            (Some(first), Some(last)) if first <= last && last < MOST_RANKS => {
                ranks.extend(first..=last);
            }
            _ => {
                return Err(format!(
                    "`{}` is no rank: write `all`, `distinct`, or ranks such as `0,7,63` or `0,8-15`",
                    part.trim()
                ));
            }
        }
    }
    Ok(RanksOption::Listed(ranks.into_iter().collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_all_or_a_list_in_ascending_order() {
        let listed = |ranks: &[u32]| Ok(RanksOption::Listed(ranks.to_vec()));
        let cases = [
            ("all", Ok(RanksOption::All)),
            ("distinct", Ok(RanksOption::Distinct)),
            ("0", listed(&[0])),
            ("63,0, 7,7", listed(&[0, 7, 63])),
            ("0,8-10", listed(&[0, 8, 9, 10])),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_ranks(text), expected, "{text}");
        }
        for text in ["", "0,", "7-3", "a", "-1", "1-2-3", "70000", "0-4294967295"] {
            let error = parse_ranks(text).expect_err(text);
            assert!(error.contains("is no rank: write"), "{error}");
        }
    }
}
