//! Settings of PyTorch's allocator, in the environment before torch is imported.

use ghostgpu_lint::Edit;
use ghostgpu_lint::python::{Expr, Stmt, span};
use ghostgpu_tricks::Request;

use super::option;
use crate::outcome::{Outcome, Written};
use crate::rewriting::Top;
use crate::script::Script;

const VARIABLES: &[&str] = &["PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"];

pub fn write(script: &Script<'_>, request: &Request) -> Outcome {
    let settings = option(request, "settings");
    let what = format!("`{settings}` in {}", VARIABLES[0]);
    if let Some((value, present)) = present(script) {
        let merged = merged(&present, settings);
        let edits = match merged == present {
            true => Vec::new(),
            false => vec![Edit::replace(span(value), format!("\"{merged}\""))],
        };
        return Written::new(what, edits);
    }
    if VARIABLES.iter().any(|name| script.text.contains(name)) {
        return Err(
            "the script sets the allocator itself, in a way that cannot be edited".to_owned(),
        );
    }
    let line = format!("os.environ[\"{}\"] = \"{settings}\"", VARIABLES[0]);
    let lines = match script.has_import("os") && imports_os_first(script) {
        true => line,
        false => format!("import os\n\n{line}"),
    };
    let place = match script.has_import("os") && imports_os_first(script) {
        true => {
            let body = script.body().iter();
            let import = body.clone().find(|it| is_import_of(it, "os"));
            let import = import.ok_or("`import os` was not found")?;
            script.line_after(import, &lines)?
        }
        false => script.top_line(&lines, Top::BeforeImports),
    };
    Written::new(what, vec![place])
}

/// `os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "..."` of the script itself.
fn present<'a>(script: &Script<'a>) -> Option<(&'a Expr, String)> {
    script.facts.structure.assigns.iter().find_map(|assign| {
        let Expr::Subscript(target) = assign.target else {
            return None;
        };
        let key = target.slice.as_string_literal_expr()?.value.to_str();
        let value = assign.value.as_string_literal_expr()?.value.to_str();
        VARIABLES
            .contains(&key)
            .then(|| (assign.value, value.to_owned()))
    })
}

/// The present settings without those that are replaced, followed by the new ones.
fn merged(present: &str, settings: &str) -> String {
    let name = |setting: &str| setting.split(':').next().unwrap_or("").trim().to_owned();
    let named: Vec<String> = split(settings).map(name).collect();
    let kept = split(present).filter(|each| !named.contains(&name(each)));
    kept.chain(split(settings)).collect::<Vec<&str>>().join(",")
}

/// Splits settings at commas, except for commas in brackets, which belong to a value.
fn split(settings: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    let is_comma = move |letter: char| {
        depth += i32::from(letter == '[') - i32::from(letter == ']');
        letter == ',' && depth == 0
    };
    settings
        .split(is_comma)
        .map(str::trim)
        .filter(|it| !it.is_empty())
}

fn is_import_of(statement: &Stmt, module: &str) -> bool {
    matches!(statement, Stmt::Import(node)
        if node.names.iter().any(|alias| alias.name.as_str() == module && alias.asname.is_none()))
}

/// Whether `os` is imported before anything that may import torch.
fn imports_os_first(script: &Script<'_>) -> bool {
    const QUICK: &[&str] = &[
        "os",
        "sys",
        "time",
        "math",
        "random",
        "argparse",
        "json",
        "__future__",
    ];
    let is_quick = |name: &str| QUICK.contains(&name);
    for statement in script.body() {
        match statement {
            it if is_import_of(it, "os") => return true,
            Stmt::Import(node) if node.names.iter().all(|alias| is_quick(alias.name.as_str())) => {}
            Stmt::ImportFrom(node)
                if node.module.as_ref().is_some_and(|it| is_quick(it.as_str())) => {}
            Stmt::Expr(_) => {}
            _ => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_are_there_stay_unless_they_are_named_again() {
        for (present, settings, expected) in [
            ("", "a:1", "a:1"),
            ("a:1", "a:1", "a:1"),
            ("a:1,b:[2,3]", "c:4", "a:1,b:[2,3],c:4"),
            ("a:1,b:[2,3]", "b:4,a:5", "b:4,a:5"),
        ] {
            assert_eq!(
                merged(present, settings),
                expected,
                "{present} and {settings}"
            );
        }
    }
}
