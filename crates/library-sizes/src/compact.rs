//! Many recorded answers in little room: for each family of functions, points in the space of sizes.
//!
//! ```text
//! geqrf    type=D    m n    elements    1,1=786432 257,300=831488
//! ```
//!
//! Labels and sizes that make no difference in the recording are left out.

use std::collections::{BTreeMap, BTreeSet};

use crate::canonical::Canonical;
use crate::{Answer, Table};

/// One family with certain labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Series {
    pub labels: BTreeMap<String, String>,
    /// The names of the sizes that matter, in the order of the coordinates.
    pub axes: Vec<String>,
    /// The names of the answer's numbers.
    pub outputs: Vec<String>,
    pub points: BTreeMap<Vec<i64>, Vec<i64>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compact {
    families: BTreeMap<String, Vec<Series>>,
}

/// A row while it is being reduced.
type Row = (BTreeMap<String, String>, BTreeMap<String, i64>, Vec<i64>);

impl Compact {
    /// From recorded tables. Of questions that turn out to be the same, the last answer stays.
    pub fn from_table(table: &Table) -> Self {
        let mut rows: BTreeMap<(String, Vec<String>), Vec<Row>> = BTreeMap::new();
        for (question, answer) in table.rows() {
            let canonical = Canonical::new(question);
            let numbers: Vec<(&str, i64)> = answer.numbers().collect();
            let outputs = numbers.iter().map(|(name, _)| (*name).to_owned()).collect();
            let values = numbers.iter().map(|(_, value)| *value).collect();
            rows.entry((canonical.family, outputs)).or_default().push((
                canonical.labels,
                canonical.sizes,
                values,
            ));
        }
        let mut families: BTreeMap<String, Vec<Series>> = BTreeMap::new();
        for ((family, outputs), rows) in rows {
            let made = series_of(reduced(rows), &outputs);
            families.entry(family).or_default().extend(made);
        }
        Self { families }
    }

    /// The series for a question, and whether its labels are the recorded ones.
    pub fn find(&self, canonical: &Canonical) -> Option<(&Series, bool)> {
        let all = self.families.get(&canonical.family)?;
        let differences = |series: &Series| {
            let labels = series.labels.iter();
            labels
                .filter(|(name, value)| canonical.labels.get(*name) != Some(value))
                .count()
        };
        let nearest = all.iter().min_by_key(|series| differences(series))?;
        Some((nearest, differences(nearest) == 0))
    }

    /// Every series with its family.
    pub fn series(&self) -> impl Iterator<Item = (&str, &Series)> {
        self.families
            .iter()
            .flat_map(|(family, all)| all.iter().map(move |one| (family.as_str(), one)))
    }

    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for (family, all) in &self.families {
            for series in all {
                text.push_str(&series.to_line(family));
            }
        }
        text
    }

    /// What [`Compact::to_text`] wrote; `None` if a line is not of that form.
    pub fn read(text: &str) -> Option<Self> {
        let mut families: BTreeMap<String, Vec<Series>> = BTreeMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (family, series) = Series::from_line(line)?;
            families.entry(family.to_owned()).or_default().push(series);
        }
        Some(Self { families })
    }
}

/// Rows without the labels and sizes that make no difference.
///
/// Only rows that differ in nothing else can show that, so a label or size that always changes together
/// with another one stays.
fn reduced(mut rows: Vec<Row>) -> Vec<Row> {
    let labels: BTreeSet<String> = rows.iter().flat_map(|row| row.0.keys().cloned()).collect();
    for label in &labels {
        rows = without_if_needless(rows, |row| {
            row.0.remove(label);
        });
    }
    let sizes: BTreeSet<String> = rows.iter().flat_map(|row| row.1.keys().cloned()).collect();
    for size in &sizes {
        rows = without_if_needless(rows, |row| {
            row.1.remove(size);
        });
    }
    rows
}

/// Removes something from every row if many of the rows are then the same, with the same answer.
fn without_if_needless(rows: Vec<Row>, take_out: impl Fn(&mut Row)) -> Vec<Row> {
    let mut without = rows.clone();
    without.iter_mut().for_each(take_out);
    match (different(&rows), different(&without)) {
        (Some(before), Some(after)) if after * 4 <= before * 3 => without,
        _ => rows,
    }
}

/// How many different questions the rows have; `None` if one has two answers.
fn different(rows: &[Row]) -> Option<usize> {
    let mut known = BTreeMap::new();
    for (labels, sizes, values) in rows {
        if known
            .insert((labels, sizes), values)
            .is_some_and(|before| before != values)
        {
            return None;
        }
    }
    Some(known.len())
}

