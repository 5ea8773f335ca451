//! The stand-in library exports exactly the CUDA functions of the `ghostgpu-symbols` table.
//!
//! A listed function that is missing would fall through to the real library and from there to a
//! real card; an exported one that is not listed would be simulated without a decision how.

use std::collections::BTreeSet;
use std::path::PathBuf;

use ghostgpu_symbols::{entries, is_cuda_symbol, lookup};
use object::{Object, ObjectSymbol};

#[test]
fn every_function_of_the_table_is_exported() {
    let exported = exported_symbols();
    let missing: Vec<&str> = entries()
        .iter()
        .map(|entry| entry.symbol)
        .filter(|&symbol| !exported.contains(symbol))
        .collect();
    assert!(
        missing.is_empty(),
        "in table.csv but not exported: {missing:#?}"
    );
}

#[test]
fn every_exported_cuda_function_is_in_the_table() {
    let unlisted: Vec<String> = exported_symbols()
        .into_iter()
        .filter(|symbol| is_cuda_symbol(symbol) && lookup(symbol).is_none())
        .collect();
    assert!(
        unlisted.is_empty(),
        "exported but not in table.csv: {unlisted:#?}"
    );
}

/// The linker matches a versioned import with an unversioned export, but never the other way round: the
/// library may export only plain names, and no Rust symbols.
#[test]
fn nothing_is_exported_but_cuda_and_the_agents_functions() {
    let foreign: Vec<String> = exported_symbols()
        .into_iter()
        .filter(|symbol| !is_cuda_symbol(symbol) && !is_for_observing(symbol))
        .collect();
    assert!(foreign.is_empty(), "exported for no reason: {foreign:#?}");
}

/// The agent's functions, and those through which PyTorch is watched (`observer`).
fn is_for_observing(symbol: &str) -> bool {
    symbol.starts_with("ghostgpu_")
        || symbol == "InitializeInjectionNvtx2"
        || symbol.starts_with("_ZN3c1027report")
        || symbol == "_ZN2at14RecordFunction17runStartCallbacksEv"
}

fn exported_symbols() -> BTreeSet<String> {
    let path = built_library();
    let bytes = std::fs::read(&path).expect("the library can be read");
    let file = object::File::parse(bytes.as_slice()).expect("the library is an ELF file");
    file.dynamic_symbols()
        .filter(ObjectSymbol::is_definition)
        .filter_map(|symbol| symbol.name().ok().map(str::to_owned))
        .collect()
}

/// Cargo builds the shared library beside the test program.
fn built_library() -> PathBuf {
    let test_program = std::env::current_exe().expect("a test knows its own path");
    let folder = test_program.parent().expect("a program lies in a folder");
    let path = folder.join("libghostgpu.so");
    assert!(path.is_file(), "no library at {}", path.display());
    path
}
