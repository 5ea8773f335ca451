//! The lines that allocated what is live at the peak.

use ghostgpu_ledger::{CardLedger, Place, Places};
use ghostgpu_recording::{Category, Frame, Source};

use super::made_of::percent;
use crate::style::Style;
use ghostgpu_text::{Sheet, Table, human, shortened};

const MOST_LINES: usize = 4;

/// Width of the columns next to a place in the table.
const BESIDE_PLACE: usize = 41;

pub(super) fn add(sheet: &mut Sheet, ledger: &CardLedger, style: Style) {
    let sums = ledger.by_place(ledger.peak().moment);
    if sums.is_empty() {
        return;
    }
    let places = Places::of(ledger.recording(), ledger.card());
    let total = sums.iter().map(|sum| sum.held.requested_bytes()).sum();
    let mostly = match ledger.recording().about.source {
        Source::Rehearsal => "mostly",
        Source::Snapshot => "",
    };
    let mut table = Table::new(&["line", ">at the peak", ">", mostly]);
    let width = sheet.text_width().saturating_sub(BESIDE_PLACE);
    for sum in sums.iter().take(MOST_LINES) {
        let bytes = sum.held.requested_bytes();
        let mostly = sum.held.requested.largest();
        table.push(vec![
            shown(&places, &sum.place, width, style),
            human(bytes),
            percent(bytes, total),
            match mostly {
                Some((Category::Unknown, _)) | None => String::new(),
                Some((category, _)) => short_title(category).to_owned(),
            },
        ]);
    }
    sheet.table("lines", &table);
}

/// The title of a category in a narrow column.
pub(crate) fn short_title(category: Category) -> &'static str {
    match category {
        Category::Activation => "activations",
        Category::Unknown => "of an unknown owner",
        other => other.title(),
    }
}

/// A place as text; files below the current folder, and those of packages, are shown relative to it.
pub(crate) fn place(places: &Places, place: &Place, style: Style) -> String {
    let label = places.label(place);
    let Place::Line(id) = place else {
        return label;
    };
    let Some(Frame { file, .. }) = places.frame(*id) else {
        return label;
    };
    let shown = shown_file(file, style);
    match label.strip_prefix(file.as_str()) {
        Some(rest) => format!("{shown}{rest}"),
        None => label,
    }
}

pub(super) fn shown_file<'a>(file: &'a str, style: Style) -> &'a str {
    let below = style.current_dir.and_then(|folder| {
        let rest = file.strip_prefix(folder.to_str()?)?;
        rest.strip_prefix('/')
    });
    let in_package = || file.rsplit_once("/site-packages/").map(|(_, rest)| rest);
    below.or_else(in_package).unwrap_or(file)
}

/// A place in the width of its column.
fn shown(places: &Places, which: &Place, width: usize, style: Style) -> String {
    let text = place(places, which, style);
    match which {
        // The beginning of a path says least.
        Place::Line(_) | Place::Older => shortened(&text, width, 0),
        // The operator is at the beginning, the module at the end.
        Place::NoStack { .. } => shortened(&text, width, width / 2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::PLAIN;

    #[test]
    fn files_are_named_from_the_current_folder_or_their_package() {
        let style = Style {
            current_dir: Some(std::path::Path::new("/home/me/job")),
            ..PLAIN
        };
        for (file, shown) in [
            ("/home/me/job/model.py", "model.py"),
            ("/home/me/jobs/model.py", "/home/me/jobs/model.py"),
            ("/v/lib/python3.11/site-packages/timm/vit.py", "timm/vit.py"),
        ] {
            assert_eq!(shown_file(file, style), shown);
        }
    }
}