fn series_of(rows: Vec<Row>, outputs: &[String]) -> Vec<Series> {
    let mut made: BTreeMap<(BTreeMap<String, String>, Vec<String>), Series> = BTreeMap::new();
    for (labels, sizes, values) in rows {
        let axes: Vec<String> = sizes.keys().cloned().collect();
        let series = made
            .entry((labels.clone(), axes.clone()))
            .or_insert_with(|| Series {
                labels,
                axes,
                outputs: outputs.to_vec(),
                points: BTreeMap::new(),
            });
        series.points.insert(sizes.into_values().collect(), values);
    }
    made.into_values().collect()
}

impl Series {
    /// Where a question lies among the points; `None` if it lacks one of the sizes.
    pub fn place(&self, canonical: &Canonical) -> Option<Vec<i64>> {
        let sizes = self.axes.iter();
        sizes
            .map(|axis| canonical.sizes.get(axis).copied())
            .collect()
    }

    pub fn answer(&self, values: &[i64]) -> Answer {
        let mut answer = Answer::default();
        for (name, value) in self.outputs.iter().zip(values) {
            answer.add(name, value);
        }
        answer
    }

    fn to_line(&self, family: &str) -> String {
        let labels: Vec<String> = self
            .labels
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let points: Vec<String> = self
            .points
            .iter()
            .map(|(place, values)| format!("{}={}", listed(place), listed(values)))
            .collect();
        format!(
            "{family}\t{}\t{}\t{}\t{}\n",
            labels.join(" "),
            self.axes.join(" "),
            self.outputs.join(" "),
            points.join(" ")
        )
    }

    fn from_line(line: &str) -> Option<(&str, Self)> {
        let mut fields = line.split('\t');
        let family = fields.next()?;
        let labels = words(fields.next()?).map(|word| {
            let (name, value) = word.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        });
        let labels = labels.collect::<Option<_>>()?;
        let axes = words(fields.next()?).map(str::to_owned).collect();
        let outputs = words(fields.next()?).map(str::to_owned).collect();
        let points = words(fields.next()?).map(|word| {
            let (place, values) = word.split_once('=')?;
            Some((numbers(place)?, numbers(values)?))
        });
        let points = points.collect::<Option<_>>()?;
        let series = Self {
            labels,
            axes,
            outputs,
            points,
        };
        Some((family, series))
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(' ').filter(|word| !word.is_empty())
}

fn listed(numbers: &[i64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(i64::to_string).collect();
    numbers.join(",")
}

fn numbers(text: &str) -> Option<Vec<i64>> {
    text.split(',')
        .filter(|number| !number.is_empty())
        .map(|number| number.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Question;

    fn recorded() -> Table {
        let mut table = Table::default();
        let mut add = |function: &str, arguments: String, elements: i64| {
            let question = Question {
                function: function.to_owned(),
                arguments,
            };
            table.insert(question, Answer(format!("elements={elements}")));
        };
        for n in [1, 2] {
            for m in [1, 2, 3] {
                let arguments = format!("m={m} n={n} lda={m}");
                add("cusolverDnSgeqrf_bufferSize", arguments.clone(), n * 10);
                add("cusolverDnDgeqrf_bufferSize", arguments, n * 10);
            }
            for triangle in [0, 1] {
                let arguments = format!("triangle={triangle} n={n} lda={n}");
                add("cusolverDnSpotrf_bufferSize", arguments.clone(), n);
                add("cusolverDnDpotrf_bufferSize", arguments, n * 2);
            }
        }
        add("cusolverDnXgeev_bufferSize", "n=256".to_owned(), 77);
        table
    }

    #[test]
    fn what_makes_no_difference_is_left_out() {
        let text = Compact::from_table(&recorded()).to_text();
        assert_eq!(
            text,
            "Xgeev\t\tn\telements\t256=77\n\
             geqrf\t\tn\telements\t1=10 2=20\n\
             potrf\ttype=D\tn\telements\t1=2 2=4\n\
             potrf\ttype=S\tn\telements\t1=1 2=2\n"
        );
    }

    #[test]
    fn every_recorded_answer_is_found_again() {
        let table = recorded();
        let compact = Compact::read(&Compact::from_table(&table).to_text()).expect("readable");
        for (question, answer) in table.rows() {
            let canonical = Canonical::new(question);
            let (series, is_exact) = compact.find(&canonical).expect("a series");
            assert!(is_exact, "{question}");
            let place = series.place(&canonical).expect("a place");
            assert_eq!(&series.answer(&series.points[&place]), answer, "{question}");
        }
    }
}
