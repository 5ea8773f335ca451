//! Rules for this crate's own tests: they find words, so that everything around the rules can be tested
//! without the real ones.

use crate::facts::Facts;
use crate::finding::{Edit, Fix, Severity};
use crate::rules::{Family, Report, Rule};

pub const RULES: &[&Rule] = &[&NOISY, &QUIET, &IMPORTING, &BROKEN, &USELESS];

/// Finds `noisy`, and makes it `calm`.
pub static NOISY: Rule = Rule {
    name: "made-up-noisy",
    family: Family::KeptGraphs,
    severity: Severity::Error,
    summary: "a noisy word",
    docs: "",
    check: noisy,
};

/// Finds `quiet`, and unsafely makes it `noisy`.
pub static QUIET: Rule = Rule {
    name: "made-up-quiet",
    family: Family::Evaluation,
    severity: Severity::Note,
    summary: "a quiet word",
    docs: "",
    check: quiet,
};

/// Finds `math.` without `import math`, and adds it at the top.
pub static IMPORTING: Rule = Rule {
    name: "made-up-import",
    family: Family::NeedlessMemory,
    severity: Severity::Warning,
    summary: "an import is missing",
    docs: "",
    check: importing,
};

/// Finds `broken_fix`, and replaces it with a syntax error.
pub static BROKEN: Rule = Rule {
    name: "made-up-broken",
    family: Family::NeedlessMemory,
    severity: Severity::Warning,
    summary: "a fix that breaks the file",
    docs: "",
    check: broken,
};

/// Finds `useless_fix`, and adds a space to it.
pub static USELESS: Rule = Rule {
    name: "made-up-useless",
    family: Family::NeedlessMemory,
    severity: Severity::Warning,
    summary: "a fix that fixes nothing",
    docs: "",
    check: useless,
};

fn broken(facts: &Facts<'_>, report: &mut Report<'_>) {
    for (start, word) in words(facts.source.text(), "broken_fix") {
        let range = start..start + word.len();
        let fix = Fix::safe("Break it", vec![Edit::replace(range.clone(), "(")]);
        report.add_with(range, "broken".into(), "", Some(fix));
    }
}

fn useless(facts: &Facts<'_>, report: &mut Report<'_>) {
    for (start, word) in words(facts.source.text(), "useless_fix") {
        let range = start..start + word.len();
        let fix = Fix::safe("Add a space", vec![Edit::insert(range.end, " ")]);
        report.add_with(range, "useless".into(), "", Some(fix));
    }
}

/// Where the word occurs, but not inside a rule's name.
fn words<'t>(text: &'t str, word: &'t str) -> impl Iterator<Item = (usize, &'t str)> {
    text.match_indices(word)
        .filter(|(start, _)| !text[..*start].ends_with('-'))
}

fn noisy(facts: &Facts<'_>, report: &mut Report<'_>) {
    for (start, word) in words(facts.source.text(), "noisy") {
        let range = start..start + word.len();
        let fix = Fix::safe("Calm down", vec![Edit::replace(range.clone(), "calm")]);
        report.add_with(range, "this is noisy".into(), "be calm", Some(fix));
    }
}

fn quiet(facts: &Facts<'_>, report: &mut Report<'_>) {
    for (start, word) in words(facts.source.text(), "quiet") {
        let range = start..start + word.len();
        let fix = Fix::unsafe_("Be louder", vec![Edit::replace(range.clone(), "noisy")]);
        report.add_with(range, "this is quiet".into(), "", Some(fix));
    }
}

fn importing(facts: &Facts<'_>, report: &mut Report<'_>) {
    let text = facts.source.text();
    for (start, word) in text.match_indices("math.") {
        if text.contains("import math") {
            return;
        }
        let fix = Fix::safe("Import it", vec![Edit::insert(0, "import math\n")]);
        let range = start..start + word.len() - 1;
        report.add_with(
            range,
            "`math` is not imported".into(),
            "import it",
            Some(fix),
        );
    }
}
