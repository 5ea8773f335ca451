//! `nvidia-smi` for scripts, or libraries such as GPUtil, that start it: it describes the virtual cards.
//!
//! A link with this name comes first on the `PATH` of a rehearsed script. It supports the common queries: the list
//! (`-L`), `--query-gpu`, `--query-compute-apps` and the table. What a virtual card does not have (temperature, power)
//! is `[N/A]`, as on real cards without the sensor.

mod card;
mod query;
mod table;

use card::Card;
use query::Format;

/// Why there is no answer, and the exit code of NVIDIA's tool for it.
#[derive(Debug, PartialEq, Eq)]
pub struct Complaint {
    pub text: String,
    pub exit_code: u8,
}

/// The exit codes of NVIDIA's tool without a driver, and for invalid arguments.
const NO_DRIVER: u8 = 9;
const WRONG_USAGE: u8 = 2;

/// The answer to a command line, about the cards of the rehearsal that this process is part of.
pub fn answer(words: impl Iterator<Item = String>) -> Result<String, Complaint> {
    let Some(cards) = Card::of_this_run() else {
        return Err(Complaint {
            text: "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver: this is \
                   GhostGPU's, and no rehearsal is running"
                .to_owned(),
            exit_code: NO_DRIVER,
        });
    };
    let answer = Asked::from_words(words).and_then(|asked| asked.answer(cards));
    answer.map_err(|text| Complaint {
        text,
        exit_code: WRONG_USAGE,
    })
}

/// The parsed command line.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    what: What,
    format: Format,
    /// `-i`: only these cards, by number or by UUID.
    only: Option<Vec<String>>,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum What {
    #[default]
    Table,
    List,
    Cards(Vec<String>),
    Processes(Vec<String>),
}

impl Asked {
    fn from_words(words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut asked = Self::default();
        let mut words = words.peekable();
        while let Some(word) = words.next() {
            let (option, attached) = match word.split_once('=') {
                Some((option, value)) => (option.to_owned(), Some(value.to_owned())),
                None => (word, None),
            };
            let mut value = || {
                let value = attached.clone().or_else(|| words.next());
                value.ok_or_else(|| format!("Option {option} needs a value."))
            };
            match option.as_str() {
                "-L" | "--list-gpus" => asked.what = What::List,
                "--query-gpu" => asked.what = What::Cards(listed(&value()?)),
                "--query-compute-apps" | "--query-apps" => {
                    asked.what = What::Processes(listed(&value()?));
                }
                "--format" => asked.format = Format::from_words(&listed(&value()?))?,
                "-i" | "--id" => asked.only = Some(listed(&value()?)),
                // Printing once is enough, because nothing changes unless the script does something.
                "-l" | "--loop" | "-lms" | "--loop-ms" => {
                    value()?;
                }
                other => {
                    return Err(format!(
                        "Invalid combination of input arguments: GhostGPU's nvidia-smi does not know `{other}`. It \
                         knows -L, --query-gpu, --query-compute-apps, --format, -i and the plain table."
                    ));
                }
            }
        }
        Ok(asked)
    }

    fn answer(&self, mut cards: Vec<Card>) -> Result<String, String> {
        if let Some(only) = &self.only {
            cards.retain(|card| only.iter().any(|name| card.is_called(name)));
            if cards.is_empty() {
                return Err("No devices were found".to_owned());
            }
        }
        Ok(match &self.what {
            What::Table => table::of(&cards),
            What::List => cards.iter().map(Card::in_list).collect(),
            What::Cards(fields) => query::of_cards(&cards, fields, self.format),
            What::Processes(fields) => query::of_processes(&cards, fields, self.format),
        })
    }
}

fn listed(value: &str) -> Vec<String> {
    value
        .split(',')
        .map(|each| each.trim().to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use card::tests::two_cards;

    fn said(line: &str) -> Result<String, String> {
        let words = line.split_whitespace().map(str::to_owned);
        Asked::from_words(words).and_then(|asked| asked.answer(two_cards()))
    }

    #[test]
    fn questions_are_answered_as_by_nvidias_tool() {
        let lines = [
            "",
            "-L",
            "--query-gpu=index,name,memory.total,memory.used,memory.free --format=csv",
            "--query-gpu=uuid,utilization.gpu,driver_version,temperature.gpu,fan.speed --format=csv,noheader",
            "--query-gpu memory.used --format csv,noheader,nounits -i 1",
            "--query-compute-apps=pid,used_memory,gpu_uuid,process_name --format=csv",
            "-i GPU-67686f73-7467-7075-0000-000000000001 -L",
        ];
        let answers = lines.map(|line| {
            let answer = said(line).unwrap_or_else(|error| panic!("{line}: {error}"));
            format!("$ nvidia-smi {line}\n{answer}")
        });
        insta::assert_snapshot!(answers.join("\n"));
    }

    #[test]
    fn the_words_of_gputil_are_answered_with_a_number_for_each_card() {
        let answer = said(
            "--query-gpu=index,uuid,utilization.gpu,memory.total,memory.used,memory.free,driver_version,name,\
             gpu_serial,display_active,display_mode,temperature.gpu --format=csv,noheader,nounits",
        );
        let answer = answer.expect("an answer");
        assert_eq!(answer.lines().count(), 2);
        for line in answer.lines() {
            let cells: Vec<&str> = line.split(", ").collect();
            assert_eq!(cells.len(), 12, "{line}");
            assert!(cells[3..6].iter().all(|cell| cell.parse::<f64>().is_ok()));
        }
    }

    #[test]
    fn what_is_not_understood_is_refused_by_name() {
        for (line, part) in [
            ("-q -x", "`-q`"),
            ("--format=xml", "csv"),
            ("--query-gpu", "needs a value"),
            ("-i 7 -L", "No devices"),
        ] {
            let complaint = said(line).expect_err(line);
            assert!(complaint.contains(part), "{complaint}");
        }
    }
}
