//! A script: what its code does, and where its statements are.

use std::ops::Range;

use ghostgpu_lint::Source;
use ghostgpu_lint::facts::structure::{Call, UnitId};
use ghostgpu_lint::facts::value::Kind;
use ghostgpu_lint::facts::{Facts, each_expression, each_expression_of};
use ghostgpu_lint::python::{Dialect, Expr, ExprCall, Stmt, Tree, levels, span, with_stack_for};

use crate::outcome::Refused;

/// What is known about one script.
pub struct Script<'a> {
    pub facts: Facts<'a>,
    pub text: &'a str,
    /// Every list of statements, outer before inner.
    lists: Vec<&'a [Stmt]>,
}

impl<'a> Script<'a> {
    /// Reads a script for as long as `ask` needs it.
    pub fn read<R>(text: &str, ask: impl FnOnce(&Script<'_>) -> R) -> Result<R, Refused> {
        let broken = |line: usize, message: String| Refused::NotPython { line, message };
        let source =
            Source::script(text.as_bytes()).map_err(|error| broken(1, error.to_string()))?;
        if source.text() != text {
            // With a byte order mark or another encoding, positions would be wrong.
            return Err(broken(1, "the script is not plain UTF-8".to_owned()));
        }
        let levels = levels(source.text(), Dialect::Python);
        with_stack_for(levels, || {
            let tree = Tree::parse_measured(source.text(), Dialect::Python, levels);
            if let Some(error) = tree.errors().first() {
                let line = source.row(error.range.start) + 1;
                return Err(broken(line, error.message.clone()));
            }
            let mut lists = Vec::new();
            collect_lists(tree.body(), &mut lists);
            let script = Script {
                facts: Facts::of(&source, &tree),
                text: source.text(),
                lists,
            };
            Ok(ask(&script))
        })
    }

    pub fn calls(&self) -> &[Call<'a>] {
        &self.facts.structure.calls
    }

    pub fn unit(&self, call: &Call<'a>) -> UnitId {
        self.facts.structure.unit_of(call.place.block)
    }

    /// The top-level statements.
    pub fn body(&self) -> &'a [Stmt] {
        self.lists.first().copied().unwrap_or(&[])
    }

    /// The list that contains a statement, and its index there.
    pub fn list_of(&self, statement: &Stmt) -> Option<(&'a [Stmt], usize)> {
        self.lists.iter().find_map(|list| {
            let at = list.iter().position(|it| std::ptr::eq(it, statement))?;
            Some((*list, at))
        })
    }

