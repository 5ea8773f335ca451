//! What a question is about, without what cannot change its answer: a family of functions, labels
//! (types, modes, layouts) and sizes.

use std::collections::BTreeMap;

use crate::{Question, fft};

/// A question taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Canonical {
    /// A function, or several that do the same for different types: `geqrf`, `SpMM`.
    pub family: String,
    pub labels: BTreeMap<String, String>,
    pub sizes: BTreeMap<String, i64>,
}

/// Arguments that are sizes; other numbers are modes and types.
const SIZES: [&str; 9] = [
    "m",
    "n",
    "k",
    "right_sides",
    "batch",
    "block_rows",
    "blocks",
    "block",
    "non_zeros",
];

/// The same operation is called otherwise for complex numbers.
const COMPLEX_NAMES: [(&str, &str); 5] = [
    ("ungqr", "orgqr"),
    ("unmqr", "ormqr"),
    ("heevd", "syevd"),
    ("heevj", "syevj"),
    ("heevjBatched", "syevjBatched"),
];

impl Canonical {
    pub fn new(question: &Question) -> Self {
        let mut canonical = Self::default();
        canonical.set_family(&question.function);
        for (name, value) in question.arguments() {
            canonical.add(name, value);
        }
        canonical
    }

    fn set_family(&mut self, function: &str) {
        let short = ["cusolverDn", "cusparse", "cufft"]
            .iter()
            .find_map(|prefix| function.strip_prefix(prefix))
            .unwrap_or(function);
        let short = short
            .trim_end_matches("Ext")
            .trim_end_matches("_bufferSize");
        let is_typed = function.starts_with("cusolverDn") || short.contains("bsrs");
        let mut name = short;
        if is_typed && let Some(rest) = short.strip_prefix(['S', 'D', 'C', 'Z']) {
            self.labels.insert("type".to_owned(), short[..1].to_owned());
            name = rest;
        }
        let complex = COMPLEX_NAMES.iter().find(|(complex, _)| *complex == name);
        self.family = complex.map_or(name, |(_, real)| real).to_owned();
    }

    fn add(&mut self, name: &str, value: &str) {
        if self.family == fft::MAKE_PLAN.trim_start_matches("cufft") {
            self.add_of_plan(name, value);
        } else if let Some((kind, description)) = value.split_once('(') {
            self.add_descriptor(name, kind, description.trim_end_matches(')'));
        } else if name.starts_with("ld") || name == "rank" {
            // Leading dimensions are the least possible, and ranks full, in all of PyTorch's calls.
        } else if let (true, Ok(size)) = (SIZES.contains(&name), value.parse()) {
            self.sizes.insert(name.to_owned(), size);
        } else {
            self.labels.insert(name.to_owned(), value.to_owned());
        }
    }

    /// `n=256x256 batch=8 from=f32:packed to=c32:256x129/1/33024 in=c32`
    fn add_of_plan(&mut self, name: &str, value: &str) {
        match name {
            "n" => {
                for (place, size) in value.split('x').enumerate() {
                    self.sizes
                        .insert(format!("n{place}"), size.parse().unwrap_or(0));
                }
                let rank = value.split('x').count();
                self.labels.insert("rank".to_owned(), rank.to_string());
            }
            "batch" => {
                self.sizes
                    .insert(name.to_owned(), value.parse().unwrap_or(0));
            }
            "from" | "to" => {
                let (element, layout) = value.split_once(':').unwrap_or((value, "packed"));
                self.labels.insert(name.to_owned(), element.to_owned());
                // Whether neighbours in the transform are neighbours in memory; how far apart the
                // transforms of a batch are makes no difference.
                let is_strided = layout.split('/').nth(1).is_some_and(|stride| stride != "1");
                if is_strided || !self.labels.contains_key("layout") {
                    let layout = if is_strided { "strided" } else { "dense" };
                    self.labels.insert("layout".to_owned(), layout.to_owned());
                }
            }
            // What it is computed in follows from the types.
            _ => {}
        }
    }

