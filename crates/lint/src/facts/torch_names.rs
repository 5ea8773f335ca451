//! What PyTorch's functions and classes return, by full name.

use super::value::{Kind, Truth, Value};

/// Whether a star import of `module` provides a relevant class of this name.
pub fn has_class(module: &str, name: &str) -> bool {
    match module {
        "torch.nn" => {
            name.ends_with("Loss")
                || matches!(
                    name,
                    "Module"
                        | "Linear"
                        | "Sequential"
                        | "ModuleList"
                        | "Parameter"
                        | "Embedding"
                        | "Conv1d"
                        | "Conv2d"
                        | "Conv3d"
                        | "ReLU"
                        | "LeakyReLU"
                        | "ELU"
                        | "SELU"
                        | "SiLU"
                        | "GELU"
                        | "Sigmoid"
                        | "Tanh"
                        | "Dropout"
                        | "Dropout2d"
                        | "BatchNorm1d"
                        | "BatchNorm2d"
                        | "BatchNorm3d"
                        | "LayerNorm"
                        | "GroupNorm"
                        | "MaxPool2d"
                        | "AvgPool2d"
                        | "AdaptiveAvgPool2d"
                        | "LSTM"
                        | "GRU"
                        | "RNN"
                        | "Flatten"
                        | "Softmax"
                        | "LogSoftmax"
                        | "Identity"
                        | "ConvTranspose2d"
                        | "Upsample"
                        | "DataParallel"
                        | "MultiheadAttention"
                        | "Transformer"
                        | "TransformerEncoder"
                        | "TransformerEncoderLayer"
                )
        }
        "torch.optim" => is_optimizer(name),
        "torch.optim.lr_scheduler" => is_class(name),
        "torch.utils.data" => matches!(name, "DataLoader" | "Dataset" | "TensorDataset"),
        "torch" => matches!(name, "no_grad" | "load" | "device" | "Tensor"),
        _ => false,
    }
}

fn is_class(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_uppercase())
}

fn is_optimizer(name: &str) -> bool {
    is_class(name)
}

/// Loss functions of `torch.nn.functional`.
pub fn is_loss_function(name: &str) -> bool {
    name.strip_prefix("torch.nn.functional.")
        .is_some_and(|function| {
            function.ends_with("_loss")
                || matches!(
                    function,
                    "cross_entropy"
                        | "binary_cross_entropy"
                        | "binary_cross_entropy_with_logits"
                        | "kl_div"
                )
        })
}

/// `torch.no_grad`, `torch.inference_mode` and their older names.
pub fn is_no_grad(name: &str) -> bool {
    matches!(
        name,
        "torch.no_grad"
            | "torch.inference_mode"
            | "torch.autograd.no_grad"
            | "torch.autograd.inference_mode"
            | "torch.autograd.grad_mode.no_grad"
            | "torch.autograd.grad_mode.inference_mode"
    )
}

pub fn is_enable_grad(name: &str) -> bool {
    matches!(name, "torch.enable_grad" | "torch.autograd.enable_grad")
}

pub fn is_set_grad_enabled(name: &str) -> bool {
    matches!(
        name,
        "torch.set_grad_enabled" | "torch.autograd.set_grad_enabled"
    )
}

/// Functions of `torch` whose result has no graph.
fn gives_no_gradient(function: &str) -> bool {
    matches!(
        function,
        "argmax"
            | "argmin"
            | "argsort"
            | "eq"
            | "ne"
            | "gt"
            | "lt"
            | "ge"
            | "le"
            | "isnan"
            | "isinf"
            | "isfinite"
            | "equal"
            | "allclose"
            | "nonzero"
            | "sign"
            | "floor"
            | "ceil"
            | "round"
            | "bincount"
            | "unique"
            | "searchsorted"
            | "bucketize"
            | "histc"
            | "logical_and"
            | "logical_or"
            | "logical_not"
            | "is_tensor"
            | "numel"
            | "zeros_like"
            | "ones_like"
            | "rand_like"
            | "randn_like"
            | "full_like"
            | "empty_like"
            | "randint_like"
            | "one_hot"
            | "multinomial"
            | "bernoulli"
    )
}

