//! `ghostgpu lint --rules` and `--explain`.

use ghostgpu_lint::{RULES, catalogue, names};
use serde_json::{Value, json};

use super::arguments::Format;
use crate::failure::Failure;
use ghostgpu_text::Table;

/// All rules: a table, or JSON.
pub fn list(format: Format) -> Result<String, Failure> {
    match format {
        Format::Text => Ok(table()),
        Format::Json => {
            let rules: Vec<Value> = RULES
                .iter()
                .map(|rule| {
                    json!({
                        "name": rule.name,
                        "family": names::of_family(rule.family),
                        "severity": rule.severity.as_str(),
                        "fix": catalogue::fix_of(rule).map(|safety| match safety {
                            ghostgpu_lint::Safety::Safe => "safe",
                            ghostgpu_lint::Safety::Unsafe => "unsafe",
                        }),
                        "summary": rule.summary,
                    })
                })
                .collect();
            let text = serde_json::to_string_pretty(&rules);
            Ok(text.map_err(|error| Failure::new(error.to_string()))? + "\n")
        }
        Format::Sarif | Format::Github => {
            Err(Failure::new("the rules are listed as text or JSON only"))
        }
    }
}

fn table() -> String {
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

/// The documentation of one rule.
pub fn page(name: &str) -> Result<String, Failure> {
    match RULES.iter().find(|rule| rule.name == name) {
        Some(rule) => Ok(catalogue::page(rule)),
        None => Err(Failure::new(format!("unknown rule `{name}`")).with_hint(
            match names::closest(name) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "`ghostgpu lint --rules` lists the rules".to_owned(),
            },
        )),
    }
}