    /// `csr(1024x1024,nz7,f32,index2)`, `dense(1024x64,ld64,f32,rows)`, `vector(64,f32)`
    fn add_descriptor(&mut self, name: &str, kind: &str, description: &str) {
        let mut label = |what: &str, value: &str| {
            self.labels
                .insert(format!("{name}_{what}"), value.to_owned());
        };
        label("kind", kind);
        let is_sparse = ["csr", "coo"].contains(&kind);
        for (place, word) in description.split(',').enumerate() {
            let numbered = |prefix| word.strip_prefix(prefix).and_then(|rest| rest.parse().ok());
            if place == 0 {
                // Of the dense ones, what is not a size of the sparse one: the width of the result.
                for (what, size) in ["rows", "columns"].iter().zip(word.split('x')) {
                    if is_sparse || (name, *what) == ("c", "columns") {
                        let size = size.parse().unwrap_or(0);
                        self.sizes.insert(format!("{name}_{what}"), size);
                    }
                }
            } else if let Some(count) = numbered("nz") {
                self.sizes.insert(format!("{name}_non_zeros"), count);
            } else if let Some(batch) = numbered("batch") {
                self.sizes.insert(format!("{name}_batch"), batch);
            } else if word.starts_with("ld") {
                // As above.
            } else {
                let what = match word {
                    "rows" | "columns" => "order",
                    _ if word.starts_with("index") => "index",
                    _ => "element",
                };
                self.labels
                    .insert(format!("{name}_{what}"), word.to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(function: &str, arguments: &str) -> Canonical {
        Canonical::new(&Question {
            function: function.to_owned(),
            arguments: arguments.to_owned(),
        })
    }

    #[test]
    fn a_factorisation_is_told_by_its_family_type_and_sizes() {
        let found = canonical(
            "cusolverDnCunmqr_bufferSize",
            "side=0 transpose=2 m=64 n=8 k=32 lda=64 ldc=64",
        );
        assert_eq!(found.family, "ormqr");
        assert_eq!(found.labels["type"], "C");
        assert_eq!(found.labels["transpose"], "2");
        let sizes: Vec<_> = found.sizes.into_values().collect();
        assert_eq!(sizes, [32, 64, 8]);
    }

    #[test]
    fn functions_for_all_types_keep_their_name() {
        let found = canonical("cusolverDnXgeqrf_bufferSize", "m=3 n=2 a_type=0 lda=3");
        assert_eq!(found.family, "Xgeqrf");
        assert_eq!(found.labels["a_type"], "0");
    }

    #[test]
    fn plans_whose_data_has_no_gaps_are_alike() {
        let packed = canonical(
            "cufftXtMakePlanMany",
            "n=100 batch=8 from=f32:packed to=c32:packed in=c32",
        );
        let dense = canonical(
            "cufftXtMakePlanMany",
            "n=100 batch=8 from=f32:100/1/100 to=c32:100/1/51 in=c32",
        );
        assert_eq!(packed, dense);
        let strided = canonical(
            "cufftXtMakePlanMany",
            "n=100 batch=8 from=f32:100/8/1 to=c32:100/1/51 in=c32",
        );
        assert_eq!(strided.labels["layout"], "strided");
    }

    #[test]
    fn descriptors_become_labels_and_sizes() {
        let found = canonical(
            "cusparseSpMM_bufferSize",
            "transpose_a=0 a=csr(64x32,nz7,f32,index2) b=dense(32x8,ld8,f32,rows) \
             c=dense(64x8,ld8,f32,rows)",
        );
        assert_eq!(found.family, "SpMM");
        assert_eq!(found.labels["a_kind"], "csr");
        assert_eq!(found.labels["b_order"], "rows");
        assert_eq!(found.sizes["a_non_zeros"], 7);
        let sizes: Vec<_> = found.sizes.keys().collect();
        assert_eq!(sizes, ["a_columns", "a_non_zeros", "a_rows", "c_columns"]);
    }
}