/// Functions of `torch` that create a tensor from sizes and plain data only.
pub fn makes_tensor(function: &str) -> bool {
    matches!(
        function,
        "tensor"
            | "as_tensor"
            | "from_numpy"
            | "zeros"
            | "ones"
            | "empty"
            | "full"
            | "rand"
            | "randn"
            | "randint"
            | "randperm"
            | "arange"
            | "linspace"
            | "eye"
            | "Tensor"
            | "FloatTensor"
            | "LongTensor"
            | "IntTensor"
            | "BoolTensor"
            | "HalfTensor"
    )
}

/// Functions of `torch` that create a tensor of a given size with fixed or random contents.
pub fn fills_tensor(function: &str) -> bool {
    matches!(
        function,
        "zeros"
            | "ones"
            | "empty"
            | "full"
            | "arange"
            | "linspace"
            | "logspace"
            | "eye"
            | "tril_indices"
            | "triu_indices"
    )
}

/// Tensor methods whose result has no graph.
pub fn method_without_gradient(method: &str) -> bool {
    gives_no_gradient(method)
        || matches!(
            method,
            "long"
                | "int"
                | "bool"
                | "byte"
                | "short"
                | "detach"
                | "detach_"
                | "any"
                | "all"
                | "is_contiguous"
                // Of a distribution: drawn without a graph, unlike `rsample`.
                | "sample"
        )
}

/// Tensor methods that do not return a tensor.
pub fn method_gives_number(method: &str) -> bool {
    matches!(
        method,
        "item"
            | "tolist"
            | "numpy"
            | "size"
            | "dim"
            | "numel"
            | "nelement"
            | "element_size"
            | "stride"
            | "get_device"
            | "data_ptr"
            | "is_floating_point"
    )
}

/// Tensor methods that return a single number when called without a dimension.
pub fn method_reduces(method: &str) -> bool {
    matches!(
        method,
        "mean" | "sum" | "norm" | "prod" | "std" | "var" | "max" | "min" | "median"
    )
}

/// What an imported function or class returns, as far as its name tells. `graph` is
/// whether one of its arguments has a graph.
pub fn result(name: &str, graph: Truth, card: Truth) -> Option<Value> {
    let module = |class| Some(Value::of(Kind::Module(class)));
    if let Some(rest) = name.strip_prefix("torch.") {
        return torch_result(rest, name, graph, card);
    }
    let last = name.rsplit('.').next().unwrap_or(name);
    let root = name.split('.').next().unwrap_or(name);
    match root {
        "torchvision" => {
            if name.starts_with("torchvision.models.") {
                module(None)
            } else if name.starts_with("torchvision.datasets.") && is_class(last) {
                Some(Value::plain(Kind::Dataset))
            } else {
                None
            }
        }
        "timm" if last == "create_model" => module(None),
        "segmentation_models_pytorch" if is_class(last) => {
            if name.contains(".losses.") {
                Some(Value::plain(Kind::Criterion))
            } else {
                module(None)
            }
        }
        "transformers" => transformers_result(name, last),
        "accelerate" if last == "Accelerator" => Some(Value::plain(Kind::Accelerator)),
        "peft" if last == "get_peft_model" => module(None),
        "numpy" | "math" | "time" | "random" | "os" => Some(Value::number()),
        _ => None,
    }
}

fn transformers_result(name: &str, last: &str) -> Option<Value> {
    let class = if is_class(last) {
        last
    } else {
        name.rsplit('.').nth(1).unwrap_or("")
    };
    if class.contains("Tokenizer") || class.contains("Processor") {
        Some(Value::plain(Kind::Tokenizer))
    } else if class.contains("Config") || class.contains("Arguments") || class.contains("Trainer") {
        None
    } else if class.contains("Model") || class.contains("For") {
        Some(Value::of(Kind::Module(None)))
    } else if last.starts_with("get_") && last.contains("schedule") {
        Some(Value::plain(Kind::Scheduler))
    } else if class.starts_with("Ada") {
        Some(Value::plain(Kind::Optimizer))
    } else {
        None
    }
}

