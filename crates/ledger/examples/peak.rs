//! Prints each device's peak and who held it: `cargo run --release -p ghostgpu-ledger --example peak -- FILE`.
//!
//! This is what the benchmark times: opening, the peak, and the top holders.

use std::process::ExitCode;

use ghostgpu_ledger::{By, Ledger};

fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("usage: peak FILE");
        return ExitCode::from(2);
    };
    let snapshot = match ghostgpu_trace::open(path.as_ref()) {
        Ok(snapshot) => snapshot,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    for device in snapshot.active_devices() {
        let ledger = Ledger::new(&snapshot, device);
        let peak = ledger.peak();
        println!(
            "device {device}: {} bytes live after event {} of {}, {} bytes reserved then",
            peak.live_bytes,
            peak.moment.0,
            ledger.end().moment.0,
            peak.reserved_bytes
        );
        for holder in ledger
            .holders(peak.moment, By::Line)
            .holders
            .iter()
            .take(10)
        {
            println!(
                "{:>16} bytes {:>7} ×  {}",
                holder.bytes, holder.count, holder.label
            );
        }
        for warning in snapshot.warnings.iter().chain(ledger.warnings()) {
            println!("warning: {warning}");
        }
    }
    ExitCode::SUCCESS
}
