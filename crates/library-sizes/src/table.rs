//! A table as a file: readable text, sorted, each question once.
//!
//! ```text
//! # ghostgpu table 1
//! # card    NVIDIA H200
//! # capability    9.0
//! cusolverDnSgetrf_bufferSize    m=64 n=64 lda=64    elements=8320
//! ```

use std::collections::BTreeMap;

use crate::{Answer, Question};

const FIRST_LINE: &str = "# ghostgpu table 1";

/// What is known about where a table comes from: `card`, `capability`, `driver`, library versions.
pub type Header = BTreeMap<String, String>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    pub header: Header,
    rows: BTreeMap<Question, Answer>,
}

/// Why a text is not a table.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    #[error("it does not begin with `{FIRST_LINE}`")]
    NotATable,
    #[error("line {0} is not `function`, `arguments` and `answer`, separated by tabs")]
    BadLine(usize),
}

impl Table {
    pub fn read(text: &str) -> Result<Self, ReadError> {
        let mut table = Self::default();
        let mut lines = text.lines().enumerate();
        if lines.next().map(|(_, line)| line.trim_end()) != Some(FIRST_LINE) {
            return Err(ReadError::NotATable);
        }
        for (index, line) in lines {
            if let Some(comment) = line.strip_prefix('#') {
                if let Some((name, value)) = comment.trim_start().split_once('\t') {
                    table.header.insert(name.to_owned(), value.to_owned());
                }
            } else if !line.is_empty() {
                let (question, answer) = row(line).ok_or(ReadError::BadLine(index + 1))?;
                table.rows.insert(question, answer);
            }
        }
        Ok(table)
    }

    pub fn insert(&mut self, question: Question, answer: Answer) -> Option<Answer> {
        self.rows.insert(question, answer)
    }

    pub fn get(&self, question: &Question) -> Option<&Answer> {
        self.rows.get(question)
    }

    pub fn rows(&self) -> impl Iterator<Item = (&Question, &Answer)> {
        self.rows.iter()
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Takes over what `other` has; where both have a line, `other`'s stays.
    pub fn extend(&mut self, other: Self) {
        self.header.extend(other.header);
        self.rows.extend(other.rows);
    }

    /// The whole file.
    pub fn to_text(&self) -> String {
        let mut text = format!("{FIRST_LINE}\n{}", header_lines(&self.header));
        for (question, answer) in &self.rows {
            text.push_str(&file_line(question, answer));
        }
        text
    }
}

/// How a file begins, for one that grows line by line.
pub fn file_beginning(header: &Header) -> String {
    format!("{FIRST_LINE}\n{}", header_lines(header))
}

fn header_lines(header: &Header) -> String {
    header
        .iter()
        .map(|(name, value)| format!("# {name}\t{value}\n"))
        .collect()
}

/// One line of the file with its end.
pub fn file_line(question: &Question, answer: &Answer) -> String {
    format!("{}\t{}\t{answer}\n", question.function, question.arguments)
}

fn row(line: &str) -> Option<(Question, Answer)> {
    let mut fields = line.split('\t');
    let question = Question {
        function: fields.next()?.to_owned(),
        arguments: fields.next()?.to_owned(),
    };
    let answer = Answer(fields.next()?.to_owned());
    fields.next().is_none().then_some((question, answer))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn getrf(m: i64, elements: i64) -> (Question, Answer) {
        let mut question = Question::new("cusolverDnSgetrf_bufferSize");
        question.add("m", m);
        let mut answer = Answer::default();
        answer.add("elements", elements);
        (question, answer)
    }

    #[test]
    fn a_table_is_sorted_and_has_each_question_once() {
        let mut table = Table::default();
        table.header.insert("card".into(), "NVIDIA H200".into());
        for (m, elements) in [(9, 1), (64, 8320), (9, 2)] {
            let (question, answer) = getrf(m, elements);
            table.insert(question, answer);
        }
        assert_eq!(
            table.to_text(),
            "# ghostgpu table 1\n# card\tNVIDIA H200\n\
             cusolverDnSgetrf_bufferSize\tm=64\telements=8320\n\
             cusolverDnSgetrf_bufferSize\tm=9\telements=2\n"
        );
    }

    #[test]
    fn what_is_no_table_says_why() {
        assert_eq!(Table::read("a,b,c\n"), Err(ReadError::NotATable));
        let text = "# ghostgpu table 1\n\ncufftXtMakePlanMany rank=1\n";
        assert_eq!(Table::read(text), Err(ReadError::BadLine(3)));
    }

    #[test]
    fn the_later_of_two_tables_wins() {
        let mut first = Table::default();
        let (question, answer) = getrf(8, 1);
        first.insert(question.clone(), answer);
        let mut second = Table::default();
        let (_, newer) = getrf(8, 2);
        second.insert(question.clone(), newer.clone());
        first.extend(second);
        assert_eq!(first.get(&question), Some(&newer));
    }

    proptest! {
        #[test]
        fn a_written_table_reads_as_it_was(rows in proptest::collection::vec((0i64..1000, 0i64..1_000_000), 0..20)) {
            let mut table = Table::default();
            table.header.insert("driver".into(), "580.1".into());
            for (m, elements) in rows {
                let (question, answer) = getrf(m, elements);
                table.insert(question, answer);
            }
            prop_assert_eq!(Table::read(&table.to_text()), Ok(table));
        }
    }
}
