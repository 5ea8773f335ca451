//! A card as a bar of ASCII characters, without colour.

use ghostgpu_explain::{Account, Amount, Catalogue, PartName, say};

/// Width of the bar between its ends.
const WIDTH: u64 = 60;

/// The bar, and below it the request at the same scale; empty if sizes are missing.
pub fn picture(account: &Account, requested: Option<Amount>, catalogue: &Catalogue) -> Vec<String> {
    let Some(total) = account.total.filter(|total| total.bytes > 0) else {
        return Vec::new();
    };
    let sum: u64 = account.parts.iter().map(|part| part.size.bytes).sum();
    let scale = total.bytes.max(sum);
    let mut bar = String::new();
    let mut end: u64 = 0;
    for part in &account.parts {
        end += part.size.bytes;
        let cells = cells_of(end, scale).saturating_sub(bar.len() as u64);
        // A part that is not empty gets at least one character, if there is room.
        let cells = cells.max(u64::from(part.size.bytes > 0 && (bar.len() as u64) < WIDTH));
        bar.extend(std::iter::repeat_n(mark(part.name), cells as usize));
    }
    bar.truncate(WIDTH as usize);
    let missing = WIDTH as usize - bar.len();
    bar.push_str(&" ".repeat(missing));
    let mut lines = vec![format!("[{bar}]")];
    if total.bytes < scale {
        let end = cells_of(total.bytes, scale) as usize;
        lines.push(format!(
            " {}^ {}",
            " ".repeat(end.saturating_sub(1)),
            say!(catalogue, "card-ends")
        ));
    }
    if let Some(requested) = requested {
        let cells = cells_of(requested.bytes, scale).max(1);
        let is_longer = requested.bytes > scale;
        let dashes = "-".repeat(cells.min(WIDTH) as usize);
        let tip = if is_longer { ">" } else { "" };
        let asked = match is_longer {
            true => {
                let times = format!("{:.2}", requested.bytes as f64 / total.bytes as f64);
                say!(
                    catalogue,
                    "picture-asked-times",
                    requested = requested,
                    times = times
                )
            }
            false => say!(catalogue, "picture-asked", requested = requested),
        };
        lines.push(format!(" {dashes}{tip} {asked}"));
    }
    lines
}

fn cells_of(bytes: u64, scale: u64) -> u64 {
    let cells = u128::from(bytes) * u128::from(WIDTH) / u128::from(scale.max(1));
    u64::try_from(cells).unwrap_or(WIDTH)
}

pub fn mark(name: PartName) -> char {
    match name {
        PartName::Allocated => '#',
        PartName::Cached => '=',
        PartName::Context => '+',
        PartName::OtherProcesses => '%',
        PartName::Outside => '%',
        PartName::Unexplained => '?',
        PartName::Free => '.',
    }
}
