//! Weights of models of transformers: in bfloat16, or with adapters beside them.

use ghostgpu_lint::python::{Expr, ExprCall, Stmt};
use ghostgpu_tricks::Request;

use super::option;
use crate::outcome::{Outcome, Written};
use crate::script::Script;

/// A transformers model that the script creates.
pub struct LibraryModel<'a> {
    pub path: &'a str,
    pub statement: &'a Stmt,
}

impl<'a> Script<'a> {
    /// The models of transformers that are made in this file.
    pub fn transformers_models(&self) -> Vec<LibraryModel<'a>> {
        let made = self.facts.structure.assigns.iter().filter_map(|assign| {
            let call = unmoved(assign.value)?;
            let name = self.facts.callee(call)?;
            let is_model = name.starts_with("transformers.") && self.facts.result(call).is_module();
            is_model.then_some(())?;
            Some(LibraryModel {
                path: self.facts.path(assign.target)?,
                statement: assign.statement,
            })
        });
        made.collect()
    }

    fn only_transformers_model(&self) -> Result<LibraryModel<'a>, String> {
        let mut models = self.transformers_models().into_iter();
        match (models.next(), models.next()) {
            (Some(model), None) => Ok(model),
            (None, _) => Err("this file makes no model of transformers".to_owned()),
            _ => Err("this file makes several models".to_owned()),
        }
    }
}

/// The call that creates a model, such as `Model(config)` in `Model(config).to(device).train()`.
fn unmoved(mut made: &Expr) -> Option<&ExprCall> {
    loop {
        let call = made.as_call_expr()?;
        match &*call.func {
            Expr::Attribute(method)
                if matches!(method.attr.as_str(), "to" | "cuda" | "train" | "eval")
                    && method.value.is_call_expr() =>
            {
                made = &method.value;
            }
            _ => return Some(call),
        }
    }
}

pub fn bfloat16(script: &Script<'_>) -> Outcome {
    let what = "weights in bfloat16";
    // Other models may get float32 inputs, which would have to be cast where they are called.
    let model = script.only_transformers_model()?;
    if script
        .text
        .contains(&format!("{}.to(torch.bfloat16)", model.path))
    {
        return Written::new(what, Vec::new());
    }
    let mut edits = script.import("torch");
    let line = format!("{}.to(torch.bfloat16)", model.path);
    edits.push(script.line_after(model.statement, &line)?);
    Written::new(what, edits)
}

pub fn lora(script: &Script<'_>, request: &Request) -> Outcome {
    let what = "adapters of peft";
    if script.facts.imports.uses("peft") {
        return match script.calls_of(|name| name == "peft.get_peft_model").next() {
            Some(_) => Written::new(what, Vec::new()),
            None => Err("the script uses peft in its own way".to_owned()),
        };
    }
    let model = script.only_transformers_model()?;
    let path = model.path;
    let targets = match option(request, "targets") {
        "all-linear" => "\"all-linear\"".to_owned(),
        names => {
            let quoted: Vec<String> = names
                .split(',')
                .map(|it| format!("\"{}\"", it.trim()))
                .collect();
            format!("[{}]", quoted.join(", "))
        }
    };
    let rank = option(request, "rank");
    let config = format!("peft.LoraConfig(r={rank}, target_modules={targets})");
    let mut edits = script.import("peft");
    edits.push(script.line_after(
        model.statement,
        &format!("{path} = peft.get_peft_model({path}, {config})"),
    )?);
    Written::new(what, edits)
}
