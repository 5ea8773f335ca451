//! Memory that grows from step to step.

use ghostgpu_ledger::{CardLedger, GrowthSource, Places};
use ghostgpu_recording::Category;

use super::lines::place;
use crate::peak::until_full;
use crate::style::Style;
use ghostgpu_text::{Sheet, human};

const MOST_SOURCES: usize = 3;

pub(super) fn add(sheet: &mut Sheet, ledger: &CardLedger, style: Style) {
    let growth = ledger.growth();
    let Some(first) = growth.sources.first() else {
        return;
    };
    let places = Places::of(ledger.recording(), ledger.card());
    let mut sentences: Vec<String> = growth
        .sources
        .iter()
        .take(MOST_SOURCES)
        .map(|source| {
            let keeper = match source.kept_in.as_str() {
                "" => String::new(),
                variable => format!(", kept in {variable}"),
            };
            format!(
                "{} more in each step from {} ({}){keeper}",
                human(source.bytes_per_step),
                place(&places, &source.place, style),
                source.category.title()
            )
        })
        .collect();
    let others = growth.sources.len().saturating_sub(MOST_SOURCES);
    let mut all = match others {
        0 => String::new(),
        1 => "1 more line grows; ".to_owned(),
        others => format!("{others} more lines grow; "),
    };
    all.push_str(&until_full(growth.steps_until_full));
    if let Some(advice) = advice(first) {
        all.push_str("; ");
        all.push_str(advice);
    }
    sentences.push(all);
    sheet.list("grows", &sentences);
}

/// What usually keeps such memory.
fn advice(source: &GrowthSource) -> Option<&'static str> {
    match source.category {
        Category::Activation => Some(
            "something still refers to each step's tensors or their graph: keep `loss.item()` or \
             `x.detach().cpu()`, not the tensor itself",
        ),
        Category::Kept | Category::Temporary => Some(
            "something still refers to each step's result or its graph: keep `.item()` or \
             `.detach().cpu()` of it",
        ),
        Category::Gradient => {
            Some("the gradients of each step are kept in addition to the new ones")
        }
        _ => None,
    }
}