    /// Calls of the function with this full name: `torch.optim.AdamW`.
    pub fn calls_of<'s>(
        &'s self,
        wanted: impl Fn(&str) -> bool + 's,
    ) -> impl Iterator<Item = (&'s Call<'a>, String)> + 's {
        self.calls().iter().filter_map(move |call| {
            let name = self.facts.callee(call.node)?;
            wanted(&name).then_some((call, name))
        })
    }

    /// Whether a function belongs to a model: a method of a class that has a `forward`.
    pub fn is_inside_a_model(&self, unit: UnitId) -> bool {
        let structure = &self.facts.structure;
        let mut next = Some(unit);
        while let Some(unit) = next {
            let found = &structure.units[unit];
            if let Some(class) = found.class
                && structure.classes[class].method("forward").is_some()
                && structure.classes[class].method("training_step").is_none()
            {
                return true;
            }
            next = found.parent;
        }
        false
    }

    /// The model that a call runs, directly or through a function of the file.
    pub fn model_run_by(&self, call: &Call<'a>) -> Option<&'a str> {
        let own = |call: &ExprCall| self.facts.called_module(call);
        own(call.node).or_else(|| {
            let unit = self.facts.callee_unit(call.node)?;
            let runs = self.facts.units_run_by(unit);
            let inner = std::iter::once(unit).chain(runs);
            let mut calls = inner
                .filter(|unit| !self.is_inside_a_model(*unit))
                .flat_map(|unit| self.facts.calls_in_unit(unit));
            calls.find_map(|call| own(call.node))
        })
    }

    /// The calls in a statement, including those in nested statements.
    pub fn calls_in(&self, statement: &'a Stmt) -> impl Iterator<Item = &Call<'a>> {
        let range = span(statement);
        self.calls()
            .iter()
            .filter(move |call| range.contains(&span(call.node).start))
    }

    /// The value of a path, if the file assigns it only once.
    pub fn only_value(&self, path: &str) -> Option<(&'a Expr, &'a Stmt)> {
        let structure = &self.facts.structure;
        let mut found = structure
            .assigns
            .iter()
            .filter(|assign| self.facts.path(assign.target) == Some(path));
        match (found.next(), found.next()) {
            (Some(assign), None) if assign.operator.is_none() => {
                Some((assign.value, assign.statement))
            }
            _ => None,
        }
    }

    /// The optimizers that the script creates and assigns to something.
    pub fn optimizers(&self) -> Vec<Optimizer<'a>> {
        let structure = &self.facts.structure;
        let made = structure.assigns.iter().filter_map(|assign| {
            let Expr::Call(call) = assign.value else {
                return None;
            };
            (self.facts.result(call).kind == Kind::Optimizer).then_some(())?;
            Some(Optimizer {
                path: self.facts.path(assign.target)?,
                call,
                statement: assign.statement,
                unit: structure.unit_of(assign.place.block),
            })
        });
        made.collect()
    }

    /// The model whose parameters an optimizer gets.
    pub fn model_of(&self, optimizer: &Optimizer<'a>) -> Option<&'a str> {
        let mut found = None;
        let arguments = optimizer.call.arguments.args.iter();
        for argument in
            arguments.chain(optimizer.call.arguments.keywords.iter().map(|it| &it.value))
        {
            self.model_in(argument, &mut found);
        }
        if found.is_none()
            && let Some(Expr::Name(name)) = optimizer.call.arguments.args.first()
            && let Some((value, _)) = self.only_value(name.id.as_str())
        {
            self.model_in(value, &mut found);
        }
        found
    }

    fn model_in(&self, expression: &'a Expr, found: &mut Option<&'a str>) {
        each_expression(expression, &mut |part| {
            if let Expr::Call(call) = part
                && let Some((receiver, "parameters" | "named_parameters")) = self.facts.method(call)
                && found.is_none()
            {
                *found = self.facts.path(receiver).map(|path| {
                    path.split_once('.')
                        .filter(|(root, _)| *root != "self")
                        .map_or(path, |(root, _)| root)
                });
            }
        });
    }

    /// The lines of consecutive statements, if nothing else is on them.
    pub fn lines_of(&self, statements: &[Stmt]) -> Option<Range<usize>> {
        let range = span(statements.first()?).start..span(statements.last()?).end;
        let lines = self.facts.source.whole_lines(&range);
        let before = &self.text[lines.start..range.start];
        let after = self.text[range.end..lines.end].trim();
        let is_alone = before.trim().is_empty() && (after.is_empty() || after.starts_with('#'));
        // Decorated definitions begin before their own position, but they are never wrapped.
        is_alone.then_some(lines)
    }

    /// The white space before a statement.
    pub fn indent_of(&self, statement: &Stmt) -> &'a str {
        let start = span(statement).start;
        let line = self.text[..start].rfind('\n').map_or(0, |at| at + 1);
        let text = &self.text[line..start];
        &text[..text.len() - text.trim_start().len()]
    }

    /// One level of indentation, as the script writes it.
    pub fn indent_unit(&self) -> &'a str {
        let inner = self.lists.iter().find_map(|list| {
            let indent = self.indent_of(list.first()?);
            (!indent.is_empty()).then_some(indent)
        });
        match inner {
            Some(indent) if indent.starts_with('\t') => "\t",
            Some(indent) => indent,
            None => "    ",
        }
    }

    /// The ranges of strings that span several lines, whose lines must not be changed.
    pub fn long_strings(&self, statement: &'a Stmt) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        each_expression_of(statement, &mut |part| {
            let is_string = matches!(
                part,
                Expr::StringLiteral(_) | Expr::BytesLiteral(_) | Expr::FString(_)
            );
            if is_string && self.text[span(part)].contains('\n') {
                found.push(span(part));
            }
        });
        found
    }

    /// A name that the script does not use yet.
    pub fn fresh(&self, names: &[&str]) -> String {
        let is_free = |name: &str| {
            let mut rest = self.text;
            let is_word = |it: char| it.is_alphanumeric() || it == '_';
            while let Some(at) = rest.find(name) {
                let before = rest[..at].chars().next_back();
                let after = rest[at + name.len()..].chars().next();
                if !before.is_some_and(is_word) && !after.is_some_and(is_word) {
                    return false;
                }
                rest = &rest[at + name.len()..];
            }
            true
        };
        if let Some(name) = names.iter().find(|name| is_free(name)) {
            return (*name).to_owned();
        }
        let numbered = (2..).map(|number| format!("{}_{number}", names[0]));
        numbered
            .into_iter()
            .find(|name| is_free(name))
            .expect("there are always more numbers")
    }

    /// Whether a module is imported at the top level under its own name.
    pub fn has_import(&self, module: &str) -> bool {
        self.body().iter().any(|statement| match statement {
            Stmt::Import(node) => node
                .names
                .iter()
                .any(|alias| alias.name.as_str() == module && alias.asname.is_none()),
            _ => false,
        })
    }
}

/// An optimizer that the script creates.
pub struct Optimizer<'a> {
    /// What it is assigned to.
    pub path: &'a str,
    pub call: &'a ExprCall,
    pub statement: &'a Stmt,
    pub unit: UnitId,
}

fn collect_lists<'a>(list: &'a [Stmt], found: &mut Vec<&'a [Stmt]>) {
    found.push(list);
    for statement in list {
        match statement {
            Stmt::FunctionDef(node) => collect_lists(&node.body, found),
            Stmt::ClassDef(node) => collect_lists(&node.body, found),
            Stmt::For(node) => {
                collect_lists(&node.body, found);
                collect_lists(&node.orelse, found);
            }
            Stmt::While(node) => {
                collect_lists(&node.body, found);
                collect_lists(&node.orelse, found);
            }
            Stmt::If(node) => {
                collect_lists(&node.body, found);
                for clause in &node.elif_else_clauses {
                    collect_lists(&clause.body, found);
                }
            }
            Stmt::With(node) => collect_lists(&node.body, found),
            Stmt::Try(node) => {
                collect_lists(&node.body, found);
                for handler in &node.handlers {
                    let ghostgpu_lint::python::ExceptHandler::ExceptHandler(handler) = handler;
                    collect_lists(&handler.body, found);
                }
                collect_lists(&node.orelse, found);
                collect_lists(&node.finalbody, found);
            }
            Stmt::Match(node) => {
                for case in &node.cases {
                    collect_lists(&case.body, found);
                }
            }
            _ => {}
        }
    }
}
