//! How names are used: `x.backward()` makes `x` a loss, `x.parameters()` makes it a model. The kind of a
//! function's parameter shows only in its use.

use rustc_hash::FxHashMap;

use super::frameworks::{returned_losses, returns_loss_to_a_framework};
use super::imports::Imports;
use super::paths::{attribute_of_self, path};
use super::structure::{ClassId, Structure, UnitId};
use super::value::{Kind, Truth, Value};
use crate::python::{Expr, Operator, Stmt, ast, span};
use crate::syntax::plain_callee;

/// What was done with one path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Where the last `x.backward()`, `accelerator.backward(x)`, `scaler.scale(x).backward()` or
    /// `manual_backward(x)` is (a byte of the file): a value bound to `x` later is something else.
    pub backward: Option<usize>,
    /// The same of `sum(x)`, `sum(x.values())`: it holds losses.
    pub backward_of_parts: Option<usize>,
    /// `x.parameters()`, `x.named_parameters()`, `x.modules()`.
    pub parameters: bool,
    /// `x.eval()` or `x.train()`.
    pub mode: bool,
    /// `x(...)`.
    pub called: bool,
    /// `x.step()`.
    pub step: bool,
    /// `x.zero_grad()`.
    pub zero_grad: bool,
    /// Some or all of its parameters are frozen.
    pub frozen: bool,
}

impl Usage {
    fn merge(&mut self, other: Self) {
        self.backward = self.backward.max(other.backward);
        self.backward_of_parts = self.backward_of_parts.max(other.backward_of_parts);
        self.parameters |= other.parameters;
        self.mode |= other.mode;
        self.called |= other.called;
        self.step |= other.step;
        self.zero_grad |= other.zero_grad;
        self.frozen |= other.frozen;
    }

    /// The kind that a value bound at `byte` must have to be used like this.
    pub fn value(self, byte: usize) -> Option<Value> {
        if self.backward.is_some_and(|backward| backward > byte) {
            Some(Value::tensor(Truth::Yes, Truth::Maybe, Truth::Yes))
        } else if self
            .backward_of_parts
            .is_some_and(|backward| backward > byte)
        {
            Some(Value {
                graph: Truth::Yes,
                scalar: Truth::No,
                ..Value::of(Kind::Container)
            })
        } else if self.parameters || self.mode && self.called {
            Some(Value::of(Kind::Module(None)))
        } else if self.step && self.zero_grad {
            Some(Value::of(Kind::Optimizer))
        } else {
            None
        }
    }
}

/// The use of every path of a file.
#[derive(Debug, Default)]
pub struct Usages<'a> {
    units: Vec<FxHashMap<&'a str, Usage>>,
    attributes: FxHashMap<(ClassId, &'a str), Usage>,
}

impl<'a> Usages<'a> {
    pub fn of(text: &'a str, structure: &Structure<'a>, imports: &Imports<'a>) -> Self {
        let mut usages = Self {
            units: vec![FxHashMap::default(); structure.units.len()],
            ..Self::default()
        };
        for call in &structure.calls {
            let unit = structure.unit_of(call.place.block);
            let mut note = |expression: &Expr, change: &dyn Fn(&mut Usage)| {
                if let Some(path) = path(text, expression) {
                    usages.note(structure, unit, path, change);
                }
            };
            note(&call.node.func, &|usage| usage.called = true);
            let Expr::Attribute(function) = &*call.node.func else {
                continue;
            };
            let receiver = &function.value;
            let at = span(call.node).start;
            let backward = |usage: &mut Usage| usage.backward = usage.backward.max(Some(at));
            match function.attr.as_str() {
                "backward" => match call.node.arguments.args.first() {
                    // Accelerate, DeepSpeed, Fabric: the loss is the argument.
                    Some(loss) => note(loss, &backward),
                    // `(a + b).backward()`
                    None => each_summand(receiver, &mut |loss| note(loss, &backward)),
                },
                "manual_backward" => {
                    if let Some(loss) = call.node.arguments.args.first() {
                        note(loss, &backward);
                    }
                }
                "scale" => {
                    // `scaler.scale(loss).backward()`
                    if let (Some(loss), 1) =
                        (call.node.arguments.args.first(), call.node.arguments.len())
                        && is_backpropagated(structure, call.node)
                    {
                        note(loss, &backward);
                    }
                }
                "parameters" | "named_parameters" | "modules" | "named_modules" => {
                    note(receiver, &|usage| usage.parameters = true);
                }
                "eval" | "train" => note(unmoved(receiver), &|usage| usage.mode = true),
                "step" => note(receiver, &|usage| usage.step = true),
                "zero_grad" => note(receiver, &|usage| usage.zero_grad = true),
                "requires_grad_" => note(receiver, &|usage| usage.frozen = true),
                _ => {}
            }
        }
        for unit in 1..structure.units.len() {
            if returns_loss_to_a_framework(structure, imports, unit) {
                for loss in returned_losses(structure, unit) {
                    let at = span(loss).start;
                    if let Some(path) = path(text, loss) {
                        usages.note(structure, unit, path, |usage| {
                            usage.backward = usage.backward.max(Some(at));
                        });
                    }
                }
            }
        }
        usages.note_summands(text, structure);
        usages.note_frozen(text, structure);
        usages.share_frozen(text, structure, imports);
        usages.share_globals(structure);
        usages
    }

