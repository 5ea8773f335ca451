//! Where attributes are read, and what a value inside a loop is computed from.

use super::paths::is_part_of;
use super::structure::{BlockId, BlockKind, Place, UnitId};
use super::usage::bound_names;
use super::value::{Kind, Truth};
use super::{Facts, each_expression};
use crate::python::{Expr, ExprCall, Stmt, ast, span};
use crate::syntax::{given, holds, says_true};

impl<'a> Facts<'a> {
    /// Calls `visit` for every expression in a statement, but not in nested statements.
    pub fn each_expression_of_statement(
        &self,
        statement: &'a Stmt,
        visit: &mut dyn FnMut(&'a Expr),
    ) {
        use ast::visitor::{Visitor, walk_stmt};
        struct Direct<'v, 'e>(&'v mut dyn FnMut(&'e Expr));
        impl<'e> Visitor<'e> for Direct<'_, 'e> {
            fn visit_stmt(&mut self, _: &'e Stmt) {}
            fn visit_expr(&mut self, expression: &'e Expr) {
                each_expression(expression, self.0);
            }
        }
        walk_stmt(&mut Direct(visit), statement);
    }

    /// Whether one of these methods is called on the result of a call, or on something computed from it
    /// in the same expression.
    pub fn is_put_through(&self, unit: UnitId, call: &ExprCall, methods: &[&str]) -> bool {
        self.calls_in_unit(unit).any(|outer| {
            matches!(&*outer.node.func, Expr::Attribute(function)
                if methods.contains(&function.attr.as_str()) && holds(&*function.value, call))
        })
    }

    /// What a unit returns.
    pub fn returned(&self, unit: UnitId) -> impl Iterator<Item = &'a Expr> {
        let statements = self.structure.statements.iter();
        statements.filter_map(move |(statement, place)| match statement {
            Stmt::Return(node) if self.structure.unit_of(place.block) == unit => {
                node.value.as_deref()
            }
            _ => None,
        })
    }

    /// What a unit yields, and where.
    pub fn yielded(&self, unit: UnitId) -> Vec<(&'a Expr, Place)> {
        let mut all = Vec::new();
        for (statement, place) in &self.structure.statements {
            if self.structure.unit_of(place.block) == unit {
                self.each_expression_of_statement(statement, &mut |part| {
                    if let Expr::Yield(ast::ExprYield {
                        value: Some(value), ..
                    }) = part
                    {
                        all.push((&**value, *place));
                    }
                });
            }
        }
        all
    }

    /// Whether a function is a unit test, which computes little and keeps nothing.
    pub fn is_a_unit_test(&self, unit: UnitId) -> bool {
        let asserts = || {
            self.structure.statements.iter().any(|(statement, place)| {
                self.structure.unit_of(place.block) == unit && matches!(statement, Stmt::Assert(_))
            }) || self.calls_in_unit(unit).any(|call| {
                matches!(self.method(call.node), Some((_, name)) if name.starts_with("assert"))
            })
        };
        self.structure.units[unit].name.starts_with("test") && asserts()
    }

    /// The units that read an attribute of this name on any object.
    pub fn readers_of_attribute(&self, name: &str) -> Vec<UnitId> {
        let mut units = Vec::new();
        for (statement, place) in &self.structure.statements {
            self.each_expression_of_statement(statement, &mut |part| {
                if let Expr::Attribute(attribute) = part
                    && attribute.attr.as_str() == name
                    && attribute.ctx.is_load()
                {
                    units.push(self.structure.unit_of(place.block));
                }
            });
        }
        units
    }

