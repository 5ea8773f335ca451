//! Holds the table against the world: every CUDA function that the installed torch imports is listed.
//!
//! The wheels are found through `GHOSTGPU_TEST_PYTHON` (one interpreter, or several separated by
//! colons) or else `python3`. Where there is no torch the test says so and checks nothing;
//! in continuous integration (`CI` is set) it fails.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use ghostgpu_symbols::{Family, family_of, is_cuda_symbol, lookup};
use object::{Object, ObjectSection, ObjectSymbol, ReadCache};

#[test]
fn every_cuda_symbol_that_torch_imports_is_in_the_table() {
    let pythons = std::env::var_os("GHOSTGPU_TEST_PYTHON").unwrap_or_else(|| "python3".into());
    for python in std::env::split_paths(&pythons) {
        match find_packages(&python) {
            Some(folders) => check(&python, &folders),
            None => skip(&format!("{} has no torch", python.display())),
        }
    }
}

/// PyTorch finds part of the driver and NVML by name while it runs: through `dlsym` in older releases,
/// through `cudaGetDriverEntryPoint` in newer ones. The names are in its libraries as strings.
#[test]
fn every_driver_function_that_torch_asks_for_by_name_is_answered() {
    let pythons = std::env::var_os("GHOSTGPU_TEST_PYTHON").unwrap_or_else(|| "python3".into());
    for python in std::env::split_paths(&pythons) {
        let Some(folders) = find_packages(&python) else {
            skip(&format!("{} has no torch", python.display()));
            continue;
        };
        let mut asked_for = BTreeSet::new();
        let mut asks_the_runtime = false;
        for folder in folders {
            let library = folder.join("lib/libc10_cuda.so");
            if library.is_file() {
                asked_for.extend(driver_names_in(&library));
                asks_the_runtime |= imported_cuda_symbols(&library)
                    .iter()
                    .any(|name| name.starts_with("cudaGetDriverEntryPoint"));
            }
        }
        assert!(
            asked_for.contains("cuMemCreate"),
            "{} asks for no driver function: {asked_for:?}",
            python.display()
        );
        // The runtime finds the newest form of a function under its plain name; `dlsym` does not.
        let unanswered: Vec<&String> = asked_for
            .iter()
            .filter(|name| lookup(name).is_none())
            .filter(|name| !asks_the_runtime || lookup(&format!("{name}_v2")).is_none())
            .collect();
        assert!(
            unanswered.is_empty(),
            "{} asks for functions that are missing from table.csv: {unanswered:#?}",
            python.display()
        );
    }
}

/// Strings of a library that are names of the driver or of NVML.
fn driver_names_in(library: &Path) -> BTreeSet<String> {
    let bytes = std::fs::read(library).expect("a file listed a moment ago can be read");
    let file = object::File::parse(bytes.as_slice()).expect("a library of torch's is an ELF file");
    let section = file
        .section_by_name(".rodata")
        .expect("every library has constants");
    let constants = section.data().expect("constants are stored as they are");
    constants
        .split(|&byte| byte == 0)
        .filter_map(|text| std::str::from_utf8(text).ok())
        .filter(|text| {
            text.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        })
        .filter(|text| matches!(family_of(text), Some(Family::Driver | Family::Nvml)))
        .map(str::to_owned)
        .collect()
}

/// Says why nothing is checked. In continuous integration that is a failure.
fn skip(reason: &str) {
    let ci = std::env::var("CI").unwrap_or_default().to_lowercase();
    assert!(
        matches!(ci.as_str(), "" | "0" | "false" | "no"),
        "may not be skipped in CI: {reason}"
    );
    eprintln!("skipped: {reason}");
}

fn check(python: &Path, folders: &[PathBuf]) {
    let libraries: Vec<PathBuf> = folders
        .iter()
        .flat_map(|folder| libraries_in(folder))
        .collect();
    let mut checked = 0;
    let mut unlisted = BTreeMap::new();
    for library in &libraries {
        for symbol in imported_cuda_symbols(library) {
            checked += 1;
            if lookup(&symbol).is_none() {
                unlisted.insert(symbol, library.display().to_string());
            }
        }
    }
    assert!(
        checked > 100,
        "only {checked} CUDA imports found for {}",
        python.display()
    );
    assert!(
        unlisted.is_empty(),
        "CUDA functions missing from table.csv (and from the stand-in library): {unlisted:#?}"
    );
}

/// The folders that hold compiled code of torch and torchvision, found without importing them.
fn find_packages(python: &Path) -> Option<Vec<PathBuf>> {
    const PROGRAM: &str = "
import importlib.util, os
for name in ('torch', 'torchvision'):
    spec = importlib.util.find_spec(name)
    if spec and spec.origin:
        print(os.path.dirname(spec.origin))
";
    let output = Command::new(python).args(["-c", PROGRAM]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let folders: Vec<PathBuf> = text.lines().map(PathBuf::from).collect();
    let has_torch = folders.iter().any(|folder| folder.ends_with("torch"));
    has_torch.then(|| {
        folders
            .iter()
            .flat_map(|folder| [folder.clone(), folder.join("lib")])
            .collect()
    })
}

/// Shared libraries of a folder: `libtorch_cuda.so`, `_C.cpython-311-x86_64-linux-gnu.so`, `x.so.1`.
fn libraries_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_file() && has_library_name(path.file_name()))
        .collect();
    paths.sort();
    paths
}

fn has_library_name(name: Option<&OsStr>) -> bool {
    let name = name
        .map(OsString::from)
        .and_then(|name| name.into_string().ok());
    name.is_some_and(|name| name.ends_with(".so") || name.contains(".so."))
}

/// Names that the dynamic linker must find. A weak import need not exist, and the linker is content
/// without it.
fn imported_cuda_symbols(library: &Path) -> Vec<String> {
    // torch's libraries are hundreds of megabytes; the cache reads only the parts that are asked for.
    let opened = std::fs::File::open(library).expect("a file listed a moment ago can be read");
    let contents = ReadCache::new(opened);
    let Ok(file) = object::File::parse(&contents) else {
        return Vec::new();
    };
    file.dynamic_symbols()
        .filter(|symbol| symbol.is_undefined() && !symbol.is_weak())
        .filter_map(|symbol| symbol.name().ok().map(str::to_owned))
        .filter(|name| is_cuda_symbol(name))
        .collect()
}
