//! Evaluates method calls on tensors, modules, optimizers and containers.

use super::Reader;
use crate::facts::torch_names::{method_gives_number, method_reduces, method_without_gradient};
use crate::facts::value::{Kind, Truth, Value};
use crate::python::{ExprAttribute, ExprCall, Ranged};

impl<'a> Reader<'_, 'a> {
    /// What a method returns; `None` if the receiver's kind does not tell.
    pub(super) fn method(
        &mut self,
        call: &'a ExprCall,
        function: &'a ExprAttribute,
        receiver: Value,
        given: &[(Option<&'a str>, Value)],
    ) -> Option<Value> {
        let name = function.attr.as_str();
        match receiver.kind {
            Kind::Tensor => Some(self.tensor_method(call, name, receiver, given)),
            Kind::Module(class) => self.module_method(call, function, receiver, class, given),
            Kind::Criterion => match name {
                "to" | "cuda" | "cpu" | "eval" | "train" => Some(receiver),
                "forward" => {
                    let graph = given
                        .iter()
                        .fold(Truth::No, |all, (_, each)| all.or(each.graph));
                    Some(Value::tensor(graph, Truth::Maybe, Truth::Yes))
                }
                _ => None,
            },
            Kind::Optimizer => match name {
                "state_dict" => Some(Value::of(Kind::StateDict)),
                "step" if given.is_empty() => Some(Value::plain(Kind::None)),
                _ => None,
            },
            Kind::Scaler => match name {
                "scale" => given.first().map(|(_, value)| *value),
                _ => Some(Value::plain(Kind::None)),
            },
            Kind::Accelerator => self.accelerator_method(name, given),
            Kind::StateDict => match name {
                "values" | "items" | "copy" => Some(receiver),
                "keys" => Some(Value::plain(Kind::Container)),
                _ => None,
            },
            Kind::Container => self.container_method(function, receiver, given),
            Kind::Text => Some(Value::plain(Kind::Text)),
            Kind::Number => Some(Value::number()),
            Kind::Unknown if is_pass(name) && !call.arguments.is_empty() => {
                let model = Value::of(Kind::Module(None));
                self.flow.values.insert(function.value.range(), model);
                Some(self.run_module(&function.value, None, given))
            }
            Kind::Unknown | Kind::Device => self.unknown_method(call, name, receiver),
            _ => None,
        }
    }

    fn tensor_method(
        &mut self,
        call: &'a ExprCall,
        name: &str,
        receiver: Value,
        given: &[(Option<&'a str>, Value)],
    ) -> Value {
        let mut graph = if self.frame.mode.is_no() {
            Truth::No
        } else {
            receiver.graph
        };
        for (_, value) in given {
            if value.is_tensor() && !self.frame.mode.is_no() {
                graph = graph.or(value.graph);
            }
        }
        let positional = call.arguments.args.len()
            + usize::from(
                call.arguments.find_keyword("dim").is_some()
                    || call.arguments.find_keyword("axis").is_some(),
            );
        match name {
            "backward" => Value::plain(Kind::None),
            "to" | "cuda" | "cpu" => self.moved(call, name, receiver),
            "requires_grad_" => Value {
                graph: Truth::Yes,
                ..receiver
            },
            "max" | "min" | "sort" | "topk" | "median" if positional > 0 => {
                let values = Value {
                    graph,
                    scalar: Truth::No,
                    ..receiver
                };
                let indices = Value {
                    graph: Truth::No,
                    scalar: Truth::No,
                    ..receiver
                };
                self.tuple(vec![values, indices])
            }
            _ if method_gives_number(name) => Value::number(),
            _ if method_without_gradient(name) => Value {
                graph: Truth::No,
                ..receiver
            },
            _ if method_reduces(name) && positional == 0 => Value {
                graph,
                scalar: Truth::Yes,
                ..receiver
            },
            "clone" | "float" | "half" | "double" | "bfloat16" | "contiguous" | "type"
            | "squeeze" | "to_dense" | "abs" | "exp" | "log" | "sqrt" | "neg" | "mul" | "div"
            | "add" | "sub" | "mul_" | "div_" | "add_" | "sub_" => Value { graph, ..receiver },
            _ => Value {
                graph,
                scalar: Truth::Maybe,
                ..receiver
            },
        }
    }

    /// A tensor or a module after `.cuda()`, `.cpu()` or `.to(...)`.
    fn moved(&mut self, call: &'a ExprCall, method: &str, receiver: Value) -> Value {
        let card = match (method, call.arguments.find_argument_value("device", 0)) {
            ("cuda", _) => Truth::Yes,
            ("cpu", _) => Truth::No,
            (_, Some(device)) => match self.device_is_card(device) {
                // A dtype alone does not move it.
                Truth::Maybe if is_type(device) => receiver.card,
                found => found,
            },
            (_, None) => receiver.card,
        };
        Value { card, ..receiver }
    }

    fn module_method(
        &mut self,
        call: &'a ExprCall,
        function: &'a ExprAttribute,
        receiver: Value,
        class: Option<usize>,
        given: &[(Option<&'a str>, Value)],
    ) -> Option<Value> {
        let name = function.attr.as_str();
        let own = class.and_then(|class| self.structure.classes[class].method(name));
        match name {
            _ if own.is_some() && name != "forward" => None,
            "to" | "cuda" | "cpu" => Some(self.moved(call, name, receiver)),
            "eval" | "train" | "half" | "float" | "double" | "bfloat16" | "apply"
            | "requires_grad_" | "share_memory" => Some(receiver),
            "parameters" | "named_parameters" => Some(Value::of(Kind::Parameters)),
            "state_dict" => Some(Value {
                kind: Kind::StateDict,
                graph: Truth::No,
                ..receiver
            }),
            "forward" => Some(self.run_module(&function.value, class, given)),
            "zero_grad" | "load_state_dict" => Some(Value::plain(Kind::None)),
            _ if is_pass(name) => Some(self.run_module(&function.value, None, given)),
            // Lightning's logging methods return nothing.
            "log" | "log_dict" => Some(Value::plain(Kind::None)),
            _ if own.is_none() && may_be_pass(name) && gives_data(given) => {
                Some(self.run_part_of_module(given))
            }
            _ => None,
        }
    }

    /// A method of a model's own that gets data: it gives tensors where they are, but may disable gradients
    /// itself.
    fn run_part_of_module(&self, given: &[(Option<&'a str>, Value)]) -> Value {
        let graph = if self.frame.mode.is_no() {
            Truth::No
        } else {
            Truth::Maybe
        };
        let card = given.iter().fold(Truth::Maybe, |all, (_, value)| {
            if value.card.is_yes() { Truth::Yes } else { all }
        });
        Value::tensor(graph, card, Truth::Maybe)
    }

    fn accelerator_method(
        &mut self,
        name: &str,
        given: &[(Option<&'a str>, Value)],
    ) -> Option<Value> {
        match name {
            "prepare" => match given {
                [(_, only)] => Some(*only),
                _ => {
                    let values = given.iter().map(|(_, value)| *value).collect();
                    Some(self.tuple(values))
                }
            },
            "gather" | "gather_for_metrics" | "reduce" | "pad_across_processes" => {
                Some(Value::tensor(Truth::No, Truth::Yes, Truth::Maybe))
            }
            "unwrap_model" => given.first().map(|(_, value)| *value),
            _ => Some(Value {
                graph: Truth::No,
                ..Value::UNKNOWN
            }),
        }
    }

    fn container_method(
        &mut self,
        function: &'a ExprAttribute,
        receiver: Value,
        given: &[(Option<&'a str>, Value)],
    ) -> Option<Value> {
        match function.attr.as_str() {
            "append" | "add" | "extend" | "insert" | "appendleft" => {
                if let Some((_, value)) = given.last() {
                    self.put_into(&function.value, *value);
                }
                Some(Value::plain(Kind::None))
            }
            "items" | "values" | "copy" => Some(receiver),
            "keys" => Some(Value::plain(Kind::Container)),
            "pop" | "get" | "popleft" => Some(self.part_of(receiver)),
            // `history.setdefault(name, {})[step] = loss`
            "setdefault"
                if given
                    .get(1)
                    .is_some_and(|(_, value)| value.kind == Kind::Container) =>
            {
                Some(Value {
                    kind: Kind::Container,
                    ..receiver
                })
            }
            _ => Some(Value::UNKNOWN),
        }
    }

    /// Methods whose result is the same for any receiver.
    fn unknown_method(&mut self, call: &'a ExprCall, name: &str, receiver: Value) -> Option<Value> {
        match name {
            "item" | "tolist" | "numpy" => Some(Value::number()),
            "detach" => Some(Value::tensor(Truth::No, receiver.card, receiver.scalar)),
            "backward" => Some(Value::plain(Kind::None)),
            "to" | "cuda" | "cpu" => Some(self.moved(call, name, receiver)),
            "state_dict" => Some(Value::of(Kind::StateDict)),
            "parameters" => Some(Value::of(Kind::Parameters)),
            _ => None,
        }
    }
}

/// Methods of models that run a part of them: those of CLIP, timm and their like.
pub(in crate::facts) fn is_pass(method: &str) -> bool {
    matches!(
        method,
        "encode_image"
            | "encode_text"
            | "encode_audio"
            | "forward_features"
            | "forward_head"
            | "extract_features"
            | "get_image_features"
            | "get_text_features"
            | "get_audio_features"
    )
}

/// Whether a method that a model from another file has of its own may run a part of it and give what that
/// computed: not what only sets, tells or saves something, nor what gives tokens, classes or actions.
pub(in crate::facts) fn may_be_pass(method: &str) -> bool {
    const RUN: &[&str] = &[
        "embed",
        "embedding",
        "embeddings",
        "encode",
        "extract",
        "feature",
        "features",
        "hidden",
        "infer",
        "inference",
        "latent",
        "latents",
        "logits",
        "project",
        "reconstruct",
        "representation",
        "representations",
    ];
    method.split('_').any(|word| RUN.contains(&word))
}

/// Whether tensors, or batches that are on the card, are among the arguments.
fn gives_data(given: &[(Option<&str>, Value)]) -> bool {
    given
        .iter()
        .any(|(_, value)| value.is_tensor() || value.kind == Kind::Unknown && value.card.is_yes())
}

/// `torch.float16`, `dtype`: `.to` with a dtype.
fn is_type(expression: &crate::python::Expr) -> bool {
    use crate::python::Expr;
    match expression {
        Expr::Attribute(attribute) => {
            let name = attribute.attr.as_str();
            name.contains("float")
                || name.contains("int")
                || name.ends_with("dtype")
                || matches!(name, "half" | "long" | "bool" | "double")
        }
        Expr::Name(name) => name.id.as_str().ends_with("dtype"),
        _ => false,
    }
}
