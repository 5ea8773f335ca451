//! The points of a sweep as one page that opens offline: a plot of what the job needs, and the table. It has no scripts.

use std::fmt::Write;

use ghostgpu_text::human;

use super::{Point, Sweep};
use crate::headline::word;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 380.0;
/// Space around the plot, for its figures and labels.
const LEFT: f64 = 80.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 44.0;

/// Colours of the lines; if there are more lines, colours repeat.
const COLOURS: [&str; 6] = [
    "#2f6fb3", "#c2571a", "#3a8f4d", "#8a4fa3", "#b5304b", "#5f6b76",
];

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1d2125;--faint:#6a737d;--line:#d5dae0;--paper:#fff}\
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ec;--faint:#9aa4ae;--line:#3a424a;--paper:#16191c}}\
body{font:14px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:900px;margin:2rem auto;\
padding:0 1rem}h1{font-size:1.3rem}code{font-size:.95em}svg{width:100%;height:auto}\
svg text{fill:var(--faint);font-size:11px}.axis{stroke:var(--line)}.capacity{stroke:var(--faint);stroke-dasharray:4 4}\
table{border-collapse:collapse;width:100%}th,td{padding:.2rem .6rem;border-bottom:1px solid var(--line);text-align:left}\
td.figure,th.figure{text-align:right;font-variant-numeric:tabular-nums}";

impl Sweep {
    /// The page.
    pub fn page(&self) -> String {
        let mut page = String::new();
        let command = escaped(&self.command.join(" "));
        let _ = write!(
            page,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n<title>{command}: a sweep</title>\n\
             <style>{STYLE}</style>\n</head>\n<body>\n<h1>What <code>{command}</code> needs</h1>\n"
        );
        page.push_str(&self.plot());
        page.push_str(&self.page_table());
        page.push_str("</body>\n</html>\n");
        page
    }

