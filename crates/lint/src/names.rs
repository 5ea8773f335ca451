//! The names that select rules: a rule's, a family's, or `all`.

use crate::all_rules;
use crate::rules::{Family, Rule};

/// Stands for every rule.
pub const ALL: &str = "all";

/// The family's name in lists: `kept-graphs`.
pub fn of_family(family: Family) -> String {
    family.as_str().replace(' ', "-")
}

/// The rules that a name stands for; `None` if it is unknown.
pub fn rules_called(name: &str) -> Option<Vec<&'static Rule>> {
    let rules: Vec<&'static Rule> = all_rules()
        .filter(|rule| name == ALL || rule.name == name || of_family(rule.family) == name)
        .collect();
    (!rules.is_empty()).then_some(rules)
}

/// The closest known name.
pub fn closest(wrong: &str) -> Option<String> {
    let names = all_rules().flat_map(|rule| [rule.name.to_owned(), of_family(rule.family)]);
    closest_of(wrong, names.chain([ALL.to_owned()]))
}

/// The candidate that differs least from a word, if it differs little.
pub fn closest_of(wrong: &str, candidates: impl Iterator<Item = String>) -> Option<String> {
    let wrong = wrong.to_lowercase().replace('_', "-");
    // A longer word is not a misspelling, and comparing takes time.
    if wrong.chars().count() > 60 {
        return None;
    }
    candidates
        .map(|name| (distance(&wrong, &name.replace('_', "-")), name))
        .filter(|(distance, name)| *distance <= 1 + name.len() / 4)
        .min()
        .map(|(_, name)| name)
}

/// The edit distance of two words.
fn distance(first: &str, second: &str) -> usize {
    let second: Vec<char> = second.chars().collect();
    let mut row: Vec<usize> = (0..=second.len()).collect();
    for (line, a) in first.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, b) in second.iter().enumerate() {
            let above = row[column + 1];
            let changed = diagonal + usize::from(a != *b);
            row[column + 1] = changed.min(above + 1).min(row[column] + 1);
            diagonal = above;
        }
    }
    row[second.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_suggests_the_closest() {
        assert_eq!(closest("sumed-loss").as_deref(), Some("summed-loss"));
        assert_eq!(closest("Summed_Loss").as_deref(), Some("summed-loss"));
        assert_eq!(closest("kept-graph").as_deref(), Some("kept-graphs"));
        assert_eq!(closest("completely different"), None);
        assert_eq!(closest(&"a".repeat(1_000_000)), None);
    }

    #[test]
    fn a_family_stands_for_its_rules() {
        let names: Vec<&str> = rules_called("evaluation")
            .expect("a family")
            .iter()
            .map(|rule| rule.name)
            .collect();
        assert!(names.contains(&"made-up-quiet"));
        assert!(!names.contains(&"made-up-noisy"));
        assert_eq!(rules_called("no-such-rule"), None);
    }
}
