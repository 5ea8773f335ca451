//! Repeats what PyTorch's own allocator did, as recorded by `tests/allocator/drive.py`, and reports whether
//! everything was equal:
//!
//!     cargo run --release -p ghostgpu-allocator --example compare -- FILE...

#[path = "../tests/differential/mod.rs"]
mod differential;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut different = false;
    for path in std::env::args().skip(1) {
        let result = std::fs::read_to_string(&path)
            .map_err(|error| error.to_string())
            .and_then(|text| differential::compare(&text));
        match result {
            Ok(compared) => println!(
                "{path}: same: {} operations ({} failed requests), {} statistics, {} segments, {} trace entries",
                compared.operations,
                compared.failed_requests,
                compared.statistics,
                compared.segments,
                compared.trace_entries,
            ),
            Err(difference) => {
                different = true;
                println!("{path}: different: {difference}");
            }
        }
    }
    if different {
        ExitCode::from(3)
    } else {
        ExitCode::SUCCESS
    }
}
