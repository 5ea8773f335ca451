//! Evaluates calls: functions of the file by what they return, imported ones by name.

use super::Reader;
use crate::facts::kept::is_record;
use crate::facts::paths::path;
use crate::facts::roles::{Role, is_named, role, sounds_like_device};
use crate::facts::structure::UnitId;
use crate::facts::torch_names;
use crate::facts::value::{Kind, Truth, Value};
use crate::python::{Expr, ExprCall, Ranged};
use crate::syntax::says_true;

impl<'a> Reader<'_, 'a> {
    pub(super) fn call(&mut self, call: &'a ExprCall) -> Value {
        let mode = self.frame.mode;
        self.flow.modes.insert(call.range(), mode);
        let given: Vec<(Option<&'a str>, Value)> = call
            .arguments
            .args
            .iter()
            .map(|argument| (None, argument))
            .chain(call.arguments.keywords.iter().map(|keyword| {
                (
                    keyword.arg.as_ref().map(|name| name.as_str()),
                    &keyword.value,
                )
            }))
            .map(|(name, argument)| (name, self.eval(argument)))
            .collect();
        let graph = given
            .iter()
            .fold(Truth::No, |all, (_, value)| match value.kind {
                // A model, a function or a number among the arguments has no graph.
                Kind::Unknown
                | Kind::Tensor
                | Kind::Container
                | Kind::Tuple(_)
                | Kind::Generator(_) => all.or(value.graph),
                _ => all,
            });
        let graph = if mode.is_no() { Truth::No } else { graph };
        let card = given
            .iter()
            .fold(Truth::No, |all, (_, value)| all.or(value.card));
        if let Some(name) = self.imports.qualified(&call.func) {
            self.flow.values.insert(call.func.range(), Value::UNKNOWN);
            return self.imported(call, &name, &given, graph, card);
        }
        if let Expr::Attribute(function) = &*call.func {
            let receiver = self.eval(&function.value);
            if let Some(value) = self.method(call, function, receiver, &given) {
                return value;
            }
        }
        let called = self.eval(&call.func);
        match called.kind {
            Kind::Function(unit) => self.apply(unit, &given, is_bound(call, self, unit)),
            Kind::Class(class) => {
                if let Some(unit) = self.structure.classes[class].method("__init__") {
                    self.apply(unit, &given, true);
                } else if is_record(self.structure.classes[class].node) {
                    // A record has the graphs of what it holds.
                    return Value {
                        graph,
                        card,
                        ..self.instance(class)
                    };
                }
                self.instance(class)
            }
            Kind::Module(class) => self.run_module(&call.func, class, &given),
            Kind::Criterion => Value::tensor(graph, card, Truth::Yes),
            Kind::Object(class) => match self.structure.classes[class].method("__call__") {
                Some(unit) => self.apply(unit, &given, true),
                None => self.unknown_result(),
            },
            Kind::Unknown if let Some(result) = self.dispatch(call, &given) => result,
            Kind::Unknown => match self.role_of(&call.func, called) {
                Some(Role::Model) => {
                    let module = Value::of(Kind::Module(None));
                    self.flow.values.insert(call.func.range(), module);
                    self.run_module(&call.func, None, &given)
                }
                Some(Role::Criterion) if graph.is_yes() => Value::tensor(graph, card, Truth::Yes),
                _ => self.builtin(&call.func, &given),
            },
            _ => self.builtin(&call.func, &given),
        }
    }

    /// What a callee of unknown origin is called for.
    fn role_of(&self, callee: &'a Expr, called: Value) -> Option<Role> {
        // Of `nn.MSELoss(reduction="none")` it is known that the result has no graph to follow.
        let is_open = called.graph == Truth::Maybe;
        let path = path(self.text, callee).filter(|_| is_open)?;
        role(path).or_else(|| {
            let has_optimizer = self.optimized.iter().any(|words| is_named(path, words));
            has_optimizer.then_some(Role::Model)
        })
    }

    /// Calling a module: its output depends on its parameters wherever gradients are enabled.
    pub(super) fn run_module(
        &mut self,
        callee: &'a Expr,
        class: Option<usize>,
        given: &[(Option<&'a str>, Value)],
    ) -> Value {
        let mode = self.frame.mode;
        let frozen = path(self.text, callee).is_some_and(|path| {
            self.usages
                .usage(self.structure, self.frame.unit, path)
                .frozen
        });
        let graph = if frozen && mode.is_yes() {
            Truth::Maybe
        } else {
            mode
        };
        let card = given.iter().fold(Truth::Maybe, |all, (_, value)| {
            let is_data = matches!(
                value.kind,
                Kind::Tensor | Kind::Unknown | Kind::Container | Kind::Tuple(_)
            );
            if is_data && value.card.is_yes() {
                Truth::Yes
            } else {
                all
            }
        });
        let output = Value::tensor(graph, card, Truth::Maybe);
        let forward = class.and_then(|class| self.structure.classes[class].method("forward"));
        match forward {
            Some(unit) => {
                let returned = self.apply(unit, given, true);
                let graph = if self.own_mode(unit) == Some(Truth::No) {
                    Truth::No
                } else {
                    graph
                };
                let output = Value { graph, ..output };
                match returned.kind {
                    Kind::Tuple(_) | Kind::Number | Kind::None | Kind::Container => returned,
                    Kind::Tensor => Value { graph, ..returned },
                    _ => output,
                }
            }
            None => output,
        }
    }

    /// A function of the file: records its arguments and returns its known result.
    pub(super) fn apply(
        &mut self,
        unit: UnitId,
        given: &[(Option<&'a str>, Value)],
        bound: bool,
    ) -> Value {
        let mode = self.frame.mode;
        let summary = &self.summaries[unit];
        let joined = summary.mode.map_or(mode, |before| before.join(mode));
        self.changed |= summary.mode != Some(joined);
        self.summaries[unit].mode = Some(joined);
        if let Some(node) = self.structure.units[unit].node {
            // `*rest` gets all that are left.
            let rest = node.parameters.vararg.as_ref().and_then(|rest| {
                let name = rest.name.as_str();
                node.parameters
                    .iter()
                    .position(|parameter| parameter.name().as_str() == name)
            });
            let mut position = usize::from(bound);
            for (name, value) in given {
                let index = match name {
                    Some(name) => node
                        .parameters
                        .iter()
                        .position(|parameter| parameter.name().as_str() == *name),
                    None => {
                        position += 1;
                        Some(rest.map_or(position - 1, |rest| rest.min(position - 1)))
                    }
                };
                let is_rest = index.is_some() && index == rest;
                let Some(index) = index.filter(|index| *index < self.summaries[unit].given.len())
                else {
                    continue;
                };
                // Tuples have new ids in every pass, so callers would never agree on one.
                let value = match value.kind {
                    _ if is_rest => Value {
                        kind: Kind::Container,
                        scalar: Truth::No,
                        ..*value
                    },
                    Kind::Tuple(_) => Value {
                        kind: Kind::Container,
                        ..*value
                    },
                    _ => *value,
                };
                let before = self.summaries[unit].given[index];
                let after = before.join(value);
                self.changed |= after != before;
                self.summaries[unit].given[index] = after;
            }
        }
        let returned = self.summaries[unit].returns;
        if returned.kind == Kind::Unset {
            return Value::UNKNOWN;
        }
        if mode.is_no() {
            Value {
                graph: Truth::No,
                ..returned
            }
        } else {
            returned
        }
    }

    fn imported(
        &mut self,
        call: &'a ExprCall,
        name: &str,
        given: &[(Option<&'a str>, Value)],
        graph: Truth,
        card: Truth,
    ) -> Value {
        let first = given.first().map_or(Value::UNKNOWN, |(_, value)| *value);
        match name {
            "copy.deepcopy" | "copy.copy" => return first,
            "torch.device" => {
                let card = match call.arguments.args.first() {
                    Some(device) => self.device_is_card(device),
                    None => Truth::Maybe,
                };
                return Value {
                    card,
                    ..Value::plain(Kind::Device)
                };
            }
            "torch.nn.DataParallel"
            | "torch.nn.parallel.DataParallel"
            | "torch.nn.parallel.DistributedDataParallel"
            | "torch.compile"
            | "torch.jit.script"
            | "torch.jit.trace"
            | "torch.nn.SyncBatchNorm.convert_sync_batchnorm" => {
                return if first.is_module() {
                    first
                } else {
                    Value::of(Kind::Module(None))
                };
            }
            "torch.max" | "torch.min" | "torch.sort" | "torch.topk"
                if given.len() > 1 && !given[1].1.is_tensor() =>
            {
                // With a dimension: values and indices.
                let values = Value::tensor(graph, card, Truth::No);
                let indices = Value::tensor(Truth::No, card, Truth::No);
                return self.tuple(vec![values, indices]);
            }
            "torch.mean" | "torch.sum" | "torch.norm" if given.len() == 1 => {
                return Value::tensor(graph, card, Truth::Yes);
            }
            _ => {}
        }
        if is_progress_bar(name) {
            return first;
        }
        if gives_numbers(name) {
            return Value::number();
        }
        if torch_names::is_loss_function(name) && keyword_is(call, "reduction", "none") {
            return Value::tensor(graph, card, Truth::No);
        }
        if name.starts_with("torch.") && says_true(call, "requires_grad") {
            return Value::tensor(Truth::Yes, card, Truth::Maybe);
        }
        let card = match call.arguments.find_keyword("device") {
            Some(keyword) => self.device_is_card(&keyword.value),
            None => card,
        };
        match torch_names::result(name, graph, card) {
            Some(value)
                if value.kind == Kind::Criterion && keyword_is(call, "reduction", "none") =>
            {
                Value::plain(Kind::Unknown)
            }
            Some(value) if value.is_tensor() && call.arguments.find_keyword("device").is_some() => {
                Value { card, ..value }
            }
            Some(value) => value,
            None => self.unknown_result(),
        }
    }

    /// Nothing is known about the result of an unknown function except the mode it runs in.
    fn unknown_result(&self) -> Value {
        let graph = if self.frame.mode.is_no() {
            Truth::No
        } else {
            Truth::Maybe
        };
        Value {
            graph,
            ..Value::UNKNOWN
        }
    }

    fn builtin(&mut self, callee: &Expr, given: &[(Option<&'a str>, Value)]) -> Value {
        let first = given.first().map_or(Value::UNKNOWN, |(_, value)| *value);
        let name = match callee {
            Expr::Name(name) => name.id.as_str(),
            _ => "",
        };
        match name {
            "float" | "int" | "bool" | "len" | "round" | "range" | "abs" if !first.is_tensor() => {
                Value::number()
            }
            "float" | "int" | "bool" | "len" => Value::number(),
            "str" | "repr" | "format" | "input" => Value::plain(Kind::Text),
            "sum" if first.graph.is_yes() || first.kind == Kind::Container => {
                if first.graph.is_no() {
                    Value {
                        graph: Truth::No,
                        ..Value::UNKNOWN
                    }
                } else {
                    Value::tensor(first.graph, first.card, Truth::Maybe)
                }
            }
            "list" | "dict" | "set" | "tuple" | "sorted" | "reversed" => match given.first() {
                None => Value::plain(Kind::Container),
                Some((_, value)) if matches!(value.kind, Kind::Loader | Kind::Parameters) => *value,
                Some((_, value)) => Value {
                    kind: Kind::Container,
                    ..*value
                },
            },
            "tqdm" => first,
            "print" => Value::plain(Kind::None),
            _ => self.unknown_result(),
        }
    }

    /// Whether a device expression means the card.
    pub(super) fn device_is_card(&mut self, device: &'a Expr) -> Truth {
        match device {
            Expr::StringLiteral(literal) => device_text(literal.value.to_str()),
            Expr::NumberLiteral(_) => Truth::Yes,
            Expr::Call(call) => match call.arguments.args.first() {
                Some(first) => self.device_is_card(first),
                None => Truth::Maybe,
            },
            // `"cuda" if torch.cuda.is_available() else "cpu"` is the card where there is one.
            Expr::If(choice) => {
                let (yes, no) = (
                    self.device_is_card(&choice.body),
                    self.device_is_card(&choice.orelse),
                );
                yes.or(no)
            }
            _ => {
                let value = self.eval(device);
                match value.kind {
                    Kind::Device | Kind::Text => value.card,
                    // Where a device is chosen elsewhere, it is the card if there is one.
                    Kind::Unknown if path(self.text, device).is_some_and(sounds_like_device) => {
                        Truth::Yes
                    }
                    _ => Truth::Maybe,
                }
            }
        }
    }
}

/// `cuda`, `cuda:1`: the card; `cpu`: not.
pub(super) fn device_text(text: &str) -> Truth {
    if text.starts_with("cuda") {
        Truth::Yes
    } else if text == "cpu" {
        Truth::No
    } else {
        Truth::Maybe
    }
}

/// Whether a call is a method call, so that the first parameter is the object.
fn is_bound(call: &ExprCall, reader: &Reader<'_, '_>, unit: UnitId) -> bool {
    matches!(&*call.func, Expr::Attribute(_)) && reader.structure.takes_object(unit)
}

/// Python's own clocks and math functions.
fn gives_numbers(name: &str) -> bool {
    ["time.", "timeit.", "math.", "random."]
        .iter()
        .any(|module| name.starts_with(module))
}

fn is_progress_bar(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    matches!(last, "tqdm" | "tqdm_notebook" | "track") || last == "progress_bar"
}

fn keyword_is(call: &ExprCall, name: &str, text: &str) -> bool {
    call.arguments.find_keyword(name).is_some_and(|keyword| {
        matches!(&keyword.value, Expr::StringLiteral(literal) if literal.value.to_str() == text)
    })
}
