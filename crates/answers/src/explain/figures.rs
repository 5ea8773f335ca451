//! The figures of a message, each with its name.

use ghostgpu_explain::{Amount, FigureValue, Figures, NamedFigure};
use ghostgpu_text::grouped;

/// Those that any kind of message may give, as far as this one does.
pub(super) fn common(figures: &Figures) -> impl Iterator<Item = (&'static str, Amount)> {
    let named = [
        ("asked for", figures.requested),
        ("allocated", figures.allocated),
        ("allowed", figures.allowed),
        ("free", figures.free),
        ("total", figures.total),
    ];
    named
        .into_iter()
        .filter_map(|(name, amount)| Some((name, amount?)))
}

/// One that only some messages give.
pub(super) fn in_words(figure: &NamedFigure) -> String {
    let name = &figure.name;
    match &figure.value {
        FigureValue::Amount(amount) => format!("{name} {amount}"),
        // A number that is a name has no thousands.
        FigureValue::Count(number) if *name == "process" || *name == "worker" => {
            format!("{name} {number}")
        }
        FigureValue::Count(count) => format!("{name} {}", grouped(*count)),
        FigureValue::Text(text) => format!("{name} {text}"),
    }
}