    /// `total = a + 0.1 * b` before `total.backward()`: the terms are losses, too.
    fn note_summands(&mut self, text: &'a str, structure: &Structure<'a>) {
        for assign in &structure.assigns {
            let unit = structure.unit_of(assign.place.block);
            let at = path(text, assign.target)
                .and_then(|total| self.units[unit].get(total)?.backward)
                .filter(|at| *at > span(assign.statement).start);
            if let (Some(at), None, Some(parts)) = (at, assign.operator, summed(assign.value))
                && let Some(path) = path(text, parts)
            {
                self.note(structure, unit, path, |usage| {
                    usage.backward_of_parts = usage.backward_of_parts.max(Some(at));
                });
            }
            // `total += 0.1 * b` in the same way.
            let is_sum = match assign.operator {
                None => matches!(assign.value, Expr::BinOp(_)),
                Some(operator) => operator == Operator::Add,
            };
            if let Some(at) = at
                && is_sum
            {
                each_summand(assign.value, &mut |term| {
                    if let Some(path) = path(text, term) {
                        self.note(structure, unit, path, |usage| {
                            usage.backward = usage.backward.max(Some(at));
                        });
                    }
                });
            }
        }
    }

    pub(super) fn note(
        &mut self,
        structure: &Structure<'a>,
        unit: UnitId,
        path: &'a str,
        change: impl Fn(&mut Usage),
    ) {
        change(self.units[unit].entry(path).or_default());
        if attribute_of_self(path) == path.strip_prefix("self.")
            && let (Some(class), Some(name)) = (class_of(structure, unit), attribute_of_self(path))
        {
            change(self.attributes.entry((class, name)).or_default());
        }
    }

