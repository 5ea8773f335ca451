//! `ghostgpu lint --rules` and `--explain`.

use ghostgpu_answers::{Detail, Style};
use ghostgpu_lint::{RULES, Rule, Safety, catalogue, names};
use serde_json::{Value, json};

use crate::failure::Failure;
use ghostgpu_text::{Table, wrap};

/// Adding a field keeps the version; `docs/lint-json.md` describes them.
const SCHEMA: &str = "ghostgpu.lint-rules/1";

/// All rules, as text: what each finds, and with `--verbose` its severity and fix too.
pub fn list(style: Style) -> String {
    match style.detail {
        Detail::Quiet => RULES
            .iter()
            .map(|rule| format!("{}\n", rule.name))
            .collect(),
        Detail::Screen => by_family(style.width),
        Detail::Everything => full_table(),
    }
}

/// The rules below their families, each with what it finds.
fn by_family(width: usize) -> String {
    const NAME_WIDTH: usize = 35;
    let mut text = String::new();
    let mut family = None;
    for rule in RULES {
        if family != Some(rule.family) {
            let blank = if text.is_empty() { "" } else { "\n" };
            text.push_str(&format!("{blank}{}:\n", names::of_family(rule.family)));
            family = Some(rule.family);
        }
        let summary = wrap(rule.summary, width.saturating_sub(NAME_WIDTH).max(25));
        for (index, part) in summary.iter().enumerate() {
            let name = if index == 0 { rule.name } else { "" };
            text.push_str(&format!("  {name:0$} {part}\n", NAME_WIDTH - 3));
        }
    }
    text
}

fn full_table() -> String {
    let mut table = Table::new(&["rule", "family", "severity", "fix", "finds"]);
    for rule in RULES {
        table.push(vec![
            rule.name.to_owned(),
            names::of_family(rule.family),
            rule.severity.as_str().to_owned(),
            catalogue::fix_word(catalogue::fix_of(rule)).to_owned(),
            rule.summary.to_owned(),
        ]);
    }
    table.render()
}

/// The rule of a name.
pub fn find(name: &str) -> Result<&'static Rule, Failure> {
    let found = RULES.iter().find(|rule| rule.name == name);
    found.copied().ok_or_else(|| {
        Failure::new(format!("unknown rule `{name}`")).with_hint(match names::closest(name) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "`ghostgpu lint --rules` lists the rules".to_owned(),
        })
    })
}

/// Rules, for programs.
pub fn document(rules: &[&Rule]) -> Value {
    let rules: Vec<Value> = rules
        .iter()
        .map(|rule| {
            json!({
                "name": rule.name,
                "family": names::of_family(rule.family),
                "severity": rule.severity.as_str(),
                "fix": catalogue::fix_of(rule).map(|safety| match safety {
                    Safety::Safe => "safe",
                    Safety::Unsafe => "unsafe",
                }),
                "summary": rule.summary,
                "docs": rule.docs,
            })
        })
        .collect();
    json!({"schema": SCHEMA, "rules": rules})
}
