//! What the code of one file does: everything the rules can query.
//!
//! - [`structure`]: where everything is (functions, loops, conditions, calls, assignments);
//! - [`imports`]: what imported names mean;
//! - [`usage`] and [`roles`]: what names are used for, and what unknown ones are called for;
//! - [`frameworks`]: which methods a framework calls once per batch;
//! - [`flow`]: what values are, tracked through the code;
//! - queries that several rules share: [`reach`] (which functions a call runs), [`backward`] (backward
//!   passes), [`terms`] (what a loss is the sum of), [`totals`] (what grows by sums), [`reads`] and [`binding`] (where names are read and
//!   bound), [`kept`], [`keepers`], [`keeping`] and [`flows`] (what containers and functions keep, how long,
//!   and where it flows), [`steps`] (what is repeated for every batch), [`evaluating`] (where a model is in evaluation mode),
//!   [`origin`] and [`placement`] (where values are created, and on which device).

pub mod accumulation;
pub mod backward;
pub mod batches;
pub mod binding;
pub mod branches;
pub mod conditions;
pub mod evaluating;
pub mod flow;
pub mod flows;
pub mod frameworks;
pub mod frozen;
pub mod imports;
pub mod keepers;
pub mod keeping;
pub mod kept;
pub mod memory_errors;
pub mod origin;
pub mod paths;
pub mod placement;
pub mod reach;
pub mod reads;
pub mod reduction;
pub mod roles;
pub mod steps;
pub mod structure;
pub mod terms;
pub mod torch_names;
pub mod totals;
pub mod training;
pub mod usage;
mod used_on_card;
pub mod value;
mod walk;

use std::cell::OnceCell;

use crate::python::{Expr, ExprCall, Ranged, Stmt, Tree, span};
use crate::source::Source;
use flow::Flow;
use imports::Imports;
use kept::Kept;
use structure::{Assign, BlockId, Call, Structure, UnitId};
use usage::{Usage, Usages};
use value::{Truth, Value};

/// Everything the rules can query about one file.
pub struct Facts<'a> {
    pub source: &'a Source,
    pub tree: &'a Tree,
    pub structure: Structure<'a>,
    pub imports: Imports<'a>,
    usages: Usages<'a>,
    flow: Flow,
    /// Which units run once per step.
    run_in_steps: OnceCell<Vec<bool>>,
    kept: Vec<Kept<'a>>,
}

impl<'a> Facts<'a> {
    pub fn of(source: &'a Source, tree: &'a Tree) -> Self {
        let structure = Structure::of(tree.body());
        let imports = Imports::of(&structure);
        let usages = Usages::of(source.text(), &structure, &imports);
        let flow = flow::follow(source.text(), &structure, &imports, &usages);
        let mut facts = Self {
            source,
            tree,
            structure,
            imports,
            usages,
            flow,
            run_in_steps: OnceCell::new(),
            kept: Vec::new(),
        };
        facts.kept = facts.all_kept();
        facts
    }

    /// The source text of a piece of syntax.
    pub fn text(&self, node: &impl Ranged) -> &'a str {
        &self.source.text()[span(node)]
    }

    /// The access path an expression names (`loss`, `self.model`, `history["loss"]`).
    pub fn path(&self, expression: &Expr) -> Option<&'a str> {
        paths::path(self.source.text(), expression)
    }

    /// What an expression is.
    pub fn value(&self, expression: &Expr) -> Value {
        self.flow.value(expression)
    }

    /// What a call returns.
    pub fn result(&self, call: &ExprCall) -> Value {
        self.flow.value(call)
    }

    /// The elements of a tuple whose elements are known.
    pub fn elements(&self, value: Value) -> Option<&[Value]> {
        self.flow.elements(value)
    }

    /// The methods of the file that a call on an object of unknown class may run.
    pub fn candidates(&self, call: &ExprCall) -> &[UnitId] {
        self.flow.candidates(call)
    }

    /// Whether gradients are enabled at a call or an assignment.
    pub fn gradients_at(&self, place: &impl Ranged) -> Truth {
        self.flow.gradients_at(place)
    }

    /// The full name of the called function, if it is imported: `torch.load`.
    pub fn callee(&self, call: &ExprCall) -> Option<String> {
        self.imports.qualified(&call.func)
    }

    /// The receiver and the name of a method call: `optimizer` and `step`.
    pub fn method<'c>(&self, call: &'c ExprCall) -> Option<(&'c Expr, &'c str)> {
        match &*call.func {
            Expr::Attribute(function) if !self.imports.knows(&call.func) => {
                Some((&function.value, function.attr.as_str()))
            }
            _ => None,
        }
    }

    /// How a path is used in a unit.
    pub fn usage(&self, unit: UnitId, path: &str) -> Usage {
        self.usages.usage(&self.structure, unit, path)
    }

    pub fn calls_in_unit(&self, unit: UnitId) -> impl Iterator<Item = &Call<'a>> {
        self.structure
            .calls
            .iter()
            .filter(move |call| self.structure.unit_of(call.place.block) == unit)
    }

    pub fn assigns_in_unit(&self, unit: UnitId) -> impl Iterator<Item = &Assign<'a>> {
        self.structure
            .assigns
            .iter()
            .filter(move |assign| self.structure.unit_of(assign.place.block) == unit)
    }

    /// The calls that are inside a block (a loop, a `with`), within its unit.
    pub fn calls_inside(&self, block: BlockId) -> impl Iterator<Item = &Call<'a>> {
        let unit = self.structure.unit_of(block);
        self.calls_in_unit(unit)
            .filter(move |call| self.structure.is_inside(call.place.block, block))
    }

    /// Whether a unit returns an expression that mentions a path.
    pub fn is_returned(&self, unit: UnitId, path: &str) -> bool {
        self.structure.statements.iter().any(|(statement, place)| {
            self.structure.unit_of(place.block) == unit
                && matches!(statement, Stmt::Return(node)
                    if node.value.as_ref().is_some_and(|value| self.mentions(value, path)))
        })
    }

    /// Whether an expression mentions a path.
    pub fn mentions(&self, expression: &Expr, path: &str) -> bool {
        let mut found = false;
        each_expression(expression, &mut |part| {
            found |= self.path(part) == Some(path);
        });
        found
    }
}

/// Calls `visit` for an expression and all nested expressions.
pub fn each_expression<'e>(expression: &'e Expr, visit: &mut dyn FnMut(&'e Expr)) {
    use crate::python::ast::visitor::Visitor;
    Each(visit).visit_expr(expression);
}

/// Calls `visit` for every expression in a statement and in nested statements.
pub fn each_expression_of<'e>(statement: &'e Stmt, visit: &mut dyn FnMut(&'e Expr)) {
    use crate::python::ast::visitor::Visitor;
    Each(visit).visit_stmt(statement);
}

struct Each<'v, 'e>(&'v mut dyn FnMut(&'e Expr));

impl<'e> crate::python::ast::visitor::Visitor<'e> for Each<'_, 'e> {
    fn visit_expr(&mut self, expression: &'e Expr) {
        (self.0)(expression);
        crate::python::deep(|| crate::python::ast::visitor::walk_expr(self, expression));
    }

    fn visit_stmt(&mut self, statement: &'e Stmt) {
        crate::python::deep(|| crate::python::ast::visitor::walk_stmt(self, statement));
    }
}
