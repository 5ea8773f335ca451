//! Requests as people write them: flags of the command line, and the tables of a plan.

use crate::catalogue::{Catalogue, FlagValue, OptionType};
use crate::request::Request;

impl Request {
    /// The words of its flag; `None` if it has an option that only a plan file can set.
    pub fn flag_words(&self) -> Option<Vec<String>> {
        let trick = Catalogue::builtin().find(&self.name)?;
        let flag = trick.flag.clone();
        let given: Vec<&String> = self.options.keys().collect();
        match &trick.value {
            None => given.is_empty().then(|| vec![flag]),
            Some(FlagValue::Word { word }) => given.is_empty().then(|| vec![flag, word.clone()]),
            Some(FlagValue::Option {
                option,
                is_optional,
                ..
            }) => {
                if given.iter().any(|name| *name != option) {
                    return None;
                }
                match (self.options.get(option), is_optional) {
                    (None, true) => Some(vec![flag]),
                    (Some(value), true) => Some(vec![format!("{flag}={value}")]),
                    (_, false) => Some(vec![flag, self.value(option)?.to_owned()]),
                }
            }
        }
    }
}

/// A plan file with these tricks, which [`requests_of_plan`](crate::requests_of_plan) reads.
pub fn plan_of_requests(requests: &[Request]) -> String {
    let tables = requests.iter().map(|request| {
        let trick = Catalogue::builtin().find(&request.name);
        let mut tables = toml::Table::new();
        for (name, value) in &request.options {
            let kind = trick.and_then(|trick| trick.option(name)).map(|it| it.kind);
            let number = value
                .parse::<i64>()
                .ok()
                .filter(|_| matches!(kind, Some(OptionType::Count | OptionType::Blocks)));
            let value = match number {
                Some(number) => toml::Value::Integer(number),
                None => toml::Value::String(value.clone()),
            };
            tables.insert(name.clone(), value);
        }
        format!("[tricks.{}]\n{tables}", request.name)
    });
    tables.collect::<Vec<String>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::requests_of_plan;

    fn request(name: &str, options: &[(&str, &str)]) -> Request {
        let mut request = Request::named(name);
        for (option, value) in options {
            let (option, value) = ((*option).to_owned(), (*value).to_owned());
            request.options.insert(option, value);
        }
        request
    }

    #[test]
    fn what_is_typed_for_a_request_asks_for_it() {
        for (request, words) in [
            (request("chunking", &[("chunks", "4")]), "--chunks 4"),
            (request("chunking", &[]), "--chunks 2"),
            (request("inplace-activations", &[]), "--inplace"),
            (request("adafactor", &[]), "--optimizer adafactor"),
            (request("optimizer-form", &[]), "--optimizer fused"),
            (request("offload-activations", &[]), "--offload-activations"),
            (
                request("offload-activations", &[("threshold", "4MiB")]),
                "--offload-activations=4MiB",
            ),
        ] {
            let typed = request.flag_words().expect("a flag");
            assert_eq!(typed.join(" "), words);
            let text = typed.join(" ").replace('=', " ");
            let (flag, value) = text.split_once(' ').unwrap_or((&text, ""));
            let again = Request::of_flag(flag, value).expect("known");
            assert_eq!(again.name, request.name);
            for sheet in &Catalogue::builtin()
                .find(&request.name)
                .expect("known")
                .options
            {
                assert_eq!(again.value(&sheet.name), request.value(&sheet.name));
            }
        }
        let kept = request("checkpointing", &[("keep", "matmuls")]);
        assert_eq!(kept.flag_words(), None);
    }

    #[test]
    fn a_written_plan_asks_for_the_same_tricks() {
        let requests = vec![
            request("allocator", &[("settings", "expandable_segments:True")]),
            request("checkpointing", &[("blocks", "6"), ("keep", "matmuls")]),
            request("chunking", &[("chunks", "3")]),
            request("inplace-activations", &[]),
        ];
        let text = plan_of_requests(&requests);
        assert_eq!(requests_of_plan(&text), Ok(requests), "{text}");
        assert!(text.contains("chunks = 3\n"), "{text}");
    }
}
