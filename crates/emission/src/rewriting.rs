//! Small edits that leave formatting and comments as they are.

use std::ops::Range;

use ghostgpu_lint::Edit;
use ghostgpu_lint::python::{ExprCall, Stmt, span};
use ghostgpu_lint::rules::fixes;

use crate::script::Script;

/// The reason if a statement shares its line with another.
const SHARED_LINE: &str = "several statements stand on one line";

impl<'a> Script<'a> {
    /// Wraps consecutive statements in a block with this header.
    pub fn wrapped(&self, statements: &'a [Stmt], header: &str) -> Result<Vec<Edit>, String> {
        let (Some(first), Some(lines)) = (statements.first(), self.lines_of(statements)) else {
            return Err(SHARED_LINE.to_owned());
        };
        let indent = self.indent_of(first);
        let mut edits = vec![Edit::insert(lines.start, format!("{indent}{header}\n"))];
        edits.extend(self.indented(statements, lines));
        Ok(edits)
    }

    /// Indents lines by one level.
    fn indented(&self, statements: &'a [Stmt], lines: Range<usize>) -> Vec<Edit> {
        let strings: Vec<Range<usize>> = statements
            .iter()
            .flat_map(|statement| self.long_strings(statement))
            .collect();
        let unit = self.indent_unit();
        let mut edits = Vec::new();
        let mut start = lines.start;
        for line in self.text[lines].split_inclusive('\n') {
            let is_inside_string = strings
                .iter()
                .any(|range| range.start < start && start < range.end);
            if !line.trim().is_empty() && !is_inside_string {
                edits.push(Edit::insert(start, unit));
            }
            start += line.len();
        }
        edits
    }

    /// Adds a line before a statement.
    pub fn line_before(&self, statement: &Stmt, line: &str) -> Result<Edit, String> {
        let lines = self
            .lines_of(std::slice::from_ref(statement))
            .ok_or(SHARED_LINE)?;
        let indent = self.indent_of(statement);
        Ok(Edit::insert(lines.start, format!("{indent}{line}\n")))
    }

    /// Adds a line after a statement.
    pub fn line_after(&self, statement: &Stmt, line: &str) -> Result<Edit, String> {
        let lines = self
            .lines_of(std::slice::from_ref(statement))
            .ok_or(SHARED_LINE)?;
        let indent = self.indent_of(statement);
        Ok(match self.text[lines.clone()].ends_with('\n') {
            true => Edit::insert(lines.end, format!("{indent}{line}\n")),
            false => Edit::insert(lines.end, format!("\n{indent}{line}")),
        })
    }

    /// Removes a statement with its lines; if it is the only one of its block, `pass` takes its place.
    pub fn without(&self, statement: &Stmt) -> Result<Vec<Edit>, String> {
        fixes::without_statement(&self.facts, statement).ok_or_else(|| SHARED_LINE.to_owned())
    }

    /// Sets a keyword of a call, replacing its value if it has one.
    pub fn keyword(&self, call: &ExprCall, name: &str, value: &str) -> Result<Vec<Edit>, String> {
        if let Some(keyword) = call.arguments.find_keyword(name) {
            return Ok(match &self.text[span(&keyword.value)] == value {
                true => Vec::new(),
                false => vec![Edit::replace(span(&keyword.value), value)],
            });
        }
        if call.arguments.keywords.iter().any(|it| it.arg.is_none()) {
            return Err(format!(
                "`{name}` may be among the arguments that `{}` gets with `**`",
                &self.text[span(&*call.func)]
            ));
        }
        let keyword = format!("{name}={value}");
        let mut edits = fixes::with_keyword(&self.facts, call, &keyword)
            .ok_or_else(|| format!("`{name}` cannot be added to this call"))?;
        // If arguments are on separate lines, the new one is too.
        if let (Some(indent), [edit]) = (self.line_of_last_argument(call), &mut *edits) {
            edit.text = format!(",\n{indent}{keyword}");
        }
        Ok(edits)
    }

    /// The indentation of a call's last argument, if that begins a line.
    fn line_of_last_argument(&self, call: &ExprCall) -> Option<&'a str> {
        let arguments = call.arguments.args.iter().map(|it| span(it).start);
        let keywords = call.arguments.keywords.iter().map(|it| span(it).start);
        let start = arguments.chain(keywords).max()?;
        let line = self.text[..start].rfind('\n')? + 1;
        let indent = &self.text[line..start];
        (line > span(call).start && indent.trim().is_empty()).then_some(indent)
    }

    /// Removes a keyword of a call, if it has it.
    pub fn no_keyword(&self, call: &ExprCall, name: &str) -> Vec<Edit> {
        fixes::without_argument(&self.facts, call, name).unwrap_or_default()
    }

    /// Imports a module at the file's own level, unless it is.
    pub fn import(&self, module: &str) -> Vec<Edit> {
        match self.has_import(module) {
            true => Vec::new(),
            false => vec![self.top_lines(&format!("import {module}"), Top::BehindImports)],
        }
    }

    /// A line near the top of the file, set apart from the imports.
    pub fn top_line(&self, line: &str, place: Top) -> Edit {
        let mut edit = self.top_lines(line, place);
        let at = edit.range.start;
        if at > 0 && !self.text[..at].ends_with("\n\n") && !edit.text.starts_with('\n') {
            edit.text.insert(0, '\n');
        }
        let rest = &self.text[at..];
        if place == Top::BeforeImports && !rest.starts_with(['\n', '\r']) {
            edit.text.push('\n');
        }
        edit
    }

    fn top_lines(&self, line: &str, place: Top) -> Edit {
        let body = self.body();
        let is_docstring = |statement: &Stmt| matches!(statement, Stmt::Expr(node) if node.value.is_string_literal_expr());
        let is_future = |statement: &Stmt| {
            matches!(statement, Stmt::ImportFrom(node)
                if node.module.as_ref().is_some_and(|it| it.as_str() == "__future__"))
        };
        let is_import = |it: &Stmt| matches!(it, Stmt::Import(_) | Stmt::ImportFrom(_));
        let begins = body
            .iter()
            .take_while(|it| is_docstring(it) || is_future(it))
            .count();
        let imports = body[begins..].iter().take_while(|it| is_import(it)).count();
        let index = match place {
            Top::BeforeImports => begins,
            Top::BehindImports => begins + imports,
        };
        let range = match (index.checked_sub(1), body.get(index)) {
            (Some(before), _) => self.facts.source.whole_lines(&span(&body[before])),
            // Behind a shebang and comments: right before the first statement.
            (None, Some(first)) => {
                let lines = self.facts.source.whole_lines(&span(first));
                return Edit::insert(lines.start, format!("{line}\n"));
            }
            (None, None) => 0..0,
        };
        match self.text[range.clone()].ends_with('\n') || range.is_empty() {
            true => Edit::insert(range.end, format!("{line}\n")),
            false => Edit::insert(range.end, format!("\n{line}")),
        }
    }
}

/// Where a line near the top of the file goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Top {
    /// Behind the docstring and `from __future__`.
    BeforeImports,
    /// Behind the first imports.
    BehindImports,
}
