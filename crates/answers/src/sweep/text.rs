//! The points of a sweep as text.

use ghostgpu_text::{Table, counted, human, shortened};

use super::{Point, Sweep, is_answer};
use crate::headline::word;
use crate::style::{Colour, Detail, Style};

/// Rows that fit one screen.
const ROWS: usize = 17;

/// A longer value is cut in the middle.
const VALUE_WIDTH: usize = 16;

impl Sweep {
    /// With `is_all`, every point is in the table.
    pub fn text(&self, style: Style, is_all: bool) -> String {
        let fitting = self.points.iter();
        let fitting = fitting
            .filter(|point| point.card.fits == Some(true))
            .count();
        let label = "fits";
        let colour = match fitting {
            0 => Colour::Bad,
            _ => Colour::Good,
        };
        let mut sheet = style.sheet();
        let all = self.points.len() as u64;
        sheet.paragraph(
            label,
            &format!("{fitting} of {}", counted(all, "point", "points")),
        );
        if style.detail == Detail::Quiet {
            return style.paint_label(label, colour, &sheet.render());
        }
        let failed = self.points.iter();
        let failed: Vec<&Point> = failed
            .filter(|point| !is_answer(point.card.verdict))
            .collect();
        if let Some(first) = failed.first() {
            let reason = first.card.reason.as_deref().unwrap_or("no reason is known");
            let line = format!("{}; the first: {reason}", failed.len());
            sheet.paragraph("failed", &line);
        }
        for name in &self.without_effect {
            sheet.paragraph(
                "no effect",
                &format!("{name}: the job needs the same with each value"),
            );
        }
        let before = self
            .points
            .iter()
            .filter(|point| point.known_before)
            .count();
        if before > 0 {
            let points = counted(before as u64, "point", "points");
            sheet.paragraph(
                "known before",
                &format!("{points} (--fresh rehearses again)"),
            );
        }
        if self.not_rehearsed > 0 {
            let points = counted(self.not_rehearsed as u64, "point", "points");
            sheet.paragraph("not rehearsed", &points);
        }
        let is_all = is_all || style.detail == Detail::Everything || self.points.len() <= ROWS;
        let shown = match is_all {
            true => self.points.len(),
            false => ROWS - 1,
        };
        let mut text = sheet.render();
        if shown > 0 {
            text.push('\n');
            text.push_str(&self.table(shown));
        }
        if shown < self.points.len() {
            let more = self.points.len() - shown;
            text.push_str(&format!("… {more} more: --all\n"));
        }
        style.paint_label(label, colour, &text)
    }

    fn table(&self, rows: usize) -> String {
        let names = self.arguments.iter();
        let mut headings: Vec<String> = names
            .map(|argument| format!(">{}", argument.name))
            .collect();
        headings.extend(["card", "verdict", ">needs", ">to spare"].map(str::to_owned));
        let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
        let mut table = Table::new(&headings);
        for point in self.points.iter().take(rows) {
            let values = point.values.iter();
            let mut row: Vec<String> = values
                .map(|value| shortened(value, VALUE_WIDTH, VALUE_WIDTH / 2))
                .collect();
            let card = &point.card;
            row.extend([
                shortened(&card.name, 2 * VALUE_WIDTH, VALUE_WIDTH),
                word(card.verdict).0.to_owned(),
                card.needed_device_bytes.map(human).unwrap_or_default(),
                match (card.headroom_bytes, card.missing_bytes) {
                    (Some(left), _) => human(left),
                    (None, Some(missing)) => format!("-{}", human(missing)),
                    (None, None) => String::new(),
                },
            ]);
            table.push(row);
        }
        table.render()
    }
}
