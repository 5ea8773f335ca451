//! The table of `nvidia-smi` without arguments, in which scripts look for `300MiB / 12288MiB`.

use super::card::Card;
use super::query::name_of;

/// The same as in the stand-in for NVML.
pub const DRIVER_VERSION: &str = "580.159.04";
const CUDA_VERSION: &str = "13.0";

const WIDTH: usize = 95;

pub fn of(cards: &[Card]) -> String {
    let edge = format!("+{}+", "-".repeat(WIDTH));
    let line = format!("|{}|", "-".repeat(WIDTH));
    let row = |text: &str| format!("| {text:<width$} |", width = WIDTH - 2);
    let mut lines = vec![
        edge.clone(),
        row(&format!(
            "NVIDIA-SMI {DRIVER_VERSION} (GhostGPU)   Driver Version: {DRIVER_VERSION}   CUDA Version: {CUDA_VERSION}"
        )),
        line.clone(),
        row(&columns(["GPU  Name", "Bus-Id", "Memory-Usage", "Util"])),
        line.clone(),
    ];
    lines.extend(cards.iter().map(|card| {
        let name = format!("{:>3}  {}", card.index, card.sheet.marked_name());
        let (used, total) = (card.used_bytes() >> 20, card.total_bytes() >> 20);
        let memory = format!("{used}MiB / {total}MiB");
        row(&columns([&name, &card.bus_id(), &memory, "0%"]))
    }));
    lines.extend([edge.clone(), String::new(), edge.clone()]);
    lines.push(row("Processes:"));
    lines.push(row(&columns([
        "GPU  Process name",
        "PID",
        "GPU Memory",
        "",
    ])));
    lines.push(line);
    let mut is_empty = true;
    for card in cards {
        for &(process, bytes) in &card.processes {
            is_empty = false;
            let name = format!("{:>3}  {}", card.index, name_of(process));
            let memory = format!("{}MiB", bytes >> 20);
            lines.push(row(&columns([&name, &process.to_string(), &memory, ""])));
        }
    }
    if is_empty {
        lines.push(row("No running processes found"));
    }
    lines.push(edge);
    lines.join("\n") + "\n"
}

fn columns([name, place, memory, utilization]: [&str; 4]) -> String {
    format!("{name:<48} {place:>16} {memory:>19} {utilization:>7}")
}
