//! The figures of a message, each with its name.

use ghostgpu_explain::{Amount, Catalogue, FigureValue, Figures, NamedFigure, say};
use ghostgpu_text::grouped;

/// The figures that any kind of message may have.
pub(super) fn common(figures: &Figures, catalogue: &Catalogue) -> Vec<(String, Amount)> {
    let named = [
        ("figure-asked-for", figures.requested),
        ("figure-allocated", figures.allocated),
        ("figure-allowed", figures.allowed),
        ("figure-free", figures.free),
        ("figure-total", figures.total),
    ];
    named
        .into_iter()
        .filter_map(|(id, amount)| Some((say!(catalogue, id), amount?)))
        .collect()
}

/// A figure that only some messages have.
pub(super) fn in_words(figure: &NamedFigure, catalogue: &Catalogue) -> String {
    let value = match &figure.value {
        FigureValue::Amount(amount) => amount.to_string(),
        // A number that is an identifier gets no thousands separators.
        FigureValue::Count(number) if figure.name == "process" || figure.name == "worker" => {
            number.to_string()
        }
        FigureValue::Count(count) => grouped(*count),
        FigureValue::Text(text) => text.clone(),
    };
    let name = name_of(figure.name, catalogue);
    say!(catalogue, "figure", name = name, value = value)
}

/// A figure's name in the reader's language. The names in JSON stay the same.
fn name_of(name: &str, catalogue: &Catalogue) -> String {
    let id = match name {
        "library" => "figure-library",
        "shape" => "figure-shape",
        "type" => "figure-type",
        "call" => "figure-call",
        "resource" => "figure-resource",
        "process" => "figure-process",
        "program" => "figure-program",
        "resident" => "figure-resident",
        "address space" => "figure-address-space",
        "kills" => "figure-kills",
        "local rank" => "figure-local-rank",
        "worker" => "figure-worker",
        "in use on the machine" => "figure-in-use",
        "RAM of the machine" => "figure-ram",
        "parameters" => "figure-parameters",
        "constants" => "figure-constants",
        "results" => "figure-results",
        "temporaries" => "figure-temporaries",
        "in total" => "figure-in-total",
        "sequence length" => "figure-sequence-length",
        "length that fits" => "figure-length-that-fits",
        "utilization" => "figure-utilization",
        "requests" => "figure-requests",
        "tokens" => "figure-tokens",
        "other allocations" => "figure-other-allocations",
        "free, as printed" => "figure-free-as-printed",
        other => return other.to_owned(),
    };
    say!(catalogue, id)
}
