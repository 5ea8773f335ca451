//! The page's script as one piece.
//!
//! `web/` has plain modules. A page opened from a file cannot import modules, so they are concatenated into one scope,
//! without their import lines and the keyword `export`. Tests check the three rules that this requires: modules import
//! only from earlier ones, no two declare the same name, and every import or export is on one line.

/// The modules, each after all that it imports.
const MODULES: [(&str, &str); 20] = [
    ("format.js", include_str!("../../../../web/format.js")),
    ("elements.js", include_str!("../../../../web/elements.js")),
    ("theme.js", include_str!("../../../../web/theme.js")),
    ("data.js", include_str!("../../../../web/data.js")),
    ("search.js", include_str!("../../../../web/search.js")),
    ("ranges.js", include_str!("../../../../web/ranges.js")),
    ("stack.js", include_str!("../../../../web/stack.js")),
    ("layers.js", include_str!("../../../../web/layers.js")),
    ("card.js", include_str!("../../../../web/card.js")),
    ("moment.js", include_str!("../../../../web/moment.js")),
    ("view.js", include_str!("../../../../web/view.js")),
    ("canvas.js", include_str!("../../../../web/canvas.js")),
    ("phases.js", include_str!("../../../../web/phases.js")),
    ("timeline.js", include_str!("../../../../web/timeline.js")),
    ("addresses.js", include_str!("../../../../web/addresses.js")),
    ("treemap.js", include_str!("../../../../web/treemap.js")),
    ("segments.js", include_str!("../../../../web/segments.js")),
    ("table.js", include_str!("../../../../web/table.js")),
    ("tables.js", include_str!("../../../../web/tables.js")),
    ("page.js", include_str!("../../../../web/page.js")),
];

/// All modules, wrapped in a function.
pub(super) fn script() -> String {
    let mut script = String::from("(() => {\n\"use strict\";\n");
    for (name, source) in MODULES {
        script.push_str("// ");
        script.push_str(name);
        script.push('\n');
        for line in source.lines().filter(|line| !line.starts_with("import ")) {
            script.push_str(line.strip_prefix("export ").unwrap_or(line));
            script.push('\n');
        }
    }
    script.push_str("})();\n");
    script
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// The names that a module declares at the top level.
    fn declared(source: &str) -> impl Iterator<Item = &str> {
        source.lines().filter_map(|line| {
            let line = line.strip_prefix("export ").unwrap_or(line);
            let line = line.strip_prefix("async ").unwrap_or(line);
            let rest = ["const ", "let ", "function ", "class "]
                .iter()
                .find_map(|word| line.strip_prefix(word))?;
            rest.split(|letter: char| !(letter.is_alphanumeric() || letter == '_'))
                .next()
        })
    }

    #[test]
    fn no_two_modules_declare_the_same_name() {
        let mut names = HashSet::new();
        for (module, source) in MODULES {
            for name in declared(source) {
                assert!(names.insert(name), "{name} of {module} is there already");
            }
        }
    }

    #[test]
    fn modules_import_what_earlier_ones_export() {
        let mut exported = HashSet::new();
        for (module, source) in MODULES {
            for line in source.lines().filter(|line| line.starts_with("import ")) {
                let (names, from) = line
                    .strip_prefix("import { ")
                    .and_then(|rest| rest.strip_suffix("\";"))
                    .and_then(|rest| rest.split_once(" } from \"./"))
                    .unwrap_or_else(|| panic!("{module} imports in another manner: {line}"));
                for name in names.split(", ") {
                    assert!(
                        exported.contains(&(from, name)),
                        "{module} imports {name} of {from}"
                    );
                }
            }
            for line in source.lines() {
                if let Some(rest) = line.strip_prefix("export ") {
                    exported.extend(declared(rest).map(|name| (module, name)));
                }
            }
        }
    }

    #[test]
    fn the_script_cannot_end_its_element() {
        let script = script().to_lowercase();
        assert!(!script.contains("</script") && !script.contains("<!--"));
    }
}
