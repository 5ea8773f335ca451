//! Evaluates expressions.

use super::Reader;
use crate::facts::paths::path;
use crate::facts::structure::is_decorated;
use crate::facts::usage::class_of;
use crate::facts::value::{Kind, Truth, Value};
use crate::python::{CmpOp, Expr, Ranged, ast, deep, span};

impl<'a> Reader<'_, 'a> {
    /// What an expression is; remembered for the rules.
    pub(super) fn eval(&mut self, expression: &'a Expr) -> Value {
        let value = deep(|| self.eval_inner(expression));
        self.flow.values.insert(expression.range(), value);
        value
    }

    fn eval_inner(&mut self, expression: &'a Expr) -> Value {
        match expression {
            Expr::Name(name) => match self.get(name.id.as_str()) {
                Some(value) => value,
                None if self.imports.knows(expression) => Value::UNKNOWN,
                // Of a name from another cell or file, only the use is known.
                None => self.by_use(expression),
            },
            Expr::Attribute(attribute) => self.attribute(expression, attribute),
            Expr::Subscript(subscript) => self.subscript(expression, subscript),
            Expr::Call(call) => self.call(call),
            Expr::BinOp(operation) => {
                let left = self.eval(&operation.left);
                let right = self.eval(&operation.right);
                self.combined(left, right)
            }
            Expr::UnaryOp(operation) => {
                let value = self.eval(&operation.operand);
                if operation.op == ast::UnaryOp::Not {
                    Value::number()
                } else {
                    value
                }
            }
            Expr::BoolOp(operation) => {
                let mut joined = Value::UNSET;
                for part in &operation.values {
                    let value = self.eval(part);
                    joined = self.join(joined, value);
                }
                joined
            }
            // `x is None`, `x in names`: a bool, whatever is compared.
            Expr::Compare(comparison)
                if comparison.ops.iter().all(|operator| {
                    matches!(
                        operator,
                        CmpOp::Is | CmpOp::IsNot | CmpOp::In | CmpOp::NotIn
                    )
                }) =>
            {
                self.eval(&comparison.left);
                for part in &comparison.comparators {
                    self.eval(part);
                }
                Value::number()
            }
            Expr::Compare(comparison) => {
                let mut any = self.eval(&comparison.left);
                for part in &comparison.comparators {
                    let value = self.eval(part);
                    if value.is_tensor() {
                        any = value;
                    }
                }
                if any.is_tensor() {
                    Value::tensor(Truth::No, any.card, Truth::Maybe)
                } else {
                    Value::number()
                }
            }
            Expr::If(choice) => {
                self.eval(&choice.test);
                let yes = self.eval(&choice.body);
                let no = self.eval(&choice.orelse);
                let joined = self.join(yes, no);
                match joined.kind {
                    // `"cuda" if torch.cuda.is_available() else "cpu"`: the card where there is one.
                    Kind::Text | Kind::Device => Value {
                        card: yes.card.or(no.card),
                        ..joined
                    },
                    _ => joined,
                }
            }
            Expr::Named(named) => {
                let value = self.eval(&named.value);
                self.assign(&named.target, value, span(named).start);
                value
            }
            Expr::Tuple(tuple) => {
                let elements = tuple.elts.iter().map(|each| self.eval(each)).collect();
                self.tuple(elements)
            }
            Expr::List(ast::ExprList { elts, .. }) | Expr::Set(ast::ExprSet { elts, .. }) => {
                let mut all = Value::plain(Kind::Container);
                for each in elts {
                    let value = self.eval(each);
                    all.graph = all.graph.or(value.graph);
                    all.card = all.card.or(value.card);
                }
                all
            }
            Expr::Dict(dict) => {
                let mut all = Value::plain(Kind::Container);
                for item in &dict.items {
                    if let Some(key) = &item.key {
                        self.eval(key);
                    }
                    let value = self.eval(&item.value);
                    all.graph = all.graph.or(value.graph);
                    all.card = all.card.or(value.card);
                }
                all
            }
            Expr::ListComp(ast::ExprListComp {
                elt, generators, ..
            })
            | Expr::SetComp(ast::ExprSetComp {
                elt, generators, ..
            })
            | Expr::Generator(ast::ExprGenerator {
                elt, generators, ..
            }) => {
                self.generators(generators);
                let element = self.eval(elt);
                Value {
                    kind: Kind::Container,
                    scalar: Truth::No,
                    ..element
                }
            }
            Expr::DictComp(comprehension) => {
                self.generators(&comprehension.generators);
                if let Some(key) = &comprehension.key {
                    self.eval(key);
                }
                let element = self.eval(&comprehension.value);
                Value {
                    kind: Kind::Container,
                    scalar: Truth::No,
                    ..element
                }
            }
            Expr::Starred(starred) => self.eval(&starred.value),
            Expr::Await(waiting) => self.eval(&waiting.value),
            Expr::Yield(given) => {
                let value = match &given.value {
                    Some(value) => self.eval(value),
                    None => Value::plain(Kind::None),
                };
                let before = self.frame.yields;
                self.frame.yields = self.join(before, value);
                Value::UNKNOWN
            }
            Expr::YieldFrom(given) => {
                let several = self.eval(&given.value);
                let value = self.part_of(several);
                let before = self.frame.yields;
                self.frame.yields = self.join(before, value);
                Value::UNKNOWN
            }
            Expr::Lambda(lambda) => {
                // Its parameters shadow names of the unit; its body is read for its calls.
                let before = self.frame.values.clone();
                if let Some(parameters) = &lambda.parameters {
                    for parameter in parameters.iter() {
                        self.set(parameter.name().as_str(), Value::UNKNOWN);
                    }
                }
                self.eval(&lambda.body);
                let all = self.frame.values.len();
                self.frame.values = before;
                self.frame.values.resize(all, Value::UNSET);
                Value::UNKNOWN
            }
            Expr::StringLiteral(literal) => {
                let card = super::calls::device_text(literal.value.to_str());
                Value {
                    card,
                    ..Value::plain(Kind::Text)
                }
            }
            Expr::FString(_) | Expr::TString(_) => {
                if let Expr::FString(text) = expression {
                    for part in text.value.elements() {
                        if let ast::InterpolatedStringElement::Interpolation(part) = part {
                            self.eval(&part.expression);
                        }
                    }
                }
                Value::plain(Kind::Text)
            }
            Expr::BytesLiteral(_) => Value::plain(Kind::Text),
            Expr::NumberLiteral(_) | Expr::BooleanLiteral(_) => Value::number(),
            Expr::NoneLiteral(_) => Value::plain(Kind::None),
            Expr::Slice(slice) => {
                for part in [&slice.lower, &slice.upper, &slice.step]
                    .into_iter()
                    .flatten()
                {
                    self.eval(part);
                }
                Value::plain(Kind::Unknown)
            }
            Expr::EllipsisLiteral(_) | Expr::IpyEscapeCommand(_) => Value::UNKNOWN,
        }
    }

    fn attribute(&mut self, expression: &'a Expr, attribute: &'a ast::ExprAttribute) -> Value {
        let receiver = self.eval(&attribute.value);
        let name = attribute.attr.as_str();
        if let Some(path) = path(self.text, expression)
            && let Some(value) = self.get(path)
        {
            return value;
        }
        if let Some(value) = self.of_fastai(&attribute.value, name) {
            return value;
        }
        match receiver.kind {
            Kind::Tensor => tensor_attribute(receiver, name),
            Kind::Module(Some(class)) | Kind::Object(class) => {
                if let Some(unit) = self.method_of(class, name) {
                    return Value::plain(Kind::Function(unit));
                }
                match self.stored(class, name) {
                    Some(value) => value,
                    None => self.by_use(expression),
                }
            }
            // `Recorder.record(loss)`
            Kind::Class(class)
                if let Some(unit) = self.method_of(class, name)
                    && self.structure.units[unit].node.is_some_and(|node| {
                        is_decorated(node, &["classmethod", "staticmethod"])
                    }) =>
            {
                Value::plain(Kind::Function(unit))
            }
            Kind::Module(None) if name == "module" => receiver,
            _ => self.by_use(expression),
        }
    }

    /// What a callback of fastai sees of the step: `self.loss`, `self.learn.pred`.
    fn of_fastai(&self, receiver: &Expr, name: &str) -> Option<Value> {
        let scalar = match name {
            "loss" | "loss_grad" => Truth::Yes,
            "pred" => Truth::No,
            _ => return None,
        };
        let of_learner = matches!(path(self.text, receiver), Some("self" | "self.learn"));
        let class = class_of(self.structure, self.frame.unit).filter(|_| of_learner)?;
        let bases = self.structure.classes[class].node.bases();
        let is_callback = bases.iter().any(|base| {
            self.imports
                .qualified(base)
                .is_some_and(|name| name.starts_with("fastai.") && name.ends_with("Callback"))
        });
        let is_evaluation = self.frame.mode.is_no();
        (is_callback && !is_evaluation).then_some(Value::tensor(Truth::Yes, Truth::Yes, scalar))
    }

    /// A path of which only the use is known.
    fn by_use(&self, expression: &'a Expr) -> Value {
        match path(self.text, expression) {
            Some(path) => self.refined(path, Value::UNKNOWN, span(expression).start),
            None => Value::UNKNOWN,
        }
    }

    /// The result of an operation on two values.
    pub(super) fn combined(&self, left: Value, right: Value) -> Value {
        if left.kind == Kind::Text {
            return left;
        }
        if left.is_tensor() || right.is_tensor() {
            let scalar = match (left.scalar, right.scalar) {
                (Truth::Yes, Truth::Yes) => Truth::Yes,
                (Truth::No, _) | (_, Truth::No) => Truth::No,
                _ => Truth::Maybe,
            };
            let card = if left.is_tensor() {
                left.card
            } else {
                right.card
            };
            let plain = |value: Value| {
                if value.is_tensor() || value.kind == Kind::Unknown {
                    value.graph
                } else {
                    Truth::No
                }
            };
            return Value::tensor(plain(left).or(plain(right)), card, scalar);
        }
        if left.kind == Kind::Number && right.kind == Kind::Number {
            return Value::number();
        }
        if left.kind == Kind::Container && right.kind == Kind::Container {
            return Value {
                graph: left.graph.or(right.graph),
                ..left
            };
        }
        Value {
            graph: left.graph.or(right.graph),
            card: left.card.or(right.card),
            ..Value::UNKNOWN
        }
    }
}

fn tensor_attribute(receiver: Value, name: &str) -> Value {
    match name {
        "data" | "grad" => Value {
            graph: Truth::No,
            ..receiver
        },
        "shape" | "dtype" | "ndim" | "requires_grad" | "is_cuda" | "grad_fn" | "names" => {
            Value::number()
        }
        "device" => Value::plain(Kind::Device),
        "loss" => Value {
            scalar: Truth::Yes,
            ..receiver
        },
        _ => Value {
            scalar: Truth::Maybe,
            ..receiver
        },
    }
}
