//! Descriptors as text, so that questions about them can be stored.

use std::collections::BTreeMap;
use std::fmt::Write;

/// `cudaDataType`, as short as in a shape: `f32`, `c64` (two doubles are `c64`: 64 bits each).
pub fn data_type(number: i32) -> String {
    let name = match number {
        0 => "f32",
        1 => "f64",
        2 => "f16",
        3 => "i8",
        4 => "c32",
        5 => "c64",
        6 => "c16",
        8 => "u8",
        10 => "i32",
        14 => "bf16",
        15 => "cbf16",
        28 => "f8e4m3",
        29 => "f8e5m2",
        _ => return format!("type{number}"),
    };
    name.to_owned()
}

/// A sparse matrix in compressed rows or coordinates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SparseMatrix {
    pub format: SparseFormat,
    pub rows: i64,
    pub columns: i64,
    pub non_zeros: i64,
    /// `cusparseIndexType_t`
    pub index_type: i32,
    /// `cudaDataType`
    pub element: i32,
    pub batch: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SparseFormat {
    CompressedRows,
    Coordinates,
}

impl SparseMatrix {
    /// A single matrix. `index_type` and `element` are numbers of cuSPARSE's and CUDA's.
    pub fn new(
        format: SparseFormat,
        [rows, columns, non_zeros]: [i64; 3],
        index_type: i32,
        element: i32,
    ) -> Self {
        Self {
            format,
            rows,
            columns,
            non_zeros,
            index_type,
            element,
            batch: 1,
        }
    }

    pub fn words(&self) -> String {
        let format = match self.format {
            SparseFormat::CompressedRows => "csr",
            SparseFormat::Coordinates => "coo",
        };
        format!(
            "{format}({}x{},nz{},{},index{}{})",
            self.rows,
            self.columns,
            self.non_zeros,
            data_type(self.element),
            self.index_type,
            batch_words(self.batch)
        )
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DenseMatrix {
    pub rows: i64,
    pub columns: i64,
    pub leading: i64,
    /// `cudaDataType`
    pub element: i32,
    /// `cusparseOrder_t`: 1 by columns, 2 by rows
    pub order: i32,
    pub batch: i32,
}

impl DenseMatrix {
    pub fn words(&self) -> String {
        let order = match self.order {
            1 => "columns".to_owned(),
            2 => "rows".to_owned(),
            other => format!("order{other}"),
        };
        format!(
            "dense({}x{},ld{},{},{order}{})",
            self.rows,
            self.columns,
            self.leading,
            data_type(self.element),
            batch_words(self.batch)
        )
    }
}

pub fn dense_vector(length: i64, element: i32) -> String {
    format!("vector({length},{})", data_type(element))
}

fn batch_words(batch: i32) -> String {
    match batch {
        0 | 1 => String::new(),
        several => format!(",batch{several}"),
    }
}

/// Numbered attributes as cuBLASLt's descriptors hold them: `{0=0,2=784,3=512}`.
///
/// Attributes that are addresses are not part of a problem; that they are there may be.
pub fn attributes(values: &BTreeMap<i32, Vec<u8>>, addresses: &[i32]) -> String {
    let mut text = String::from("{");
    for (name, bytes) in values {
        if text.len() > 1 {
            text.push(',');
        }
        // Writing to a string cannot fail.
        let _ = match (addresses.contains(name), word(bytes)) {
            (true, Some(0)) => write!(text, "{name}=none"),
            (true, _) => write!(text, "{name}=some"),
            (false, Some(number)) => write!(text, "{name}={number}"),
            (false, None) => write!(text, "{name}={bytes:02x?}").map(|()| {
                text.retain(|letter| letter != ' ');
            }),
        };
    }
    text.push('}');
    text
}

fn word(bytes: &[u8]) -> Option<u64> {
    let mut word = [0; 8];
    word.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(u64::from_le_bytes(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_have_no_spaces_and_tell_batches() {
        let mut sparse = SparseMatrix {
            format: SparseFormat::CompressedRows,
            rows: 1024,
            columns: 512,
            non_zeros: 7,
            index_type: 2,
            element: 0,
            batch: 1,
        };
        assert_eq!(sparse.words(), "csr(1024x512,nz7,f32,index2)");
        sparse.batch = 4;
        assert_eq!(sparse.words(), "csr(1024x512,nz7,f32,index2,batch4)");
        let dense = DenseMatrix {
            rows: 3,
            columns: 4,
            leading: 3,
            element: 1,
            order: 1,
            batch: 0,
        };
        assert_eq!(dense.words(), "dense(3x4,ld3,f64,columns)");
    }

    #[test]
    fn attributes_that_are_addresses_appear_without_their_values() {
        let values = BTreeMap::from([
            (0, vec![77, 0, 0, 0]),
            (8, 0x7f00_1234_u64.to_le_bytes().to_vec()),
            (20, vec![1; 9]),
        ]);
        let text = attributes(&values, &[8]);
        assert_eq!(text, "{0=77,8=some,20=[01,01,01,01,01,01,01,01,01]}");
    }
}
