//! Matrix products whose workspaces were recorded on an H200, in series that differ in one size.
//!
//! Of 451,685 products, those of networks people use with the pictures and batches people use, every
//! answer is here. A size between two recorded ones with the same answer has that answer too: leaving out each
//! recorded size in turn, that is right for 97.5 % of them.

use std::cmp::Ordering;

use crate::product_workspace::Product;

const RECORDED: &str = include_str!("h200_products.tsv");

/// The limits under which was recorded: cuDNN's own.
const LIMITS: [u64; 2] = [4 << 20, 128 << 20];

/// Sizes from the first to the last that have these workspaces, one for each limit.
struct Range {
    first: u64,
    last: u64,
    bytes: [u64; 2],
}

/// What the recording tells about a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// This product, or products on both sides of it with the same answer.
    Known(u64),
    /// The products on both sides, the nearer one first, if they are in the recording.
    Between(u64, u64),
    Unknown,
}

/// The answer for one product under a limit.
pub fn find(product: &Product, limit: u64) -> Recorded {
    let Some(column) = LIMITS.iter().position(|&known| known == limit) else {
        return Recorded::Unknown;
    };
    let sizes = [product.m, product.n, product.k, product.batch];
    // The batch, then the size that the batch is a factor of.
    for place in [3, 1, 2] {
        let ranges = series(product, place).and_then(|series| ranges_of(RECORDED, &series));
        if let Some(ranges) = ranges {
            return look_up(&ranges, sizes[place], column);
        }
    }
    Recorded::Unknown
}

fn look_up(ranges: &[Range], size: u64, column: usize) -> Recorded {
    let next = ranges.partition_point(|range| range.last < size);
    let after = ranges.get(next);
    if let Some(range) = after.filter(|range| range.first <= size) {
        return Recorded::Known(range.bytes[column]);
    }
    let before = next.checked_sub(1).and_then(|index| ranges.get(index));
    match (before, after) {
        (Some(before), Some(after)) => {
            let (low, high) = (before.bytes[column], after.bytes[column]);
            if low == high {
                Recorded::Known(low)
            } else if size * size < before.last * after.first {
                Recorded::Between(low, high)
            } else {
                Recorded::Between(high, low)
            }
        }
        _ => Recorded::Unknown,
    }
}

/// The ranges of the line that begins with `series`. Lines are sorted, so only a few are examined.
fn ranges_of(table: &'static str, series: &str) -> Option<Vec<Range>> {
    let (mut low, mut high) = (0, table.len());
    while low < high {
        let middle = low + (high - low) / 2;
        let start = table[..middle].rfind('\n').map_or(0, |end| end + 1);
        let end = table[start..]
            .find('\n')
            .map_or(table.len(), |end| start + end);
        let line = &table[start..end];
        let (key, ranges) = line.rsplit_once('\t').unwrap_or((line, ""));
        match key.cmp(series) {
            Ordering::Equal => return ranges.split(' ').map(read_range).collect(),
            Ordering::Less => low = end + 1,
            Ordering::Greater => high = start,
        }
    }
    None
}

/// A product as lines begin, with a star for the size in `place`.
fn series(product: &Product, place: usize) -> Option<String> {
    let mut sizes = [product.m, product.n, product.k, product.batch].map(|size| size.to_string());
    sizes[place] = "*".to_owned();
    Some(format!(
        "{}\t{}\t{}\t{}",
        product.element.text()?,
        product.result.text()?,
        product.transposition.text(),
        sizes.join("\t")
    ))
}

/// `32-128:144,144`, or `32:0,16` for a single size.
fn read_range(text: &str) -> Option<Range> {
    let (sizes, bytes) = text.split_once(':')?;
    let (first, last) = sizes.split_once('-').unwrap_or((sizes, sizes));
    let (small, large) = bytes.split_once(',')?;
    Some(Range {
        first: first.parse().ok()?,
        last: last.parse().ok()?,
        bytes: [small.parse().ok()?, large.parse().ok()?],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_found_and_its_ranges_rise() {
        let mut lines = 0;
        for line in RECORDED.lines().filter(|line| !line.starts_with('#')) {
            let (series, _) = line.rsplit_once('\t').expect("a series and its ranges");
            let ranges = ranges_of(RECORDED, series).expect("a line that is found");
            assert!(ranges.iter().all(|range| range.first <= range.last));
            assert!(ranges.is_sorted_by(|one, next| one.last < next.first));
            lines += 1;
        }
        assert!(lines > 40_000, "only {lines} lines");
        assert!(ranges_of(RECORDED, "f32\tf32\tNN\t7\t*\t7\t1").is_none());
        assert!(ranges_of("", "f32").is_none());
    }

    #[test]
    fn a_size_between_two_answers_is_not_taken_for_known() {
        let ranges: Vec<Range> = ["8-16:0,0", "64:144,144", "100:144,16"]
            .map(|text| read_range(text).expect("a range"))
            .into();
        assert_eq!(look_up(&ranges, 12, 0), Recorded::Known(0));
        assert_eq!(look_up(&ranges, 20, 0), Recorded::Between(0, 144));
        assert_eq!(look_up(&ranges, 50, 0), Recorded::Between(144, 0));
        assert_eq!(look_up(&ranges, 80, 0), Recorded::Known(144));
        assert_eq!(look_up(&ranges, 99, 1), Recorded::Between(16, 144));
        assert_eq!(look_up(&ranges, 4, 0), Recorded::Unknown);
        assert_eq!(look_up(&ranges, 400, 0), Recorded::Unknown);
    }
}