fn torch_result(rest: &str, name: &str, graph: Truth, card: Truth) -> Option<Value> {
    if let Some(class) = rest.strip_prefix("nn.") {
        if let Some(function) = class.strip_prefix("functional.") {
            let graph = if gives_no_gradient(function) {
                Truth::No
            } else {
                graph
            };
            let scalar = if is_loss_function(name) {
                Truth::Yes
            } else {
                Truth::Maybe
            };
            return Some(Value::tensor(graph, card, scalar));
        }
        return match class {
            "Parameter" | "parameter.Parameter" => {
                Some(Value::tensor(Truth::Yes, Truth::Maybe, Truth::Maybe))
            }
            _ if class.starts_with("utils.clip_grad") => {
                Some(Value::tensor(Truth::No, card, Truth::Yes))
            }
            _ if class.starts_with("init.") => None,
            _ if class.starts_with("utils.") => Some(Value::tensor(graph, card, Truth::Maybe)),
            _ => {
                let last = class.rsplit('.').next().unwrap_or(class);
                if last.ends_with("Loss") {
                    Some(Value::plain(Kind::Criterion))
                } else {
                    is_class(last).then_some(Value::of(Kind::Module(None)))
                }
            }
        };
    }
    if let Some(class) = rest.strip_prefix("optim.") {
        return match class.strip_prefix("lr_scheduler.") {
            Some(_) => Some(Value::plain(Kind::Scheduler)),
            None if class.starts_with("swa_utils.AveragedModel") => {
                Some(Value::of(Kind::Module(None)))
            }
            None => is_optimizer(class).then_some(Value::plain(Kind::Optimizer)),
        };
    }
    match rest {
        "device" => Some(Value::plain(Kind::Device)),
        "utils.data.DataLoader" | "utils.data.dataloader.DataLoader" => {
            Some(Value::plain(Kind::Loader))
        }
        "utils.data.TensorDataset" => Some(Value::plain(Kind::Dataset)),
        "cuda.amp.GradScaler" | "amp.GradScaler" | "cuda.amp.grad_scaler.GradScaler" => {
            Some(Value::plain(Kind::Scaler))
        }
        "hub.load" => Some(Value::of(Kind::Module(None))),
        "load" => Some(Value::of(Kind::StateDict)),
        "is_grad_enabled" | "is_tensor" | "numel" => Some(Value::number()),
        // A distribution is made of tensors, and so is what its methods give.
        _ if rest.starts_with("distributions.") => Some(Value::tensor(graph, card, Truth::Maybe)),
        "autograd.Variable" => Some(Value::tensor(graph, card, Truth::Maybe)),
        "autograd.grad" => Some(Value::tensor(Truth::Maybe, card, Truth::Maybe)),
        "max" | "min" | "sort" | "topk" => Some(Value::tensor(graph, card, Truth::Maybe)),
        "mean" | "sum" | "norm" => Some(Value::tensor(graph, card, Truth::Maybe)),
        _ if makes_tensor(rest) => Some(Value::tensor(Truth::No, Truth::No, Truth::Maybe)),
        _ if gives_no_gradient(rest) => Some(Value::tensor(Truth::No, card, Truth::Maybe)),
        _ if rest.starts_with("cuda.") && !rest.ends_with("Tensor") => Some(Value::number()),
        _ if rest.starts_with("backends.") || rest.starts_with("version.") => Some(Value::number()),
        // Any other function of `torch`: a tensor computed from its arguments.
        _ if !rest.contains('.') && !is_class(rest) => {
            Some(Value::tensor(graph, card, Truth::Maybe))
        }
        _ => None,
    }
}

/// `torch.float32` or `torch.float`.
pub fn is_single_precision(name: &str) -> bool {
    matches!(name, "torch.float32" | "torch.float")
}
