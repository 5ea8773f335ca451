//! The CUDA functions that torch's libraries import, held against what the stand-in does.
//!
//! The only part of this crate that opens files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;

use object::read::{Object, ObjectSymbol, ReadCache};
use serde::Serialize;

use crate::{Treatment, family_of, lookup};

/// How many functions of one library are treated how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FamilyCounts {
    pub simulated: usize,
    pub harmless: usize,
    pub refused: usize,
    pub unlisted: usize,
}

/// The imports of a torch installation, sorted by what becomes of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SymbolSurvey {
    pub families: BTreeMap<&'static str, FamilyCounts>,
    /// Functions that the stand-in refuses to answer.
    pub refused: Vec<String>,
    /// Functions that are not in the table.
    pub unlisted: Vec<String>,
    /// Libraries that could not be read.
    pub unreadable: Vec<String>,
}

impl SymbolSurvey {
    /// Reads the libraries in torch's `lib` folder.
    pub fn of_torch(torch_dir: &Path) -> Self {
        let mut imports = BTreeSet::new();
        let mut unreadable = Vec::new();
        let mut names: Vec<String> = std::fs::read_dir(torch_dir.join("lib"))
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| is_torch_library(name))
            .collect();
        names.sort();
        for name in names {
            match cuda_imports(&torch_dir.join("lib").join(&name)) {
                Ok(found) => imports.extend(found),
                Err(error) => unreadable.push(format!("{name}: {error}")),
            }
        }
        Self {
            unreadable,
            ..Self::of_imports(&imports)
        }
    }

    fn of_imports(imports: &BTreeSet<String>) -> Self {
        let mut survey = Self::default();
        for symbol in imports {
            let Some(family) = family_of(symbol) else {
                continue;
            };
            let counts = survey.families.entry(family.name()).or_default();
            match lookup(symbol).map(|entry| entry.treatment) {
                Some(Treatment::Simulated) => counts.simulated += 1,
                Some(Treatment::Harmless) => counts.harmless += 1,
                Some(Treatment::Refused) => {
                    counts.refused += 1;
                    survey.refused.push(symbol.clone());
                }
                None => {
                    counts.unlisted += 1;
                    survey.unlisted.push(symbol.clone());
                }
            }
        }
        survey
    }

    /// All counts together.
    pub fn total(&self) -> FamilyCounts {
        let mut total = FamilyCounts::default();
        for counts in self.families.values() {
            total.simulated += counts.simulated;
            total.harmless += counts.harmless;
            total.refused += counts.refused;
            total.unlisted += counts.unlisted;
        }
        total
    }
}

impl SymbolSurvey {
    /// How much of an untested torch is known, as the end of a sentence.
    pub fn remark(&self) -> String {
        let total = self.total();
        let known = total.simulated + total.harmless + total.refused;
        if let Some(first) = self.unreadable.first() {
            return format!("which CUDA functions it imports could not be read ({first})");
        }
        let Some((last, others)) = self.unlisted.split_last() else {
            return format!("all {known} CUDA functions that it imports are known");
        };
        let shown = &others[..others.len().min(MAX_NAMES - 1)];
        let more = others.len() - shown.len();
        let names: String = shown.iter().map(|name| format!("`{name}`, ")).collect();
        let names = match more {
            0 => format!("{names}`{last}`"),
            _ => format!("{names}`{last}` and {more} more"),
        };
        format!(
            "{} of the CUDA functions that it imports are not simulated, and the answer is wrong if \
             one of them matters: {names}",
            self.unlisted.len()
        )
    }
}

/// How many names a sentence has.
const MAX_NAMES: usize = 8;

/// Whether this is one of PyTorch's own libraries, not one of those beside them (OpenMP, NVIDIA's).
fn is_torch_library(name: &str) -> bool {
    ["libtorch", "libc10", "libcaffe2"]
        .iter()
        .any(|start| name.starts_with(start))
        && name.contains(".so")
}

/// Names of CUDA's that a shared library imports. Reads a few megabytes, however large it is.
fn cuda_imports(path: &Path) -> Result<BTreeSet<String>, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let cache = ReadCache::new(file);
    let library = object::File::parse(&cache).map_err(|error| error.to_string())?;
    Ok(library
        .dynamic_symbols()
        // A weak import need not exist: its library asks before it calls.
        .filter(|symbol| symbol.is_undefined() && !symbol.is_weak())
        .filter_map(|symbol| symbol.name().ok())
        .filter(|name| family_of(name).is_some())
        .map(str::to_owned)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_counted_by_library_and_treatment() {
        let imports = ["cudaMalloc", "cudaMallocOnTheMoon", "malloc"].map(str::to_owned);
        let survey = SymbolSurvey::of_imports(&BTreeSet::from(imports));
        assert_eq!(survey.unlisted, ["cudaMallocOnTheMoon"]);
        let runtime = survey.families["CUDA runtime"];
        assert_eq!((runtime.simulated, runtime.unlisted), (1, 1));
        assert_eq!(survey.total(), runtime);
    }

    #[test]
    fn the_remark_on_an_untested_torch_names_what_is_missing() {
        let survey = |names: &[&str]| {
            SymbolSurvey::of_imports(&names.iter().map(|&name| name.to_owned()).collect())
        };
        assert_eq!(
            survey(&["cudaMalloc", "cudaFree"]).remark(),
            "all 2 CUDA functions that it imports are known"
        );
        assert_eq!(
            survey(&["cudaMalloc", "cudaMallocOnMars", "cudaMallocOnTheMoon"]).remark(),
            "2 of the CUDA functions that it imports are not simulated, and the answer is wrong if one \
             of them matters: `cudaMallocOnMars`, `cudaMallocOnTheMoon`"
        );
        let many: Vec<String> = (10..40).map(|number| format!("cudaNew{number}")).collect();
        let many = SymbolSurvey::of_imports(&many.into_iter().collect()).remark();
        assert!(many.starts_with("30 of "), "{many}");
        assert!(
            many.ends_with("`cudaNew16`, `cudaNew39` and 22 more"),
            "{many}"
        );
    }

    #[test]
    fn a_file_that_is_no_library_is_named() {
        let folder = tempfile::tempdir().expect("folder");
        let lib = folder.path().join("lib");
        std::fs::create_dir(&lib).expect("folder");
        std::fs::write(lib.join("libtorch_cuda.so"), "not ELF").expect("file");
        std::fs::write(lib.join("libgomp.so.1"), "not looked at").expect("file");
        let survey = SymbolSurvey::of_torch(folder.path());
        assert_eq!(survey.unreadable.len(), 1);
        assert!(survey.unreadable[0].starts_with("libtorch_cuda.so: "));
    }

    #[test]
    fn a_real_library_has_no_cuda_imports_when_it_uses_none() {
        let own = std::env::current_exe().expect("path");
        assert_eq!(cuda_imports(&own).expect("ELF"), BTreeSet::new());
    }
}
