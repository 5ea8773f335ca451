//! Matrix products whose workspaces were recorded on an H200, in series that differ in one size.
//!
//! Of 134,046 products, those of networks people use with the batches people use, every answer is
//! here. A size between two recorded ones with the same answer has that answer too: leaving out each
//! recorded size in turn, that is right for 97.5 % of them.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::product_workspace::{Element, Product, Transposition};

const RECORDED: &str = include_str!("h200_products.tsv");

/// The limits under which was recorded: cuDNN's own.
const LIMITS: [u64; 2] = [4 << 20, 128 << 20];

/// A product without the one size that differs, which is 0 here.
type Series = (Element, Element, Transposition, [u64; 4]);

/// Sizes from the first to the last that have these workspaces, one for each limit.
struct Range {
    first: u64,
    last: u64,
    bytes: [u64; 2],
}

/// What the recording says about a product.
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
        let mut others = sizes;
        others[place] = 0;
        let series = (
            product.element,
            product.result,
            product.transposition,
            others,
        );
        let Some(ranges) = table().get(&series) else {
            continue;
        };
        return look_up(ranges, sizes[place], column);
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

fn table() -> &'static HashMap<Series, Vec<Range>> {
    static TABLE: OnceLock<HashMap<Series, Vec<Range>>> = OnceLock::new();
    TABLE.get_or_init(|| RECORDED.lines().filter_map(read_line).collect())
}

fn read_line(line: &str) -> Option<(Series, Vec<Range>)> {
    if line.starts_with('#') {
        return None;
    }
    let mut fields = line.split('\t');
    let element = Element::from_text(fields.next()?);
    let result = Element::from_text(fields.next()?);
    let transposition = Transposition::from_text(fields.next()?);
    let mut sizes = [0; 4];
    for size in &mut sizes {
        let text = fields.next()?;
        *size = if text == "*" { 0 } else { text.parse().ok()? };
    }
    let ranges = fields.next()?.split(' ').map(read_range);
    let ranges = ranges.collect::<Option<Vec<Range>>>()?;
    Some(((element, result, transposition, sizes), ranges))
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
    fn every_line_of_the_table_is_read_and_its_ranges_rise() {
        let lines = RECORDED.lines().filter(|line| !line.starts_with('#'));
        assert_eq!(table().len(), lines.count());
        for ranges in table().values() {
            assert!(ranges.iter().all(|range| range.first <= range.last));
            assert!(ranges.is_sorted_by(|one, next| one.last < next.first));
        }
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
