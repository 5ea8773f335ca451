//! `plan.toml`: tricks with their options, in a file.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::request::{Refusal, Request};

#[derive(Deserialize)]
struct Plan {
    #[serde(default)]
    tricks: BTreeMap<String, BTreeMap<String, toml::Value>>,
}

/// The tricks of a plan; other tables of the file are ignored.
pub fn requests_of_plan(text: &str) -> Result<Vec<Request>, Refusal> {
    let plan: Plan = toml::from_str(text).map_err(|error| {
        Refusal::new(
            format!("it is not a plan: {}", error.message()),
            "each trick has a table of its own, such as [tricks.autocast] with dtype = \"bf16\"",
        )
    })?;
    if plan.tricks.is_empty() {
        return Err(Refusal::new(
            "it names no trick",
            "each trick has a table of its own, such as [tricks.autocast] with dtype = \"bf16\"",
        ));
    }
    plan.tricks
        .into_iter()
        .map(|(name, options)| {
            let options = options
                .into_iter()
                .map(|(option, value)| Ok((option.clone(), text_of(&name, &option, value)?)))
                .collect::<Result<_, Refusal>>()?;
            Ok(Request { name, options })
        })
        .collect()
}

fn text_of(trick: &str, option: &str, value: toml::Value) -> Result<String, Refusal> {
    match value {
        toml::Value::String(text) => Ok(text),
        toml::Value::Integer(number) => Ok(number.to_string()),
        toml::Value::Array(values) => {
            let texts: Result<Vec<String>, Refusal> = values
                .into_iter()
                .map(|value| text_of(trick, option, value))
                .collect();
            Ok(texts?.join(","))
        }
        _ => Err(Refusal::new(
            format!("the {option} of the trick `{trick}` is neither a text nor a whole number"),
            format!("`ghostgpu tricks {trick}` describes it"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Requests;

    #[test]
    fn a_plan_names_tricks_and_their_options() {
        let text = r#"
            card = "3060"
            [tricks.chunking]
            chunks = 4
            [tricks.autocast]
            dtype = "bf16"
            [tricks.checkpointing]
            blocks = ["encoder.layer.0", "encoder.layer.1"]
            [tricks.inplace-activations]
        "#;
        let requests = requests_of_plan(text).expect("a plan");
        let options: Vec<String> = requests
            .iter()
            .map(|request| format!("{} {:?}", request.name, request.options))
            .collect();
        assert_eq!(
            options,
            [
                r#"autocast {"dtype": "bf16"}"#,
                r#"checkpointing {"blocks": "encoder.layer.0,encoder.layer.1"}"#,
                r#"chunking {"chunks": "4"}"#,
                "inplace-activations {}",
            ]
        );
        assert!(Requests::checked(requests).is_ok());
    }

    #[test]
    fn what_is_no_plan_is_refused_with_an_example() {
        for (text, reason) in [
            ("chunks = 4", "names no trick"),
            ("", "names no trick"),
            ("[tricks", "not a plan"),
            ("tricks = 3", "not a plan"),
            (
                "[tricks.chunking]\nchunks = 1.5",
                "neither a text nor a whole number",
            ),
        ] {
            let refusal = requests_of_plan(text).expect_err(text);
            assert!(refusal.reason.contains(reason), "{text}: {refusal:?}");
        }
    }
}
