//! Edits the keys of DeepSpeed's JSON that correspond to tricks, and leaves everything else unchanged.

use std::ops::Range;

use ghostgpu_tricks::Request;
use serde_json::Value;

use crate::outcome::{NotMechanical, not_mechanical};

/// A configuration of DeepSpeed with tricks written into it.
pub fn edited(json: &str, tricks: &[Request]) -> Result<String, NotMechanical> {
    let mut text = json.to_owned();
    for request in tricks {
        text = with_trick(&text, request).map_err(|reason| not_mechanical(request, reason))?;
    }
    Ok(text)
}

/// Whether a text is a configuration of DeepSpeed, by its keys.
pub fn is_configuration(json: &str) -> bool {
    const KEYS: &[&str] = &[
        "zero_optimization",
        "train_batch_size",
        "train_micro_batch_size_per_gpu",
        "gradient_accumulation_steps",
    ];
    let parsed: Option<Value> = serde_json::from_str(json).ok();
    parsed.is_some_and(|parsed| KEYS.iter().any(|key| parsed.get(key).is_some()))
}

fn with_trick(text: &str, request: &Request) -> Result<String, String> {
    let parsed: Value = serde_json::from_str(text)
        .map_err(|error| format!("the configuration is no JSON: {error}"))?;
    if !parsed.is_object() {
        return Err("the configuration is no JSON object".to_owned());
    }
    let value = |option: &str| request.value(option).unwrap_or_default().to_owned();
    match request.name.as_str() {
        "accumulation" => {
            let count = value("steps");
            let text = set(text, &["gradient_accumulation_steps"], &count)?;
            // DeepSpeed refuses a total that is not the product of the parts, and computes it if it is missing.
            without(&text, "train_batch_size")
        }
        "smaller-batch" => {
            let text = set(text, &["train_micro_batch_size_per_gpu"], &value("batch"))?;
            without(&text, "train_batch_size")
        }
        "autocast" => {
            let (on, off) = match value("dtype").as_str() {
                "fp16" => ("fp16", "bf16"),
                _ => ("bf16", "fp16"),
            };
            let text = match parsed.get(off) {
                Some(_) => set(text, &[off, "enabled"], "false")?,
                None => text.to_owned(),
            };
            set(&text, &[on, "enabled"], "true")
        }
        "offload-optimizer" => {
            let has_stage = parsed
                .pointer("/zero_optimization/stage")
                .and_then(Value::as_u64)
                .is_some_and(|stage| stage >= 1);
            if !has_stage {
                return Err("DeepSpeed offloads the optimizer with ZeRO from stage 1 on".to_owned());
            }
            let path = ["zero_optimization", "offload_optimizer", "device"];
            set(text, &path, "\"cpu\"")
        }
        _ => Err("DeepSpeed has no setting for it".to_owned()),
    }
}

/// Sets the value at a path of keys; missing objects are created.
fn set(text: &str, path: &[&str], value: &str) -> Result<String, String> {
    let mut object = entries(text, 0)?;
    for (depth, key) in path.iter().enumerate() {
        let rest = &path[depth + 1..];
        let Some(found) = object.entries.iter().find(|entry| entry.key == *key) else {
            let inner = rest.iter().rev().fold(value.to_owned(), |inner, key| {
                format!("{{\"{key}\": {inner}}}")
            });
            return Ok(inserted(text, &object, &format!("\"{key}\": {inner}")));
        };
        if rest.is_empty() {
            if &text[found.value.clone()] == "\"auto\"" {
                return Err(format!("`{key}` is left to the trainer (\"auto\")"));
            }
            let mut edited = text.to_owned();
            edited.replace_range(found.value.clone(), value);
            return Ok(edited);
        }
        if !text[found.value.clone()].starts_with('{') {
            return Err(format!("`{key}` is no JSON object"));
        }
        object = entries(text, found.value.start)?;
    }
    Ok(text.to_owned())
}

/// Removes a key of the outermost object, with its comma.
fn without(text: &str, key: &str) -> Result<String, String> {
    let object = entries(text, 0)?;
    let Some(at) = object.entries.iter().position(|entry| entry.key == key) else {
        return Ok(text.to_owned());
    };
    let range = match (at.checked_sub(1), object.entries.get(at + 1)) {
        (_, Some(next)) => object.entries[at].start..next.start,
        (Some(before), None) => object.entries[before].value.end..object.entries[at].value.end,
        (None, None) => object.entries[at].start..object.entries[at].value.end,
    };
    let mut edited = text.to_owned();
    edited.replace_range(range, "");
    Ok(edited)
}

/// Adds an entry after the last one, on a separate line if the others are.
fn inserted(text: &str, object: &Object, entry: &str) -> String {
    let mut edited = text.to_owned();
    match object.entries.last() {
        Some(last) => {
            let line = text[..last.start].rfind('\n').map_or(0, |at| at + 1);
            let indent = &text[line..last.start];
            let separator = match indent.trim().is_empty() && line > 0 {
                true => format!(",\n{indent}"),
                false => ", ".to_owned(),
            };
            edited.insert_str(last.value.end, &format!("{separator}{entry}"));
        }
        None => edited.insert_str(object.open + 1, entry),
    }
    edited
}

/// Where the entries of one JSON object are.
struct Object {
    open: usize,
    entries: Vec<Entry>,
}

struct Entry {
    key: String,
    /// Where its key begins.
    start: usize,
    value: Range<usize>,
}

/// The entries of the object that begins at or after `from`, in JSON that is known to be valid.
fn entries(text: &str, from: usize) -> Result<Object, String> {
    let broken = || "the configuration is no JSON object".to_owned();
    let bytes = text.as_bytes();
    let open = from + text[from..].find('{').ok_or_else(broken)?;
    let mut found = Object {
        open,
        entries: Vec::new(),
    };
    let mut at = open + 1;
    loop {
        at = past_space(bytes, at);
        match bytes.get(at) {
            Some(b'}') => return Ok(found),
            Some(b',') => at += 1,
            Some(b'"') => {
                let start = at;
                let end = past_value(bytes, at);
                let key = serde_json::from_str(&text[start..end]).map_err(|_| broken())?;
                at = past_space(bytes, end);
                at = past_space(bytes, at + 1);
                let value = at..past_value(bytes, at);
                at = value.end;
                found.entries.push(Entry { key, start, value });
            }
            _ => return Err(broken()),
        }
    }
}

fn past_space(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    at
}

/// The end of the value that begins at `at`.
fn past_value(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0_usize;
    let mut in_string = false;
    while let Some(byte) = bytes.get(at) {
        if in_string {
            match byte {
                b'\\' => at += 1,
                b'"' => in_string = false,
                _ => {}
            }
            at += 1;
            if !in_string && depth == 0 {
                return at;
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth > 0 => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            b'}' | b']' | b',' if depth == 0 => return at,
            it if it.is_ascii_whitespace() && depth == 0 => return at,
            _ => {}
        }
        at += 1;
    }
    at
}