    /// A name of the file that functions use without binding it themselves is used in the file.
    fn share_globals(&mut self, structure: &Structure<'a>) {
        let bound: Vec<Vec<&str>> = (0..structure.units.len())
            .map(|unit| bound_names(structure, unit))
            .collect();
        let mut shared: Vec<(&'a str, Usage)> = Vec::new();
        for (usages, bound) in self.units.iter().zip(&bound).skip(1) {
            shared.extend(
                usages
                    .iter()
                    .filter(|(path, _)| {
                        let root = path.split(['.', '[']).next().unwrap_or(path);
                        root != "self" && !bound.contains(&root)
                    })
                    .map(|(path, usage)| (*path, *usage)),
            );
        }
        for (path, usage) in shared {
            self.units[0].entry(path).or_default().merge(usage);
        }
    }

    /// How a path is used in a unit; attributes of `self` in all methods of the class.
    pub fn usage(&self, structure: &Structure<'_>, unit: UnitId, path: &str) -> Usage {
        let mut usage = self.units[unit].get(path).copied().unwrap_or_default();
        if let (Some(class), Some(name)) = (class_of(structure, unit), path.strip_prefix("self.")) {
            usage.merge(
                self.attributes
                    .get(&(class, name))
                    .copied()
                    .unwrap_or_default(),
            );
        }
        usage
    }
}

/// The terms of a sum that is backpropagated, without the numbers that weigh or divide them.
fn each_summand<'e>(sum: &'e Expr, visit: &mut dyn FnMut(&'e Expr)) {
    let Expr::BinOp(operation) = sum else {
        visit(sum);
        return;
    };
    let is_number = |part: &Expr| matches!(part, Expr::NumberLiteral(_));
    match operation.op {
        Operator::Add | Operator::Sub => {
            each_summand(&operation.left, visit);
            each_summand(&operation.right, visit);
        }
        Operator::Div => each_summand(&operation.left, visit),
        Operator::Mult if is_number(&operation.left) => each_summand(&operation.right, visit),
        Operator::Mult if is_number(&operation.right) => each_summand(&operation.left, visit),
        Operator::Mult if is_weight(&operation.left) => each_summand(&operation.right, visit),
        Operator::Mult if is_weight(&operation.right) => each_summand(&operation.left, visit),
        _ => {}
    }
}

/// What weighs a term, by its name: `args.beta`, `weights[task]`, `lambda_cycle`.
fn is_weight(factor: &Expr) -> bool {
    const WORDS: &[&str] = &[
        "weight", "lambda", "lamda", "lmbd", "alpha", "beta", "gamma", "coef", "scale", "ratio",
        "factor",
    ];
    const OWNERS: &[&str] = &[
        "args", "opt", "opts", "cfg", "config", "conf", "hparams", "hp",
    ];
    match factor {
        Expr::Name(name) => {
            let name = name.id.as_str().to_lowercase();
            WORDS.iter().any(|word| name.contains(word)) || matches!(name.as_str(), "w" | "lam")
        }
        Expr::Attribute(part) => {
            let name = part.attr.as_str().to_lowercase();
            let is_owner = |owner: &str| OWNERS.contains(&owner);
            WORDS.iter().any(|word| name.contains(word))
                || match &*part.value {
                    Expr::Name(owner) => is_owner(owner.id.as_str()),
                    Expr::Attribute(owner) => is_owner(owner.attr.as_str()),
                    _ => false,
                }
        }
        Expr::Subscript(part) => {
            is_weight(&part.value)
                || matches!(&*part.value, Expr::Name(owner) if OWNERS.contains(&owner.id.as_str()))
        }
        _ => false,
    }
}

/// `losses` of `sum(losses)`, `sum(losses.values())` and `sum(loss for loss in losses.values())`.
fn summed(sum: &Expr) -> Option<&Expr> {
    let Expr::Call(call) = sum else {
        return None;
    };
    let [given] = &*call.arguments.args else {
        return None;
    };
    if plain_callee(call) != Some("sum") {
        return None;
    }
    let mut parts = match given {
        Expr::Generator(ast::ExprGenerator {
            elt, generators, ..
        })
        | Expr::ListComp(ast::ExprListComp {
            elt, generators, ..
        }) => match &**generators {
            [only] if is_same_name(elt, &only.target) => &only.iter,
            _ => return None,
        },
        other => other,
    };
    if let Expr::Call(call) = parts
        && let Expr::Attribute(method) = &*call.func
        && method.attr.as_str() == "values"
    {
        parts = &method.value;
    }
    Some(parts)
}

fn is_same_name(one: &Expr, other: &Expr) -> bool {
    matches!((one, other), (Expr::Name(one), Expr::Name(other)) if one.id == other.id)
}

/// The class that `self` refers to in a unit: its own, or that of the enclosing method.
pub fn class_of(structure: &Structure<'_>, unit: UnitId) -> Option<ClassId> {
    let mut next = Some(unit);
    while let Some(id) = next {
        if structure.units[id].class.is_some() {
            return structure.units[id].class;
        }
        next = structure.units[id].parent;
    }
    None
}

/// The names a unit binds itself: parameters, assignments, loop targets.
pub fn bound_names<'a>(structure: &Structure<'a>, unit: UnitId) -> Vec<&'a str> {
    let mut names = Vec::new();
    if let Some(node) = structure.units[unit].node {
        names.extend(
            node.parameters
                .iter()
                .map(|parameter| parameter.name().as_str()),
        );
    }
    let mut add = |target: &'a Expr| names_of(target, &mut names);
    for assign in &structure.assigns {
        if structure.unit_of(assign.place.block) == unit {
            add(assign.target);
        }
    }
    for (statement, place) in &structure.statements {
        if structure.unit_of(place.block) != unit {
            continue;
        }
        match statement {
            Stmt::For(node) => add(&node.target),
            Stmt::With(node) => {
                node.items
                    .iter()
                    .filter_map(|item| item.optional_vars.as_deref())
                    .for_each(&mut add);
            }
            _ => {}
        }
    }
    // `global total` and `nonlocal total`: bound here, but another unit's.
    for (statement, place) in &structure.statements {
        if structure.unit_of(place.block) == unit {
            let others = match statement {
                Stmt::Global(node) => &node.names,
                Stmt::Nonlocal(node) => &node.names,
                _ => continue,
            };
            names.retain(|name| !others.iter().any(|other| other.as_str() == *name));
        }
    }
    names
}

