//! The workspace that cuBLASLt needs for a matrix product.
//!
//! It chooses among thousands of kernels by a model of its own, so there is no formula. The products of
//! common networks are in a table recorded on an H200 ([`crate::recorded_products`]), more of them in a
//! smaller one recorded through cuDNN's own answers; for others, a few rules that explain most of that table's lines are
//! applied. They reproduce 1,066 of its 1,245 lines. On other cards the answer is 0: it is a few hundred bytes
//! unless the sum is split, and the true size is unknown. This library is loaded into a process that cannot
//! record assumptions, so answers from the rules are documented only here.
//!
//! cuDNN requests eight algorithms and reserves the largest workspace, as all 780 products in both recordings
//! show.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::recorded_products::{self, Recorded};

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

    /// As tables name it; nothing for a type that none of them has.
    pub fn text(self) -> Option<&'static str> {
        match self {
            Self::Single => Some("f32"),
            Self::Half => Some("f16"),
            Self::Bfloat16 => Some("bf16"),
            Self::Other => None,
        }
    }

    pub fn from_text(text: &str) -> Self {
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

    /// As tables name it: `T` for a transposed factor.
    pub fn text(self) -> &'static str {
        match (self.first, self.second) {
            (false, false) => "NN",
            (false, true) => "NT",
            (true, false) => "TN",
            (true, true) => "TT",
        }
    }

    pub fn from_text(text: &str) -> Self {
        let mut letters = text.bytes().map(|letter| letter == b'T');
        let first = letters.next().unwrap_or(false);
        Self::new(first, letters.next().unwrap_or(false))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Product {
    pub element: Element,
    /// Of the result, which may be wider.
    pub result: Element,
    pub transposition: Transposition,
    pub m: u64,
    pub n: u64,
    pub k: u64,
    pub batch: u64,
}

/// The workspace of the chosen algorithm, at most `limit` bytes.
pub fn bytes(product: &Product, limit: u64) -> u64 {
    let is_hopper =
        std::env::var(ARCHITECTURE_VARIABLE).map_or(true, |architecture| architecture == HOPPER);
    if limit == 0 || !is_hopper {
        return 0;
    }
    if let Some(bytes) = recorded_through_cudnn(product, limit) {
        return bytes;
    }
    match recorded_products::find(product, limit) {
        Recorded::Known(bytes) => bytes,
        Recorded::Between(nearer, farther) => match estimated(product, limit) {
            bytes if bytes == farther => bytes,
            _ => nearer,
        },
        Recorded::Unknown => estimated(product, limit),
    }
}

fn recorded_through_cudnn(product: &Product, limit: u64) -> Option<u64> {
    // cuDNN's answers do not show the type of the product's result.
    let product = Product {
        result: product.element,
        ..*product
    };
    recorded().get(&(product, limit)).copied()
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
        result: element,
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

/// Partial sums are kept in single precision.
const SUM_ELEMENT_BYTES: u64 = 4;

fn estimated(product: &Product, limit: u64) -> u64 {
    let bytes = match (is_filter_gradient(product), product.element) {
        (true, Element::Single) => single_precision_split(product, limit),
        (true, _) => half_precision_split(product, limit),
        (false, _) => persistent_kernel(product),
    };
    // An algorithm that needs more than the limit is not proposed.
    if bytes <= limit { bytes } else { 0 }
}

/// A header, if there are enough tiles to keep a persistent kernel's blocks busy.
fn persistent_kernel(product: &Product) -> u64 {
    if !rows_are_aligned(product) {
        return 0;
    }
    match product.element {
        Element::Single if tiles(product, 64, 64) >= 150 && product.k > 24 => {
            SINGLE_PRECISION_HEADER
        }
        Element::Single => 0,
        _ if tiles(product, 256, 128) >= 66 => HALF_PRECISION_HEADER,
        _ => 0,
    }
}

/// Few tiles and long sums: each sum is split, at least 1,357 terms a part, into as many parts as
/// blocks would be idle otherwise.
fn half_precision_split(product: &Product, limit: u64) -> u64 {
    let most_parts = (product.k / 1357).min(129 / tiles(product, 128, 128).max(1));
    let room = limit.saturating_sub(HALF_PRECISION_HEADER);
    match split_bytes(product, most_parts, room) {
        0 => 0,
        bytes => HALF_PRECISION_HEADER + bytes,
    }
}

/// As in half precision, but with two rounds of blocks, shorter parts and no header. With little
/// room the parts are added up in place, which takes one 32-bit counter for each tile.
fn single_precision_split(product: &Product, limit: u64) -> u64 {
    const LITTLE_ROOM: u64 = 4 << 20;
    const TERMS_AT_A_TIME: u64 = 4;
    let most_parts = product.k / 56;
    if most_parts < 2 {
        return 0;
    }
    if limit <= LITTLE_ROOM {
        return (tiles(product, 64, 64) * 4).next_multiple_of(16);
    }
    let sum_bytes = product.m * product.n * SUM_ELEMENT_BYTES;
    let wanted = most_parts
        .min(264 / tiles(product, 128, 128).max(1))
        .min(limit / sum_bytes.max(1));
    // Parts are whole multiples of four terms, so that fewer may do than were wanted.
    let terms = product
        .k
        .div_ceil(wanted.max(1))
        .next_multiple_of(TERMS_AT_A_TIME);
    split_bytes(product, product.k.div_ceil(terms), limit)
}

/// For up to `most_parts` results of the product's size that fit into `room`; nothing for a single one.
fn split_bytes(product: &Product, most_parts: u64, room: u64) -> u64 {
    let sum_bytes = product.m * product.n * SUM_ELEMENT_BYTES;
    let parts = most_parts.min(room / sum_bytes.max(1));
    if parts >= 2 { parts * sum_bytes } else { 0 }
}

fn tiles(product: &Product, tile_m: u64, tile_n: u64) -> u64 {
    product.m.div_ceil(tile_m) * product.n.div_ceil(tile_n) * product.batch
}

/// Whether every row in memory begins at a multiple of 16 bytes, without which Hopper's
/// tensor copies, and the persistent kernels built on them, cannot be used.
fn rows_are_aligned(product: &Product) -> bool {
    let element_bytes = match product.element {
        Element::Single => 4,
        _ => 2,
    };
    let first = if product.transposition.first {
        product.k
    } else {
        product.m
    };
    let second = if product.transposition.second {
        product.n
    } else {
        product.k
    };
    [first, second, product.m]
        .iter()
        .all(|length| (length * element_bytes).is_multiple_of(16))
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
            result: Element::Single,
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
    fn both_recordings_agree_wherever_they_meet() {
        let mut met = 0;
        for ((product, limit), known) in recorded() {
            // With a wider result, where the other recording has that one.
            let candidates = [product.element, Element::Single];
            let found = candidates
                .map(|result| recorded_products::find(&Product { result, ..*product }, *limit));
            if let Some(Recorded::Known(_)) = found.iter().find(|one| **one != Recorded::Unknown) {
                met += 1;
                assert!(
                    found.contains(&Recorded::Known(*known)),
                    "{product:?}: {known} {found:?}"
                );
            }
        }
        assert!(met >= 780, "{met} lines are in both");
    }

    #[test]
    fn without_room_nothing_is_wanted() {
        assert_eq!(bytes(&product(784, 128, 512, 16), 0), 0);
    }

    #[test]
    fn an_estimate_never_exceeds_the_limit() {
        for element in [Element::Single, Element::Half, Element::Bfloat16] {
            for transposition in [(false, false), (false, true), (true, false)] {
                let product = Product {
                    element,
                    transposition: Transposition::new(transposition.0, transposition.1),
                    ..product(2000, 2000, 1_000_000, 1)
                };
                for limit in [1, 20, 1 << 10, 4 << 20, 128 << 20] {
                    assert!(estimated(&product, limit) <= limit);
                }
            }
        }
    }

    #[test]
    fn rows_that_are_not_aligned_rule_out_a_persistent_kernel() {
        let aligned = product(784, 512, 512, 32);
        assert_eq!(estimated(&aligned, 4 << 20), SINGLE_PRECISION_HEADER);
        let odd = product(49, 2048, 512, 32);
        assert_eq!(estimated(&odd, 4 << 20), 0);
    }

    #[test]
    fn filter_gradients_are_split_as_recorded() {
        let gradient = |element, m, n, k| Product {
            element,
            transposition: Transposition::new(false, true),
            ..product(m, n, k, 1)
        };
        for (gradient, limit) in [
            (gradient(Element::Half, 480, 128, 12544), 4 << 20),
            (gradient(Element::Bfloat16, 1024, 256, 6272), 128 << 20),
            (gradient(Element::Single, 1024, 256, 3136), 128 << 20),
            (gradient(Element::Single, 1024, 256, 3136), 4 << 20),
        ] {
            let known = recorded_through_cudnn(&gradient, limit);
            assert_eq!(Some(estimated(&gradient, limit)), known, "{gradient:?}");
        }
    }

    #[test]
    fn parts_of_a_split_sum_are_whole_multiples_of_four_terms() {
        // As recorded on an H200: 264 parts are wanted, and fewer do.
        for (m, n, k, parts) in [
            (58, 58, 150_528, 264),
            (58, 58, 165_888, 263),
            (58, 58, 200_704, 263),
            (3, 64, 49_152, 262),
        ] {
            let gradient = Product {
                transposition: Transposition::new(false, true),
                ..product(m, n, k, 1)
            };
            assert_eq!(
                estimated(&gradient, 128 << 20),
                parts * m * n * 4,
                "{m}x{n}, {k} terms"
            );
        }
    }

    #[test]
    fn the_estimate_gives_most_lines_of_the_table() {
        let equal = recorded()
            .iter()
            .filter(|((product, limit), known)| estimated(product, *limit) == **known)
            .count();
        assert_eq!((equal, recorded().len()), (1069, 1245));
    }
}
