//! Who held the memory at a moment.

use ghostgpu_ledger::{Holder, Holders};
use ghostgpu_recording::Recording;
use ghostgpu_text::{Table, grouped, human, shortened};
use serde_json::{Value, json};

use crate::style::{Detail, Style};

/// Adding a field keeps the version.
const SCHEMA: &str = "ghostgpu.snapshot.top/1";

/// The holders of a moment.
#[derive(Debug)]
pub struct Top<'a> {
    pub recording: &'a Recording,
    pub device: usize,
    /// The moment in words.
    pub when: String,
    pub holders: &'a Holders,
    /// How many are listed.
    pub most: usize,
    pub warnings: &'a [String],
}

impl Top<'_> {
    pub fn text(&self, style: Style) -> String {
        let mut sheet = style.sheet();
        sheet.section(
            "live",
            [format!(
                "{} in {} allocations on device {}, {}",
                human(self.holders.requested_bytes),
                grouped(self.holders.count),
                self.device,
                self.when
            )],
        );
        if style.detail != Detail::Quiet {
            sheet.table("held by", &table(self.holders, self.most, style));
            sheet.list("notes", self.warnings);
        }
        sheet.render()
    }

    /// The document, which `docs/snapshot-json.md` describes.
    pub fn json(&self) -> Value {
        let holders = self.holders;
        json!({
            "schema": SCHEMA,
            "events_before": holders.moment.0,
            "bytes": holders.requested_bytes,
            "block_bytes": holders.block_bytes,
            "count": holders.count,
            "holders": holders_json(self.recording, holders, self.most),
        })
    }
}

/// The largest holders, each with its stack.
pub(super) fn holders_json(recording: &Recording, holders: &Holders, most: usize) -> Vec<Value> {
    let frames_of = |holder: &Holder| -> Vec<String> {
        let frames = recording.names.stacks.get(holder.stack.0 as usize);
        let frames = frames.into_iter().flatten();
        frames
            .filter_map(|id| recording.names.frames.get(id.0 as usize))
            .map(|frame| format!("{}:{} {}", frame.file, frame.line, frame.function))
            .collect()
    };
    let list = holders.holders.iter().take(most);
    list.map(|holder| {
        json!({
            "label": holder.label,
            "bytes": holder.requested_bytes,
            "block_bytes": holder.block_bytes,
            "count": holder.count,
            "older_count": holder.older_count,
            "stack": frames_of(holder),
        })
    })
    .collect()
}

/// Width of bytes, share and blocks, with the gaps around them.
const FIGURES_WIDTH: usize = 30;

/// A holder as wide as there is room next to the figures; with `--verbose`, whole.
pub(super) fn fitting(label: &str, figures_width: usize, style: Style) -> String {
    match style.detail {
        Detail::Everything => label.to_owned(),
        _ => {
            let room = style.sheet().text_width().saturating_sub(figures_width);
            shortened(label, room, 0)
        }
    }
}

/// The largest holders, and one line for all others.
pub(super) fn table(holders: &Holders, most: usize, style: Style) -> Table {
    let mut table = Table::new(&[">bytes", ">share", ">blocks", "holder"]);
    let share = |bytes: u64| match holders.requested_bytes {
        0 => "-".to_owned(),
        all => format!("{:.1} %", bytes as f64 / all as f64 * 100.0),
    };
    for holder in holders.holders.iter().take(most) {
        table.push(vec![
            human(holder.requested_bytes),
            share(holder.requested_bytes),
            grouped(holder.count),
            fitting(&holder.label, FIGURES_WIDTH, style),
        ]);
    }
    let rest = holders.holders.get(most..).unwrap_or_default();
    if !rest.is_empty() {
        let bytes = rest.iter().fold(0u64, |sum, holder| {
            sum.saturating_add(holder.requested_bytes)
        });
        table.push(vec![
            human(bytes),
            share(bytes),
            grouped(rest.iter().map(|holder| holder.count).sum()),
            others(rest.len()),
        ]);
    }
    table
}

/// The row for holders that are not listed.
pub(super) fn others(count: usize) -> String {
    match count {
        1 => "1 other".to_owned(),
        count => format!("{} others", grouped(count as u64)),
    }
}
