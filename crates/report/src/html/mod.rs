//! A recording as one page that opens offline in any browser.
//!
//! The page's data is prepared here, so that the browser only has to draw: an [overview](overview) with as many
//! stretches as a screen can show, which is read and drawn first, then every allocation as columns ([`details`]). Both
//! are embedded in the page. The page makes no requests, and its own security policy would refuse them. Its appearance
//! and behaviour are in `web/`.

mod answer;
mod base64;
mod bundle;
mod counted;
mod details;
mod escape;
mod outcome;
mod overview;
mod plan;
mod ran_out;
mod ranks;
mod section;
mod stack;
mod unknown;

use std::io::Write;

use ghostgpu_ledger::Groups;
use ghostgpu_recording::Recording;
use ghostgpu_text::human;

use crate::ReportError;
use answer::Words;
use counted::Counted;
use escape::Escaped;

const TEMPLATE: &str = include_str!("../../../../web/page.html");
const STYLE: &str = include_str!("../../../../web/page.css");

/// Writes the page. The same recording gives the same bytes.
pub fn write_html(recording: &Recording, mut out: impl Write) -> Result<(), ReportError> {
    let groups = Groups::of(recording);
    let counted = Counted::all(recording, &groups);
    let mut rest = TEMPLATE;
    while let Some((before, after)) = rest.split_once("<!--{") {
        let (place, after) = after.split_once("}-->").unwrap_or((after, ""));
        out.write_all(before.as_bytes())?;
        fill(place, recording, &groups, &counted, &mut out)?;
        rest = after;
    }
    out.write_all(rest.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Writes the contents of a named place of the template.
fn fill(
    place: &str,
    recording: &Recording,
    groups: &Groups,
    counted: &[Counted<'_>],
    out: &mut impl Write,
) -> Result<(), ReportError> {
    let about = &recording.about;
    let words = Words::new(recording, counted);
    match place {
        "title" => write!(out, "{}", Escaped(&about.command.join(" ")))?,
        "style" => write!(out, "<style>\n{STYLE}</style>")?,
        "answer" => {
            let (verdict, figures) = words.sentence();
            write!(
                out,
                "<h1 class=\"{}\"><span>{verdict}</span> {}</h1>",
                words.class(),
                Escaped(&figures)
            )?;
        }
        "reason" => write!(out, "{}", words.reason())?,
        "failed" => write!(out, "{}", ran_out::html(recording, counted))?,
        "outcome" => write!(out, "{}", outcome::html(recording, counted))?,
        "plan" => write!(out, "{}", plan::html(recording))?,
        "ranks" => write!(out, "{}", ranks::html(recording, counted))?,
        "runs" => write!(out, "{}", words.runs())?,
        "about" => write!(out, "{}", words.about())?,
        "source" => write!(out, "{}", overview::source_name(about.source))?,
        // Without owners and stacks there are no holders to show.
        "holders" => write!(
            out,
            "{}",
            match groups.titles.len() {
                1 => "unknown",
                _ => "known",
            }
        )?,
        "remarks" => write!(out, "{}", words.remarks())?,
        "overview" => {
            overview::overview_section(recording, groups, counted)?.write("data-overview", out)?
        }
        "script" => write!(out, "<script>\n{}</script>", bundle::script())?,
        "details" => {
            let mut owners = details::Owners::of(&recording.names);
            for (place, counted) in counted.iter().enumerate() {
                let class = format!("data-card{place}");
                let (card, phases) = (counted.card, &counted.phases);
                details::card_section(recording, card, phases, groups, &mut owners)
                    .write(&class, out)?;
            }
            details::names_section(&recording.names, &owners)?.write("data-names", out)?;
        }
        other => unreachable!("the template names the place {other}"),
    }
    Ok(())
}

/// A size whose number and unit stay on one line.
fn size(bytes: u64) -> String {
    human(bytes).replace(' ', "\u{a0}")
}

/// Appends to HTML that is being built.
fn push(html: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing into a `String` cannot fail.
    let _ = std::fmt::Write::write_fmt(html, text);
}

#[cfg(test)]
mod tests {
    use ghostgpu_recording::Answer;
    use ghostgpu_recording::made_up::{self, MadeUp};

    use super::*;

    fn page(recording: &Recording) -> String {
        let mut out = Vec::new();
        write_html(recording, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn small() -> Recording {
        made_up::recording(MadeUp {
            layers: 3,
            steps: 2,
        })
    }

    #[test]
    fn the_same_recording_gives_the_same_bytes() {
        assert_eq!(page(&small()), page(&small()));
    }

    #[test]
    fn every_place_of_the_template_is_filled() {
        let page = page(&small());
        assert!(!page.contains("<!--{") && !page.contains("}-->"));
        assert!(page.ends_with("</html>\n"));
    }

    #[test]
    fn nothing_of_a_recording_becomes_markup() {
        let hostile = "</script></title><script>alert('x')</script><!--{title}-->";
        let mut recording = small();
        let plain = page(&recording);
        recording.about.command = vec![hostile.to_owned()];
        recording.about.gpu = hostile.to_owned();
        recording.about.torch = hostile.to_owned();
        recording.about.capability = hostile.to_owned();
        recording.about.answer = Some(Answer {
            assumptions: vec![hostile.to_owned()],
            notes: vec![hostile.to_owned()],
            ..Answer::default()
        });
        recording.warnings = vec![hostile.to_owned()];
        for text in &mut recording.names.texts {
            *text = hostile.to_owned();
        }
        let page = page(&recording);
        let scripts = |text: &str| {
            (
                text.matches("<script").count(),
                text.matches("</script").count(),
            )
        };
        assert_eq!(scripts(&page), scripts(&plain));
        assert!(!page.contains("<script>alert"));
    }

    #[test]
    fn a_recording_without_cards_still_becomes_a_page() {
        assert!(page(&Recording::default()).contains("<h1 class=\"unknown\">"));
    }
}
