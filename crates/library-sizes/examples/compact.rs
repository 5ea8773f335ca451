//! Makes the table that the stand-in library ships from recorded ones.
//!
//! `cargo run -p ghostgpu-library-sizes --example compact -- TABLE... > crates/cuda/src/library_sizes/h200.tsv`

use std::process::ExitCode;

use ghostgpu_library_sizes::{Compact, Table};

/// Not needed: cuDNN's answers come from the user's own cuDNN, and nothing uses cuBLASLt's.
const LEFT_OUT: [&str; 2] = ["cudnn", "cublasLt"];

fn main() -> ExitCode {
    let mut all = Table::default();
    for path in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        match Table::read(&text) {
            Ok(table) => all.extend(table),
            Err(error) => {
                eprintln!("{path}: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    let mut kept = Table::default();
    for (question, answer) in all.rows() {
        if !LEFT_OUT
            .iter()
            .any(|name| question.function.starts_with(name))
        {
            kept.insert(question.clone(), answer.clone());
        }
    }
    println!(
        "# Workspace sizes of cuFFT, cuSOLVER and cuSPARSE, from {} recorded answers.",
        kept.len()
    );
    println!("# Written by crates/library-sizes/examples/compact.rs.");
    for (name, value) in &all.header {
        println!("# {name}\t{value}");
    }
    println!("# family\tlabels\tsizes\tanswer\tpoints");
    print!("{}", Compact::from_table(&kept).to_text());
    ExitCode::SUCCESS
}