    /// The parts of an expression, and of everything its names are bound to.
    pub fn made_of(&self, expression: &'a Expr) -> Vec<&'a Expr> {
        let mut parts: Vec<&'a Expr> = Vec::new();
        let mut seen: Vec<&str> = Vec::new();
        let mut next = vec![expression];
        while let Some(current) = next.pop() {
            each_expression(current, &mut |part| {
                parts.push(part);
                if let Some(path) = self.path(part)
                    && !seen.contains(&path)
                {
                    seen.push(path);
                    let assigns = self.structure.assigns.iter();
                    next.extend(
                        assigns
                            .filter(|assign| self.targets(assign.target, path))
                            .map(|assign| assign.value),
                    );
                }
            });
        }
        parts
    }

    /// Whether an expression inside a loop may depend on a graph from before this iteration: something
    /// created outside the loop, or left by the last iteration.
    pub fn may_reach_behind(&self, steps: BlockId, expression: &'a Expr) -> bool {
        let mut open = vec![expression];
        let mut seen: Vec<std::ops::Range<usize>> = Vec::new();
        while let Some(current) = open.pop() {
            if seen.contains(&span(current)) {
                continue;
            }
            seen.push(span(current));
            let mut comprehended: Vec<&str> = Vec::new();
            each_expression(current, &mut |part| {
                for generator in generators(part) {
                    self.each_target(&generator.target, &mut |name| comprehended.push(name));
                }
            });
            let mut behind = self.runs_on_a_graph_of_its_own(current);
            self.each_value_name(current, &mut |name| {
                let Some(path) = self.path(name) else { return };
                if comprehended.contains(&path) {
                    return;
                }
                match self.bindings_before(steps, path, name) {
                    // What has no graph reaches nowhere.
                    Some(values) => open.extend(
                        values
                            .into_iter()
                            .filter(|value| !self.value(value).graph.is_no()),
                    ),
                    None => {
                        behind |=
                            self.may_hold_graph(name) && !self.is_leaf(path) && !is_a_setting(path);
                    }
                }
            });
            if behind {
                return true;
            }
        }
        false
    }

    /// Whether an expression calls a function of the file that reads an outer graph, or a module of
    /// another file, which may keep a state.
    fn runs_on_a_graph_of_its_own(&self, expression: &'a Expr) -> bool {
        let mut found = false;
        each_expression(expression, &mut |part| {
            if let Expr::Call(call) = part {
                found |= match self.value(&call.func).kind {
                    Kind::Function(unit) => self.reads_graph_from_outside(unit),
                    Kind::Module(None) | Kind::Unknown => self.may_keep_a_state(&call.func),
                    _ => false,
                };
            }
        });
        found
    }

    fn reads_graph_from_outside(&self, unit: UnitId) -> bool {
        let own = bound_names(&self.structure, unit);
        let mut found = false;
        for (statement, place) in &self.structure.statements {
            if self.structure.unit_of(place.block) == unit {
                self.each_expression_of_statement(statement, &mut |part| {
                    let is_outer = match part {
                        Expr::Name(name) => !own.contains(&name.id.as_str()),
                        Expr::Attribute(_) => self
                            .path(part)
                            .is_some_and(|path| path.starts_with("self.")),
                        _ => false,
                    };
                    found |=
                        is_outer && self.value(part).is_tensor() && self.value(part).graph.is_yes();
                });
            }
        }
        found
    }

    /// Whether a module of another file may keep a state with a graph between passes: its name speaks of one, or
    /// the file resets or detaches what it keeps.
    fn may_keep_a_state(&self, module: &Expr) -> bool {
        const KNOWN: &[&str] = &["torch", "torchvision", "timm", "transformers", "copy"];
        let Some(path) = self.path(module) else {
            return false;
        };
        let is_made_elsewhere = |name: &str| !KNOWN.iter().any(|known| is_part_of(name, known));
        let is_named_so = self.structure.assigns.iter().any(|assign| {
            self.path(assign.target) == Some(path)
                && self.makes_a_state(assign.value, &is_made_elsewhere)
        });
        is_named_so
            || self.structure.calls.iter().any(|call| {
                matches!(&*call.node.func, Expr::Attribute(function)
                    if self.path(&function.value) == Some(path)
                        && handles_a_state(function.attr.as_str()))
            })
    }

    /// Whether an expression calls something whose name speaks of a state.
    fn makes_a_state(&self, expression: &Expr, is_made_elsewhere: &dyn Fn(&str) -> bool) -> bool {
        match expression {
            Expr::Call(call) => {
                let is_named_so = self
                    .callee(call)
                    .is_some_and(|name| is_made_elsewhere(&name) && speaks_of_a_state(&name));
                // `Net().cuda()`, `DataParallel(Net())`.
                is_named_so
                    || self.makes_a_state(&call.func, is_made_elsewhere)
                    || given(call)
                        .into_iter()
                        .any(|part| self.makes_a_state(part, is_made_elsewhere))
            }
            Expr::Attribute(part) => self.makes_a_state(&part.value, is_made_elsewhere),
            _ => false,
        }
    }

    /// The longest paths that are values in an expression, not called functions.
    fn each_value_name(&self, expression: &'a Expr, visit: &mut dyn FnMut(&'a Expr)) {
        match expression {
            Expr::Call(call) => {
                match &*call.func {
                    // `x.to(device)` is computed from `x` alone.
                    Expr::Attribute(function)
                        if matches!(function.attr.as_str(), "to" | "cuda") =>
                    {
                        return self.each_value_name(&function.value, visit);
                    }
                    // What a loader gives next has no graph.
                    Expr::Name(name) if name.id.as_str() == "next" => return,
                    Expr::Attribute(function) if !self.imports.knows(&call.func) => {
                        // `out.view(...)` is computed from `out`; `model.encode(...)`, `self.model(...)` and a
                        // method of this file are not computed from `model` and `self`.
                        if !self.value(&function.value).is_module()
                            && !self.value(&call.func).is_module()
                            && !matches!(self.value(&call.func).kind, Kind::Function(_))
                            && function.attr.as_str() != "forward"
                        {
                            self.each_value_name(&function.value, visit);
                        }
                    }
                    Expr::Name(_) | Expr::Attribute(_) => {
                        // A module that keeps a state contributes it.
                        if matches!(self.value(&call.func).kind, Kind::Module(Some(_))) {
                            visit(&call.func);
                        }
                    }
                    other => self.each_value_name(other, visit),
                }
                for argument in given(call) {
                    self.each_value_name(argument, visit);
                }
            }
            _ if self.path(expression).is_some() => visit(expression),
            _ => {
                let mut parts = Vec::new();
                direct_parts(expression, &mut parts);
                for part in parts {
                    self.each_value_name(part, visit);
                }
            }
        }
    }

