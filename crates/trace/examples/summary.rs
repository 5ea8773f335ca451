//! Prints what a snapshot has: `cargo run -p ghostgpu-trace --example summary -- FILE`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("usage: summary FILE");
        return ExitCode::from(2);
    };
    let snapshot = match ghostgpu_trace::open(path.as_ref()) {
        Ok(snapshot) => snapshot,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let blocks: usize = snapshot
        .segments
        .iter()
        .map(|segment| segment.blocks.len())
        .sum();
    println!("{} segments, {blocks} blocks", snapshot.segments.len());
    for trace in &snapshot.traces {
        println!("device {}: {} events", trace.device, trace.events.len());
    }
    println!(
        "{} stacks of {} frames",
        snapshot.stacks.len() - 1,
        snapshot.stacks.frame_count()
    );
    println!(
        "{} annotations, {} host segments, {} host events",
        snapshot.annotations.len(),
        snapshot.host_segments.len(),
        snapshot.host_events.len()
    );
    println!("{:?}", snapshot.settings);
    for warning in &snapshot.warnings {
        println!("warning: {warning}");
    }
    ExitCode::SUCCESS
}
