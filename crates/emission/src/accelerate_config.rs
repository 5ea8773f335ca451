//! Edits the keys of Accelerate's configuration that correspond to tricks, and leaves everything else unchanged.

use ghostgpu_tricks::Request;

use crate::outcome::{NotMechanical, not_mechanical};

/// A configuration for one process, as `accelerate config default` writes it.
const DEFAULT: &str = "\
compute_environment: LOCAL_MACHINE
debug: false
distributed_type: 'NO'
downcast_bf16: 'no'
machine_rank: 0
main_training_function: main
mixed_precision: 'no'
num_machines: 1
num_processes: 1
same_network: true
use_cpu: false
";

/// A configuration of Accelerate with tricks written into it; without a file, the default for one process is used.
pub fn edited(yaml: Option<&str>, tricks: &[Request]) -> Result<String, NotMechanical> {
    let mut text = yaml.unwrap_or(DEFAULT).to_owned();
    for request in tricks {
        text = with_trick(&text, request).map_err(|reason| not_mechanical(request, reason))?;
    }
    Ok(text)
}

/// Whether a text is a configuration of Accelerate, by its keys.
pub fn is_configuration(yaml: &str) -> bool {
    const KEYS: &[&str] = &[
        "compute_environment:",
        "distributed_type:",
        "mixed_precision:",
    ];
    yaml.lines()
        .any(|line| KEYS.iter().any(|key| line.starts_with(key)))
}

fn with_trick(text: &str, request: &Request) -> Result<String, String> {
    let value = |option: &str| request.value(option).unwrap_or_default();
    let uses_deepspeed = text
        .lines()
        .any(|line| line.starts_with("deepspeed_config:"));
    match request.name.as_str() {
        "autocast" => Ok(set(text, None, "mixed_precision", value("dtype"))),
        "accumulation" if uses_deepspeed => Ok(set(
            text,
            Some("deepspeed_config"),
            "gradient_accumulation_steps",
            value("steps"),
        )),
        "offload-optimizer" if uses_deepspeed => Ok(set(
            text,
            Some("deepspeed_config"),
            "offload_optimizer_device",
            "cpu",
        )),
        "accumulation" => Err(
            "without DeepSpeed the script says how many batches make a step: \
             Accelerator(gradient_accumulation_steps=...)"
                .to_owned(),
        ),
        _ => Err("Accelerate's configuration has no setting for it".to_owned()),
    }
}

/// Sets a key of the outermost mapping, or of a mapping below it.
fn set(text: &str, below: Option<&str>, key: &str, value: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let indent_of = |line: &str| line.len() - line.trim_start().len();
    let (from, until, indent) = match below {
        None => (0, lines.len(), String::new()),
        Some(parent) => {
            let at = lines
                .iter()
                .position(|line| line.starts_with(&format!("{parent}:")))
                .unwrap_or(0);
            let inside = lines[at + 1..]
                .iter()
                .take_while(|line| line.trim().is_empty() || indent_of(line) > 0)
                .count();
            let indent = match lines.get(at + 1).filter(|_| inside > 0) {
                Some(line) => line[..indent_of(line)].to_owned(),
                None => "  ".to_owned(),
            };
            if inside == 0 {
                lines[at] = format!("{parent}:");
            }
            (at + 1, at + 1 + inside, indent)
        }
    };
    let is_key = |line: &String| {
        line.strip_prefix(&indent)
            .is_some_and(|rest| rest.starts_with(&format!("{key}:")))
    };
    let written = format!("{indent}{key}: {value}");
    match lines[from..until].iter().position(is_key) {
        Some(at) => lines[from + at] = written,
        None => lines.insert(until, written),
    }
    lines.join("\n") + "\n"
}