    /// Memory against the first argument, with a line for each card and combination of the other values.
    fn plot(&self) -> String {
        let points: Vec<(&Point, u64)> = self
            .points
            .iter()
            .filter_map(|point| Some((point, point.card.needed_device_bytes?)))
            .collect();
        let Some(argument) = self.arguments.first() else {
            return String::new();
        };
        if points.is_empty() {
            return String::new();
        }
        let place = places(&argument.values);
        let capacities = self.capacities();
        let most = points.iter().map(|(_, bytes)| *bytes).max().unwrap_or(1);
        // A card with far more memory than any point needs would compress the scale.
        let shown = capacities.iter().filter(|(_, total)| *total <= most * 2);
        let top = shown
            .clone()
            .map(|(_, total)| *total)
            .max()
            .unwrap_or(0)
            .max(most) as f64
            * 1.05;
        let x = |value: &str| {
            let index = argument.values.iter().position(|each| each == value);
            LEFT + place[index.unwrap_or(0)] * (WIDTH - LEFT - RIGHT)
        };
        let y = |bytes: u64| TOP + (1.0 - bytes as f64 / top) * (HEIGHT - TOP - BOTTOM);
        let mut svg = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"memory that the job needs, by {}\">\n",
            escaped(&argument.name)
        );
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        let _ = writeln!(
            svg,
            "<path class=\"axis\" fill=\"none\" d=\"M{LEFT} {TOP}V{bottom}H{right}\"/>"
        );
        for quarter in 0..=4 {
            let bytes = (top / 4.0 * f64::from(quarter)) as u64;
            let _ = writeln!(
                svg,
                "<text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 6.0,
                y(bytes) + 4.0,
                human(bytes)
            );
        }
        for value in &argument.values {
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.0}\" text-anchor=\"middle\">{}</text>",
                x(value),
                bottom + 16.0,
                escaped(value)
            );
        }
        let _ = writeln!(
            svg,
            "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{}</text>",
            f64::midpoint(LEFT, right),
            bottom + 34.0,
            escaped(&argument.name)
        );
        for (name, total) in shown {
            let height = y(*total);
            let _ = writeln!(
                svg,
                "<path class=\"capacity\" d=\"M{LEFT} {height:.1}H{right}\"/>\
                 <text x=\"{:.0}\" y=\"{:.1}\">{}</text>",
                right + 6.0,
                height + 4.0,
                escaped(name)
            );
        }
        for (number, (title, line)) in lines(&points).iter().enumerate() {
            let colour = COLOURS[number % COLOURS.len()];
            let coordinates: Vec<String> = line
                .iter()
                .map(|(point, bytes)| format!("{:.1},{:.1}", x(&point.values[0]), y(*bytes)))
                .collect();
            let _ = writeln!(
                svg,
                "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" points=\"{}\"><title>{}</title></polyline>",
                coordinates.join(" "),
                escaped(title)
            );
            for (point, bytes) in line {
                let _ = writeln!(
                    svg,
                    "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\" fill=\"{colour}\"><title>{}: {} on {}, needs {}</title></circle>",
                    x(&point.values[0]),
                    y(*bytes),
                    escaped(&point.values.join(", ")),
                    word(point.card.verdict).0,
                    escaped(&point.card.name),
                    human(*bytes)
                );
            }
        }
        svg + "</svg>\n"
    }

    /// Each card once, with its memory.
    fn capacities(&self) -> Vec<(&str, u64)> {
        let mut cards: Vec<(&str, u64)> = Vec::new();
        for point in &self.points {
            let card = (point.card.name.as_str(), point.card.total_bytes);
            if card.1 > 0 && !cards.contains(&card) {
                cards.push(card);
            }
        }
        cards
    }

    fn page_table(&self) -> String {
        let mut table = "<table>\n<thead><tr>".to_owned();
        for argument in &self.arguments {
            let _ = write!(table, "<th>{}</th>", escaped(&argument.name));
        }
        table.push_str(
            "<th>card</th><th>verdict</th><th class=\"figure\">needs</th>\
             <th class=\"figure\">to spare</th><th>reason</th></tr></thead>\n<tbody>\n",
        );
        for point in &self.points {
            let card = &point.card;
            table.push_str("<tr>");
            for value in &point.values {
                let _ = write!(table, "<td>{}</td>", escaped(value));
            }
            let left = match (card.headroom_bytes, card.missing_bytes) {
                (Some(left), _) => human(left),
                (None, Some(missing)) => format!("-{}", human(missing)),
                (None, None) => String::new(),
            };
            let _ = writeln!(
                table,
                "<td>{}</td><td>{}</td><td class=\"figure\">{}</td><td class=\"figure\">{left}</td><td>{}</td></tr>",
                escaped(&card.name),
                word(card.verdict).0,
                card.needed_device_bytes.map(human).unwrap_or_default(),
                escaped(card.reason.as_deref().unwrap_or_default())
            );
        }
        table + "</tbody>\n</table>\n"
    }
}

/// Groups points that differ only in their first value, in its order.
fn lines<'a>(points: &[(&'a Point, u64)]) -> Vec<(String, Vec<(&'a Point, u64)>)> {
    let mut lines: Vec<(String, Vec<(&Point, u64)>)> = Vec::new();
    for &(point, bytes) in points {
        let others = point.values.iter().skip(1).map(String::as_str);
        let words: Vec<&str> = others.chain([point.card.name.as_str()]).collect();
        let title = words.join(", ");
        match lines.iter_mut().find(|(known, _)| *known == title) {
            Some((_, line)) => line.push((point, bytes)),
            None => lines.push((title, vec![(point, bytes)])),
        }
    }
    lines
}

/// Positions of values on an axis from 0 to 1: proportional if all are numbers, else evenly spaced.
fn places(values: &[String]) -> Vec<f64> {
    let numbers: Option<Vec<f64>> = values
        .iter()
        .map(|value| value.parse().ok().filter(|number: &f64| number.is_finite()))
        .collect();
    let numbers = numbers.unwrap_or_else(|| (0..values.len()).map(|index| index as f64).collect());
    let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let most = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let span = most - least;
    numbers
        .iter()
        .map(|number| match span > 0.0 {
            true => (number - least) / span,
            false => 0.5,
        })
        .collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