    /// What a path (or its first name) was bound to earlier in this iteration of a loop.
    fn bindings_before(&self, steps: BlockId, path: &str, before: &Expr) -> Option<Vec<&'a Expr>> {
        let at = span(before).start;
        let unit = self.structure.unit_of(steps);
        for path in super::keeping::prefixes(path)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
        {
            let values: Vec<&'a Expr> = self
                .assigns_in_unit(unit)
                .filter(|assign| {
                    self.structure.is_inside(assign.place.block, steps)
                        && span(assign.statement).end <= at
                        && self.targets(assign.target, path)
                })
                .map(|assign| assign.value)
                .collect();
            let by_loop = self.structure.statements.iter().any(|(statement, place)| {
                matches!(statement, Stmt::For(node)
                    if self.structure.unit_of(place.block) == unit
                        && self.targets(&node.target, path)
                        && span(&*node.target).start < at
                        && (self.structure.is_inside(place.block, steps)
                            || matches!(self.structure.blocks[steps].kind,
                                BlockKind::For(around) if std::ptr::eq(around, node))))
            });
            if by_loop || values.iter().any(|value| !self.mentions(value, path)) {
                return Some(values);
            }
        }
        None
    }

    /// Whether a path is only bound to tensors that a graph begins with: `torch.zeros(3, requires_grad=True)`.
    fn is_leaf(&self, path: &str) -> bool {
        let mut bound = (self.structure.assigns.iter())
            .filter(|assign| self.targets(assign.target, path))
            .peekable();
        bound.peek().is_some()
            && bound.all(|assign| {
                matches!(assign.value, Expr::Call(call)
                if self.callee(call).is_some_and(|name| {
                    name.ends_with("nn.Parameter")
                        || name.starts_with("torch.") && says_true(call, "requires_grad")
                }))
            })
    }

    fn may_hold_graph(&self, expression: &Expr) -> bool {
        let value = self.value(expression);
        match value.kind {
            Kind::Tensor | Kind::Container | Kind::Tuple(_) | Kind::Unknown => {
                value.graph != Truth::No
            }
            Kind::Object(_) => true,
            // A module of this file whose `forward` stores something may contribute it.
            Kind::Module(Some(class)) => self.keeps_state(class),
            _ => false,
        }
    }

    /// Whether a module's `forward` stores something with a graph on `self`.
    pub fn keeps_state(&self, class: usize) -> bool {
        self.structure.classes[class]
            .method("forward")
            .is_some_and(|unit| {
                self.assigns_in_unit(unit).any(|assign| {
                    self.path(assign.target)
                        .is_some_and(|path| path.starts_with("self."))
                        && !self.value(assign.target).graph.is_no()
                })
            })
    }
}

/// `config['alpha']`, `self.args.weight`.
fn is_a_setting(path: &str) -> bool {
    const NAMES: &[&str] = &[
        "args", "arg", "opt", "opts", "cfg", "config", "conf", "hparams", "hp", "flags",
        "settings", "epoch", "step", "device",
    ];
    path.to_lowercase()
        .split(['.', '['])
        .any(|part| NAMES.contains(&part.trim_start_matches('_')))
}

/// Names of models that carry something from one pass to the next.
fn speaks_of_a_state(name: &str) -> bool {
    let name = name.to_lowercase();
    [
        "rnn", "lstm", "gru", "recurr", "memor", "spik", "snn", "neuron", "stateful", "ntm", "dnc",
    ]
    .iter()
    .any(|word| name.contains(word))
}

/// Methods that reset or cut what a model carries.
fn handles_a_state(method: &str) -> bool {
    let has = |words: &[&str]| words.iter().any(|word| method.contains(word));
    has(&["reset", "hidden", "detach", "repackage"])
        || method.contains("state") && !method.contains("state_dict")
}

/// The loops of a comprehension.
pub fn generators(expression: &Expr) -> &[ast::Comprehension] {
    match expression {
        Expr::ListComp(node) => &node.generators,
        Expr::SetComp(node) => &node.generators,
        Expr::DictComp(node) => &node.generators,
        Expr::Generator(node) => &node.generators,
        _ => &[],
    }
}

/// The direct subexpressions of an expression.
pub(super) fn direct_parts<'e>(expression: &'e Expr, parts: &mut Vec<&'e Expr>) {
    use ast::visitor::{Visitor, walk_expr};
    struct Direct<'v, 'e>(&'v mut Vec<&'e Expr>);
    impl<'e> Visitor<'e> for Direct<'_, 'e> {
        fn visit_expr(&mut self, expression: &'e Expr) {
            self.0.push(expression);
        }
    }
    walk_expr(&mut Direct(parts), expression);
}
