//! Evaluates statements in order: branches separately, loops twice.

use super::Reader;
use crate::facts::each_expression;
use crate::facts::paths::path;
use crate::facts::roles::{Role, role};
use crate::facts::torch_names;
use crate::facts::usage::{class_of, unmoved};
use crate::facts::value::{Kind, Truth, Value};
use crate::python::{ExceptHandler, Expr, Operator, Ranged, Stmt, ast, deep, span};
use crate::syntax::last_name;

impl<'a> Reader<'_, 'a> {
    /// Reads statements; true if the end is not reached (`return`, `raise`, `continue`, `break`).
    pub(super) fn block(&mut self, body: &'a [Stmt]) -> bool {
        for statement in body {
            if deep(|| self.statement(statement)) {
                return true;
            }
        }
        false
    }

    fn statement(&mut self, statement: &'a Stmt) -> bool {
        if matches!(statement, Stmt::Assign(_) | Stmt::AugAssign(_)) {
            self.flow.modes.insert(statement.range(), self.frame.mode);
        }
        match statement {
            Stmt::FunctionDef(node) => {
                let unit = self.structure.unit_of_definition(node);
                if let Some(unit) = unit {
                    self.set(node.name.as_str(), Value::plain(Kind::Function(unit)));
                }
            }
            Stmt::ClassDef(node) => {
                let class = self.structure.class_of_definition(node);
                if let Some(class) = class {
                    self.set(node.name.as_str(), Value::plain(Kind::Class(class)));
                }
                // Class attributes are read for their calls; their names belong to the class.
                for inner in &node.body {
                    if !matches!(inner, Stmt::FunctionDef(_) | Stmt::ClassDef(_)) {
                        self.statement(inner);
                    }
                }
            }
            Stmt::Return(node) => {
                let value = match &node.value {
                    Some(value) => self.eval(value),
                    None => Value::plain(Kind::None),
                };
                let before = self.frame.returns;
                self.frame.returns = self.join(before, value);
                return true;
            }
            Stmt::Raise(node) => {
                for part in node.exc.iter().chain(&node.cause) {
                    self.eval(part);
                }
                return true;
            }
            Stmt::Break(_) | Stmt::Continue(_) => return true,
            Stmt::Assign(node) => {
                let value = self.eval(&node.value);
                for target in &node.targets {
                    self.assign_made(target, &node.value, value, span(node).start);
                }
            }
            Stmt::AnnAssign(node) => {
                if let Some(value) = &node.value {
                    let value = self.eval(value);
                    self.assign(&node.target, value, span(node).start);
                }
            }
            Stmt::AugAssign(node) => {
                let before = self.eval(&node.target);
                let added = self.eval(&node.value);
                let value = if before.kind == Kind::Container && node.op == Operator::Add {
                    Value {
                        graph: before.graph.or(added.graph),
                        ..before
                    }
                } else {
                    self.combined(before, added)
                };
                self.assign(&node.target, value, span(node).start);
            }
            Stmt::Expr(node) => {
                self.eval(&node.value);
                self.global_mode(&node.value);
            }
            Stmt::If(node) => return self.if_(node),
            Stmt::For(node) => {
                let element = self.element_of(&node.iter);
                self.loop_(|reader| {
                    reader.assign(&node.target, element, span(node).start);
                    reader.block(&node.body);
                });
                self.block(&node.orelse);
            }
            Stmt::While(node) => {
                self.loop_(|reader| {
                    reader.eval(&node.test);
                    reader.block(&node.body);
                });
                self.block(&node.orelse);
            }
            Stmt::With(node) => return self.with(node),
            Stmt::Try(node) => return self.try_(node),
            Stmt::Match(node) => {
                self.eval(&node.subject);
                let before = self.frame.values.clone();
                let mut after: Option<Vec<Value>> = None;
                for case in &node.cases {
                    self.restore(&before);
                    if !self.block(&case.body) {
                        self.merge(&mut after);
                    }
                }
                self.restore(&before);
                self.merge(&mut after);
                self.adopt(after);
            }
            Stmt::Delete(node) => {
                for target in &node.targets {
                    if let Some(path) = path(self.text, target) {
                        self.set(path, Value::UNSET);
                    }
                }
            }
            Stmt::Assert(node) => {
                self.eval(&node.test);
            }
            _ => {}
        }
        false
    }

    /// Binds a target to what an expression makes. `self.conv = GCNConv(16, 32)` in a module: an object of an
    /// unknown class that the module then calls is a layer.
    fn assign_made(&mut self, target: &'a Expr, made: &'a Expr, value: Value, byte: usize) {
        match (target, made) {
            (Expr::Tuple(targets), Expr::Tuple(values))
                if targets.elts.len() == values.elts.len()
                    && !targets.elts.iter().any(Expr::is_starred_expr) =>
            {
                for (target, made) in targets.elts.iter().zip(&values.elts) {
                    let value = self.flow.value(made);
                    self.assign_made(target, made, value, byte);
                }
            }
            _ if self.makes_layer(target, made).is_some_and(|it| it)
                || self.copies_model(target, made).is_some_and(|it| it) =>
            {
                let module = Value {
                    card: value.card,
                    ..Value::of(Kind::Module(None))
                };
                self.assign(target, module, byte);
            }
            _ => self.assign(target, value, byte),
        }
    }

    /// `old = copy.deepcopy(model)` of a model of unknown origin, which is then called.
    fn copies_model(&self, target: &'a Expr, made: &'a Expr) -> Option<bool> {
        let Expr::Call(call) = unmoved(made) else {
            return None;
        };
        let original = path(self.text, call.arguments.args.first()?)?;
        let usage = self
            .usages
            .usage(self.structure, self.frame.unit, path(self.text, target)?);
        Some(
            self.imports.qualified(&call.func)? == "copy.deepcopy"
                && self.flow.value(made).kind == Kind::Unknown
                && role(original) == Some(Role::Model)
                && usage.called,
        )
    }

    fn makes_layer(&self, target: &'a Expr, made: &'a Expr) -> Option<bool> {
        /// Parts of the names of classes whose objects are called, but are no layers.
        const OTHERS: &[&str] = &[
            "Accuracy",
            "Augment",
            "Compose",
            "Criteri",
            "Loss",
            "Metric",
            "Process",
            "Sampl",
            "Token",
            "Transform",
        ];
        // `QNet(4).to(device)`: of the objects of a script's own classes, only modules are moved.
        let is_moved = !std::ptr::eq(unmoved(made), made);
        let Expr::Call(call) = unmoved(made) else {
            return None;
        };
        let name = path(self.text, target)?;
        let maker = last_name(path(self.text, &call.func)?);
        let is_class = maker.starts_with(|first: char| first.is_ascii_uppercase())
            && maker.contains(|letter: char| letter.is_ascii_lowercase());
        let usage = self.usages.usage(self.structure, self.frame.unit, name);
        let is_layer = || {
            name.starts_with("self.")
                && class_of(self.structure, self.frame.unit)
                    .is_some_and(|class| self.modules[class])
        };
        Some(
            (is_moved || is_layer())
                && self.flow.value(made).kind == Kind::Unknown
                && is_class
                && usage.called
                && !OTHERS.iter().any(|other| maker.contains(other)),
        )
    }

    /// `torch.set_grad_enabled(False)` as a statement applies from there on, and so does a context that
    /// is entered by a call: `stack.enter_context(torch.no_grad())`.
    fn global_mode(&mut self, expression: &'a Expr) {
        let Expr::Call(call) = expression else {
            return;
        };
        if let Some(name) = self.imports.qualified(&call.func)
            && torch_names::is_set_grad_enabled(&name)
        {
            self.frame.mode = mode_argument(call);
        } else if let Expr::Attribute(function) = &*call.func {
            let entered = match function.attr.as_str() {
                "enter_context" => call.arguments.args.first(),
                "__enter__" => Some(&*function.value),
                _ => None,
            };
            if let Some(Expr::Call(context)) = entered
                && let Some(name) = self.imports.qualified(&context.func)
                && torch_names::is_no_grad(&name)
            {
                self.frame.mode = Truth::No;
            }
        }
    }

    fn if_(&mut self, node: &'a ast::StmtIf) -> bool {
        self.eval(&node.test);
        let before = self.frame.values.clone();
        let mut after: Option<Vec<Value>> = None;
        if !self.block(&node.body) {
            self.merge(&mut after);
        }
        let mut has_else = false;
        for clause in &node.elif_else_clauses {
            self.restore(&before);
            match &clause.test {
                Some(test) => {
                    self.eval(test);
                }
                None => has_else = true,
            }
            if !self.block(&clause.body) {
                self.merge(&mut after);
            }
        }
        if !has_else {
            self.restore(&before);
            self.merge(&mut after);
        }
        let ended = after.is_none();
        self.adopt(after);
        ended
    }

    fn loop_(&mut self, body: impl Fn(&mut Self)) {
        let passes = if self.frame.loops < 2 { 2 } else { 1 };
        self.frame.loops += 1;
        for _ in 0..passes {
            let before = self.frame.values.clone();
            body(self);
            let mut joined = Some(before);
            self.merge(&mut joined);
            self.adopt(joined);
        }
        self.frame.loops -= 1;
    }

    fn with(&mut self, node: &'a ast::StmtWith) -> bool {
        let outer = self.frame.mode;
        for item in &node.items {
            let value = self.eval(&item.context_expr);
            if let Some(target) = &item.optional_vars {
                self.assign(target, value, span(node).start);
            }
            let called = match &item.context_expr {
                Expr::Call(call) => &*call.func,
                other => other,
            };
            let Some(name) = self.imports.qualified(called) else {
                if self.may_switch_gradients(&item.context_expr) {
                    self.frame.mode = Truth::Maybe;
                }
                continue;
            };
            if torch_names::is_no_grad(&name) {
                self.frame.mode = Truth::No;
            } else if torch_names::is_enable_grad(&name) {
                self.frame.mode = Truth::Yes;
            } else if torch_names::is_set_grad_enabled(&name)
                && let Expr::Call(call) = &item.context_expr
            {
                self.frame.mode = mode_argument(call);
            }
        }
        let ended = self.block(&node.body);
        self.frame.mode = outer;
        ended
    }

    /// `context = torch.no_grad() if test else nullcontext()` and then `with context:`, or the
    /// choice right in the `with`.
    fn may_switch_gradients(&self, context: &'a Expr) -> bool {
        let named = path(self.text, context);
        let switches = |expression: &'a Expr| {
            let mut found = false;
            each_expression(expression, &mut |part| {
                found |= self.imports.qualified(part).is_some_and(|name| {
                    torch_names::is_no_grad(&name) || torch_names::is_set_grad_enabled(&name)
                });
            });
            found
        };
        switches(context)
            || super::modes::may_switch_gradients(match context {
                Expr::Call(call) => &call.func,
                other => other,
            })
            || named.is_some()
                && self
                    .structure
                    .assigns
                    .iter()
                    .any(|assign| path(self.text, assign.target) == named && switches(assign.value))
    }

    fn try_(&mut self, node: &'a ast::StmtTry) -> bool {
        let before = self.frame.values.clone();
        let mut after: Option<Vec<Value>> = None;
        let ended = self.block(&node.body);
        let reached = self.frame.values.clone();
        if !ended && !self.block(&node.orelse) {
            self.merge(&mut after);
        }
        for handler in &node.handlers {
            let ExceptHandler::ExceptHandler(handler) = handler;
            self.restore(&before);
            let mut start = Some(reached.clone());
            self.merge(&mut start);
            self.adopt(start);
            if !self.block(&handler.body) {
                self.merge(&mut after);
            }
        }
        let ended = after.is_none();
        self.adopt(after);
        self.block(&node.finalbody) || ended
    }

    /// Restores the earlier values of names; names seen since are unassigned on this path.
    fn restore(&mut self, values: &[Value]) {
        let all = self.frame.values.len();
        self.frame.values.clear();
        self.frame.values.extend_from_slice(values);
        self.frame.values.resize(all, Value::UNSET);
    }

    /// Joins the current path into the earlier ones.
    fn merge(&mut self, after: &mut Option<Vec<Value>>) {
        let Some(ways) = after else {
            *after = Some(self.frame.values.clone());
            return;
        };
        ways.resize(self.frame.values.len(), Value::UNSET);
        for (index, way) in ways.iter_mut().enumerate() {
            let value = self.frame.values[index];
            if *way != value {
                *way = self.join(*way, value);
            }
        }
    }

    fn adopt(&mut self, after: Option<Vec<Value>>) {
        if let Some(mut values) = after {
            values.resize(self.frame.values.len(), Value::UNSET);
            self.frame.values = values;
        }
    }

    /// Binds a target, unpacking it where needed.
    pub(super) fn assign(&mut self, target: &'a Expr, value: Value, byte: usize) {
        match target {
            Expr::Tuple(ast::ExprTuple { elts, .. }) | Expr::List(ast::ExprList { elts, .. }) => {
                let parts: Option<Vec<Value>> = self
                    .flow
                    .elements(value)
                    .filter(|parts| parts.len() == elts.len())
                    .map(<[Value]>::to_vec);
                for (index, target) in elts.iter().enumerate() {
                    let part = match &parts {
                        Some(parts) => parts[index],
                        None => self.part_of(value),
                    };
                    self.assign(target, part, byte);
                }
            }
            Expr::Starred(starred) => self.assign(&starred.value, Value::UNKNOWN, byte),
            Expr::Subscript(subscript) if path(self.text, target).is_none() => {
                // `results[i] = x`: the container holds it from now on.
                self.eval(&subscript.slice);
                self.put_into(&subscript.value, value);
            }
            _ => {
                if let Some(path) = path(self.text, target) {
                    self.bind(path, value, byte);
                    let bound = self.get(path).unwrap_or(value);
                    self.flow.values.insert(target.range(), bound);
                }
                if let Expr::Subscript(subscript) = target {
                    self.put_into(&subscript.value, value);
                }
            }
        }
    }

    /// Adds an element to a container.
    pub(super) fn put_into(&mut self, container: &'a Expr, value: Value) {
        let held = self.eval(container);
        if held.kind == Kind::Container
            && let Some(path) = path(self.text, container)
        {
            self.set(
                path,
                Value {
                    graph: held.graph.or(value.graph),
                    card: held.card.or(value.card),
                    ..held
                },
            );
        }
        // A tensor stays where it is, and has the graph of what is written into it.
        if held.is_tensor()
            && value.is_tensor()
            && let Some(path) = path(self.text, container)
        {
            self.set(
                path,
                Value {
                    graph: held.graph.or(value.graph),
                    ..held
                },
            );
        }
    }
}

/// The mode that `set_grad_enabled(argument)` sets.
fn mode_argument(call: &ast::ExprCall) -> Truth {
    match call.arguments.find_argument_value("mode", 0) {
        Some(Expr::BooleanLiteral(literal)) => literal.value.into(),
        _ => Truth::Maybe,
    }
}
