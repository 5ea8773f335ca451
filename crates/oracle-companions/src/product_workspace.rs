//! How much workspace cuBLASLt wants for a matrix product.
//!
//! It chooses among thousands of kernels by a model of its own, so there is no formula. The products of
//! common networks are in a table recorded on an H200; for others the two patterns behind most of the
//! table's lines are applied. On other cards the answer is nothing: it is a few hundred bytes
//! unless the sum is split, and what they would want is not known.

use std::collections::HashMap;
use std::sync::OnceLock;

const RECORDED: &str = include_str!("h200.tsv");

/// The capability of the card that is asked about, as a compiler writes it: 90 for 9.0.
const ARCHITECTURE_VARIABLE: &str = "GHOSTGPU_ORACLE_ARCHITECTURE";
const HOPPER: &str = "90";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    Single,
    Half,
    Bfloat16,
    Other,
}

impl Element {
    /// From `cudaDataType`.
    pub fn from_number(number: u64) -> Self {
        match number {
            0 => Self::Single,
            2 => Self::Half,
            14 => Self::Bfloat16,
            _ => Self::Other,
        }
    }

    fn from_text(text: &str) -> Self {
        match text {
            "f32" => Self::Single,
            "f16" => Self::Half,
            "bf16" => Self::Bfloat16,
            _ => Self::Other,
        }
    }
}

/// Which of the two factors are transposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Transposition {
    first: bool,
    second: bool,
}

impl Transposition {
    pub fn new(first: bool, second: bool) -> Self {
        Self { first, second }
    }

    fn from_text(text: &str) -> Self {
        let mut letters = text.bytes().map(|letter| letter == b'T');
        let first = letters.next().unwrap_or(false);
        Self::new(first, letters.next().unwrap_or(false))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Product {
    pub element: Element,
    pub transposition: Transposition,
    pub m: u64,
    pub n: u64,
    pub k: u64,
    pub batch: u64,
}

/// What the chosen algorithm wants, with at most `limit` bytes.
pub fn bytes(product: &Product, limit: u64) -> u64 {
    let is_hopper =
        std::env::var(ARCHITECTURE_VARIABLE).map_or(true, |architecture| architecture == HOPPER);
    if limit == 0 || !is_hopper {
        return 0;
    }
    match recorded().get(&(*product, limit)) {
        Some(&known) => known,
        None => estimated(product, limit),
    }
}

fn recorded() -> &'static HashMap<(Product, u64), u64> {
    static TABLE: OnceLock<HashMap<(Product, u64), u64>> = OnceLock::new();
    TABLE.get_or_init(|| RECORDED.lines().filter_map(read_line).collect())
}

fn read_line(line: &str) -> Option<((Product, u64), u64)> {
    if line.starts_with('#') {
        return None;
    }
    let mut fields = line.split('\t');
    let element = Element::from_text(fields.next()?);
    let transposition = Transposition::from_text(fields.next()?);
    let mut number = || fields.next()?.parse::<u64>().ok();
    let product = Product {
        element,
        transposition,
        m: number()?,
        n: number()?,
        k: number()?,
        batch: number()?,
    };
    Some(((product, number()?), number()?))
}

/// Descriptors and counters of a persistent kernel.
const SINGLE_PRECISION_HEADER: u64 = 144;
const HALF_PRECISION_HEADER: u64 = 16;

fn estimated(product: &Product, limit: u64) -> u64 {
    let header = match product.element {
        Element::Single => SINGLE_PRECISION_HEADER,
        _ => HALF_PRECISION_HEADER,
    };
    let tiles = product.m.div_ceil(128) * product.n.div_ceil(128) * product.batch;
    if is_filter_gradient(product) {
        // Few tiles and long sums: each sum is split, about 1,400 terms a part.
        let parts = (product.k / 1394).min(132 / tiles.max(1));
        let sum_bytes = product.m * product.n * 4;
        let fitting = limit.saturating_sub(header) / sum_bytes.max(1);
        let parts = parts.min(fitting);
        return if parts >= 2 {
            header + parts * sum_bytes
        } else {
            0
        };
    }
    // More than about a round of tiles: a persistent kernel.
    let is_long_enough = product.k > 24 || product.element != Element::Single;
    if tiles >= 100 && is_long_enough {
        header
    } else {
        0
    }
}

/// With the channels last, the only product of a convolution whose second factor is transposed
/// and that is not batched.
fn is_filter_gradient(product: &Product) -> bool {
    product.transposition == Transposition::new(false, true) && product.batch == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product(m: u64, n: u64, k: u64, batch: u64) -> Product {
        Product {
            element: Element::Single,
            transposition: Transposition::new(false, false),
            m,
            n,
            k,
            batch,
        }
    }

    #[test]
    fn every_line_of_the_table_is_read() {
        let lines = RECORDED
            .lines()
            .filter(|line| !line.starts_with('#'))
            .count();
        assert!(lines > 1000, "the table has {lines} lines");
        assert_eq!(recorded().len(), lines);
    }

    #[test]
    fn a_measured_product_is_answered_from_the_table() {
        assert_eq!(bytes(&product(784, 128, 512, 16), 4 << 20), 144);
        assert_eq!(bytes(&product(49, 128, 512, 16), 4 << 20), 0);
    }

    #[test]
    fn without_room_nothing_is_wanted() {
        assert_eq!(bytes(&product(784, 128, 512, 16), 0), 0);
    }

    #[test]
    fn an_estimate_never_exceeds_the_limit() {
        let gradient = Product {
            transposition: Transposition::new(false, true),
            ..product(2000, 2000, 1_000_000, 1)
        };
        for limit in [1, 1 << 10, 4 << 20, 128 << 20] {
            assert!(estimated(&gradient, limit) <= limit);
        }
    }
}