/// The names that a file binds itself, wherever: functions, classes, parameters, assignments, loops.
pub fn names_bound_anywhere<'a>(structure: &Structure<'a>) -> Vec<&'a str> {
    let mut names: Vec<&'a str> = Vec::new();
    for unit in &structure.units {
        names.push(unit.name);
        let parameters = unit.node.iter().flat_map(|node| node.parameters.iter());
        names.extend(parameters.map(|parameter| parameter.name().as_str()));
    }
    names.extend((structure.classes.iter()).map(|class| class.node.name.as_str()));
    for assign in &structure.assigns {
        names_of(assign.target, &mut names);
    }
    for (statement, _) in &structure.statements {
        match statement {
            Stmt::For(node) => names_of(&node.target, &mut names),
            Stmt::With(node) => (node.items.iter())
                .filter_map(|item| item.optional_vars.as_deref())
                .for_each(|target| names_of(target, &mut names)),
            _ => {}
        }
    }
    names
}

/// The unit whose local name a path's first name is in a unit: itself or one around it; `None` for a
/// name of the file.
pub fn owner_of(structure: &Structure<'_>, unit: UnitId, root: &str) -> Option<UnitId> {
    let mut next = Some(unit);
    while let Some(id) = next.filter(|id| *id != 0) {
        if bound_names(structure, id).contains(&root) {
            return Some(id);
        }
        next = structure.units[id].parent;
    }
    None
}

fn names_of<'a>(target: &'a Expr, names: &mut Vec<&'a str>) {
    match target {
        Expr::Name(name) => names.push(name.id.as_str()),
        Expr::Tuple(tuple) => tuple.elts.iter().for_each(|each| names_of(each, names)),
        Expr::List(list) => list.elts.iter().for_each(|each| names_of(each, names)),
        Expr::Starred(starred) => names_of(&starred.value, names),
        _ => {}
    }
}

/// What is moved: `model` of `model.to(device).eval()`.
pub fn unmoved(mut receiver: &Expr) -> &Expr {
    while let Expr::Call(call) = receiver
        && let Expr::Attribute(method) = &*call.func
        && matches!(
            method.attr.as_str(),
            "to" | "cuda" | "cpu" | "half" | "float" | "bfloat16" | "double"
        )
    {
        receiver = &method.value;
    }
    receiver
}

/// Whether `.backward()` is called on the result of this call.
fn is_backpropagated(structure: &Structure<'_>, scaled: &crate::python::ExprCall) -> bool {
    structure.calls.iter().any(|call| {
        matches!(&*call.node.func, Expr::Attribute(function)
            if function.attr.as_str() == "backward"
                && matches!(&*function.value, Expr::Call(inner) if std::ptr::eq(inner, scaled)))
    })
}
