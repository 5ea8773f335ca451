//! Sizes between recorded ones.
//!
//! Workspaces grow steadily with a matrix, in steps of its blocks. So the answer for a size that was
//! not recorded is between those of its neighbours. Without neighbours on both sides, it is that of the
//! next larger recorded size, or that of the next smaller one, scaled up in proportion.

use crate::Series;

impl Series {
    /// A guess for a place where there is no point, rounded up.
    pub fn estimate(&self, place: &[i64]) -> Option<Vec<i64>> {
        self.along_the_diagonal(place)
            .or_else(|| self.along_one_axis(place))
            .or_else(|| self.next_larger(place))
            .or_else(|| self.in_proportion(place))
    }

    /// For square matrices: between square ones.
    fn along_the_diagonal(&self, place: &[i64]) -> Option<Vec<i64>> {
        let sides = self.sides();
        let side = place[*sides.first()?];
        let is_square = |point: &[i64]| sides.iter().all(|&axis| point[axis] == point[sides[0]]);
        if sides.len() < 2 || !is_square(place) {
            return None;
        }
        let line = self.points.iter().filter(|(point, _)| {
            is_square(point)
                && (0..place.len()).all(|axis| sides.contains(&axis) || point[axis] == place[axis])
        });
        between(line.map(|(point, values)| (point[sides[0]], values)), side)
    }

    /// Between two points that differ from the place in one size only, the last named first.
    fn along_one_axis(&self, place: &[i64]) -> Option<Vec<i64>> {
        (0..place.len()).rev().find_map(|axis| {
            let line = self.points.iter().filter(|(point, _)| {
                let is_same = |other: usize| other == axis || point[other] == place[other];
                (0..place.len()).all(is_same) && self.is_alike(point, place)
            });
            between(
                line.map(|(point, values)| (point[axis], values)),
                place[axis],
            )
        })
    }

    /// The smallest point that is at least as large in every size.
    fn next_larger(&self, place: &[i64]) -> Option<Vec<i64>> {
        let larger = self.points.iter().filter(|(point, _)| {
            let is_enough = |axis: usize| point[axis] >= place[axis];
            (0..place.len()).all(is_enough) && self.is_alike(point, place)
        });
        let (_, values) = larger.min_by_key(|(point, _)| volume(point))?;
        Some(values.clone())
    }

    /// The answer of the largest point below the place, scaled up in proportion.
    fn in_proportion(&self, place: &[i64]) -> Option<Vec<i64>> {
        let smaller = self
            .points
            .iter()
            .filter(|(point, _)| (0..place.len()).all(|axis| point[axis] <= place[axis]));
        let (point, values) = smaller.max_by_key(|(point, _)| volume(point))?;
        // A single size stands for a square matrix.
        let power = if place.len() == 1 { 2 } else { 1 };
        let (old, new) = (volume(point).pow(power), volume(place).pow(power));
        let scaled = values
            .iter()
            .map(|&value| i64::try_from((i128::from(value) * new).div_euclid(old.max(1))).ok());
        scaled.collect()
    }

    /// The axes that are sides of one matrix.
    fn sides(&self) -> Vec<usize> {
        let names = ["m", "n", "k", "a_rows", "a_columns"];
        let axes = self.axes.iter().enumerate();
        axes.filter(|(_, axis)| names.contains(&axis.as_str()))
            .map(|(index, _)| index)
            .collect()
    }

    /// Whether both are square or both are not: square matrices often have a special algorithm.
    fn is_alike(&self, first: &[i64], second: &[i64]) -> bool {
        let side = |name: &str| self.axes.iter().position(|axis| axis == name);
        let (Some(rows), Some(columns)) = (side("m"), side("n")) else {
            return true;
        };
        first[rows].cmp(&first[columns]) == second[rows].cmp(&second[columns])
    }
}

fn volume(place: &[i64]) -> i128 {
    place.iter().map(|&size| i128::from(size.max(1))).product()
}

/// On the straight line between the neighbours below and above.
fn between<'a>(line: impl Iterator<Item = (i64, &'a Vec<i64>)>, size: i64) -> Option<Vec<i64>> {
    let mut below: Option<(i64, &Vec<i64>)> = None;
    let mut above: Option<(i64, &Vec<i64>)> = None;
    for (other, values) in line {
        if other <= size && below.is_none_or(|(best, _)| other > best) {
            below = Some((other, values));
        }
        if other >= size && above.is_none_or(|(best, _)| other < best) {
            above = Some((other, values));
        }
    }
    let ((low, low_values), (high, high_values)) = (below?, above?);
    let (part, whole) = (i128::from(size - low), i128::from((high - low).max(1)));
    let values = low_values.iter().zip(high_values).map(|(&start, &end)| {
        let rise = i128::from(end - start) * part;
        start + ((rise + whole - 1).div_euclid(whole)) as i64
    });
    Some(values.collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::Series;

    fn series(axes: &[&str], points: &[(&[i64], i64)]) -> Series {
        Series {
            labels: BTreeMap::new(),
            axes: axes.iter().map(|&axis| axis.to_owned()).collect(),
            outputs: vec!["elements".to_owned()],
            points: points
                .iter()
                .map(|(place, value)| (place.to_vec(), vec![*value]))
                .collect(),
        }
    }

    #[test]
    fn between_two_sizes_an_answer_lies_between_theirs() {
        let series = series(&["n"], &[(&[100], 1000), (&[200], 3000)]);
        assert_eq!(series.estimate(&[150]), Some(vec![2000]));
        assert_eq!(series.estimate(&[101]), Some(vec![1020]));
    }

    #[test]
    fn a_square_matrix_lies_between_square_ones() {
        let points: [(&[i64], i64); 4] = [
            (&[1, 8, 8], 10),
            (&[1, 16, 16], 30),
            (&[1, 16, 8], 900),
            (&[1, 32, 8], 1000),
        ];
        let series = series(&["batch", "m", "n"], &points);
        assert_eq!(series.estimate(&[1, 12, 12]), Some(vec![20]));
        assert_eq!(series.estimate(&[1, 24, 8]), Some(vec![950]));
        assert_eq!(series.estimate(&[1, 20, 5]), Some(vec![1000]));
    }

    #[test]
    fn a_larger_batch_takes_more_in_proportion() {
        let series = series(&["batch", "n"], &[(&[2, 8], 10), (&[64, 8], 320)]);
        assert_eq!(series.estimate(&[33, 8]), Some(vec![165]));
        assert_eq!(series.estimate(&[640, 8]), Some(vec![3200]));
    }

    #[test]
    fn beyond_the_largest_matrix_it_grows_with_its_area() {
        let series = series(&["n"], &[(&[256], 1000)]);
        assert_eq!(series.estimate(&[512]), Some(vec![4000]));
        assert_eq!(series.estimate(&[100]), Some(vec![1000]));
    }
}
