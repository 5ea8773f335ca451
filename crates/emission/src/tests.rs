//! Scripts and the diffs that tricks make of them.

use std::fmt::Write;

use ghostgpu_tricks::{Catalogue, Request, Requests};
use proptest::prelude::*;

use super::*;

const SCRIPTS: &[(&str, &str)] = &[
    ("plain_loop", include_str!("../scripts/plain_loop.py")),
    ("counted_steps", include_str!("../scripts/counted_steps.py")),
    ("functions", include_str!("../scripts/functions.py")),
    ("causal_model", include_str!("../scripts/causal_model.py")),
    ("trainer", include_str!("../scripts/trainer.py")),
    (
        "lightning_module",
        include_str!("../scripts/lightning_module.py"),
    ),
    ("accelerator", include_str!("../scripts/accelerator.py")),
    (
        "two_optimizers",
        include_str!("../scripts/two_optimizers.py"),
    ),
    ("windows", include_str!("../scripts/windows.py")),
    ("adversaries", include_str!("../scripts/adversaries.py")),
    ("left_early", include_str!("../scripts/left_early.py")),
];

/// `autocast dtype=fp16 + accumulation`
fn requests(text: &str) -> Vec<Request> {
    let asked = text.split('+').map(|each| {
        let mut words = each.split_whitespace();
        let mut request = Request::named(words.next().expect("a name"));
        for word in words {
            let (name, value) = word.split_once('=').expect("name=value");
            request.options.insert(name.to_owned(), value.to_owned());
        }
        request
    });
    Requests::checked(asked.collect()).expect(text).into_vec()
}

fn script(name: &str) -> &'static str {
    SCRIPTS.iter().find(|(it, _)| *it == name).expect(name).1
}

/// A patch as text: the tricks, then the diff or the reason.
fn told(name: &str, asked: &str) -> String {
    let mut text = format!("{asked}\n");
    match patch(&format!("{name}.py"), script(name), &requests(asked)) {
        Ok(patch) => {
            for change in &patch.changes {
                let there = if change.was_there {
                    " (there already)"
                } else {
                    ""
                };
                writeln!(text, "  {}: {}{there}", change.trick, change.what).expect("a string");
            }
            text + &patch.diff
        }
        Err(refused) => format!("{text}  {refused}\n"),
    }
}

fn shown(name: &str, asked: &[&str]) {
    let all: Vec<String> = asked.iter().map(|each| told(name, each)).collect();
    insta::with_settings!({omit_expression => true, prepend_module_to_snapshot => false}, {
        insta::assert_snapshot!(name, all.join("\n"));
    });
}

#[test]
fn a_plain_loop_over_a_loader_is_edited() {
    shown(
        "plain_loop",
        &[
            "autocast",
            "autocast dtype=fp16",
            "accumulation steps=4",
            "drop-last + accumulation steps=4",
            "autocast dtype=fp16 + drop-last + accumulation steps=4",
            "autocast dtype=fp16 + accumulation steps=4",
            "early-zero-grad",
            "drop-gradients",
            "no-grad-evaluation",
            "optimizer-form form=fused",
            "optimizer-form form=for-loop",
            "adafactor",
            "eight-bit-optimizer",
            "channels-last",
            "chunking chunks=4 + offload-optimizer",
            "checkpointing",
            "allocator settings=expandable_segments:True",
            "smaller-batch batch=16",
            "small-evaluation-batch batch=8",
            "leave-room",
            "no-cudnn-benchmark",
            "inplace-activations",
        ],
    );
}

#[test]
fn a_loop_that_counts_its_steps_is_edited() {
    shown(
        "counted_steps",
        &[
            "autocast",
            "accumulation steps=4",
            "accumulation steps=3",
            "checkpointing",
            "checkpointing blocks=3",
            "checkpointing blocks=Block",
            "early-zero-grad",
            "offload-activations threshold=2MiB",
        ],
    );
}

#[test]
fn loops_in_functions_are_edited() {
    shown(
        "functions",
        &[
            "autocast",
            "autocast dtype=fp16",
            "accumulation steps=4",
            "autocast dtype=fp16 + accumulation steps=2",
            "no-grad-evaluation",
            "adafactor",
            "eight-bit-optimizer",
            "smaller-batch batch=16",
            "small-evaluation-batch batch=8",
            "allocator",
            "chunking",
        ],
    );
}

#[test]
fn a_loop_that_accumulates_keeps_its_windows() {
    shown(
        "windows",
        &["autocast dtype=fp16", "accumulation", "checkpointing"],
    );
}

#[test]
fn a_model_of_transformers_is_asked_itself() {
    shown(
        "causal_model",
        &[
            "checkpointing",
            "bfloat16-weights",
            "lora rank=16",
            "accumulation",
            "allocator",
            "early-zero-grad",
            "no-grad-evaluation",
        ],
    );
}

#[test]
fn libraries_get_arguments() {
    shown(
        "trainer",
        &[
            "autocast",
            "checkpointing",
            "accumulation steps=4 + smaller-batch batch=4",
            "optimizer-form form=for-loop",
            "eight-bit-optimizer",
            "checkpointing blocks=3",
            "chunking",
        ],
    );
    shown(
        "lightning_module",
        &[
            "autocast",
            "accumulation steps=4",
            "optimizer-form",
            "chunking",
            "smaller-batch",
        ],
    );
    shown(
        "accelerator",
        &["autocast", "accumulation steps=4", "chunking"],
    );
}

#[test]
fn what_is_not_mechanical_is_refused_with_the_reason() {
    shown(
        "two_optimizers",
        &[
            "accumulation",
            "chunking",
            "autocast dtype=fp16",
            "autocast",
        ],
    );
    shown(
        "left_early",
        &["accumulation", "optimizer-form", "autocast dtype=fp16"],
    );
    shown(
        "adversaries",
        &[
            "autocast",
            "accumulation",
            "early-zero-grad",
            "eight-bit-optimizer",
            "adafactor",
        ],
    );
    let crowded = script("left_early").replace("()\n    loss", "(); loss");
    let refused = patch("crowded.py", &crowded, &requests("autocast")).expect_err("one line");
    assert!(refused.to_string().ends_with("on one line"), "{refused}");
    let broken = patch(
        "broken.py",
        "import torch\nfor x in\n",
        &requests("autocast"),
    );
    assert!(
        matches!(broken, Err(Refused::NotPython { line: 2, .. })),
        "{broken:?}"
    );
}

/// Applies a unified diff with `patch`.
fn patched(source: &str, diff: &str) -> String {
    use std::process::{Command, Stdio};
    let folder = std::env::temp_dir().join(format!("ghostgpu-emission-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("script.py");
    std::fs::write(&path, source).expect("written");
    let mut child = Command::new("patch")
        .args(["--quiet", "--posix"])
        .arg(&path)
        .stdin(Stdio::piped())
        .spawn()
        .expect("patch is installed");
    std::io::Write::write_all(&mut child.stdin.take().expect("piped"), diff.as_bytes())
        .expect("handed over");
    assert!(child.wait().expect("ended").success(), "{diff}");
    let text = std::fs::read_to_string(&path).expect("read");
    std::fs::remove_dir_all(&folder).expect("removed");
    text
}

#[test]
fn the_diff_leads_to_the_edited_text() {
    for (name, asked) in [
        (
            "plain_loop",
            "autocast dtype=fp16 + accumulation steps=4 + adafactor",
        ),
        (
            "counted_steps",
            "checkpointing + allocator + accumulation steps=3",
        ),
        ("functions", "no-grad-evaluation + accumulation steps=3"),
    ] {
        let made = patch("script.py", script(name), &requests(asked)).expect(asked);
        assert!(!made.diff.is_empty());
        assert_eq!(
            patched(script(name), &made.diff),
            made.text,
            "{name} {asked}"
        );
    }
}

/// Every trick with its defaults.
fn every_trick() -> Vec<Request> {
    let tricks = &Catalogue::builtin().tricks;
    tricks
        .iter()
        .map(|trick| Request::named(&trick.name))
        .collect()
}

#[test]
fn a_second_time_changes_nothing_or_is_refused() {
    for (name, source) in SCRIPTS {
        for request in every_trick() {
            let Ok(once) = patch("script.py", source, std::slice::from_ref(&request)) else {
                continue;
            };
            if let Ok(twice) = patch("script.py", &once.text, std::slice::from_ref(&request)) {
                assert_eq!(twice.diff, "", "{name}: {}", request.name);
            }
        }
    }
}

#[test]
fn comments_and_line_ends_stay() {
    for (name, source) in SCRIPTS {
        let dos = source.replace('\n', "\r\n");
        for request in every_trick() {
            let unix = patch("script.py", source, std::slice::from_ref(&request));
            let made = patch("script.py", &dos, std::slice::from_ref(&request));
            match (unix, made) {
                (Ok(unix), Ok(made)) => {
                    assert_eq!(
                        made.text,
                        unix.text.replace('\n', "\r\n"),
                        "{name}: {}",
                        request.name
                    );
                    let comments = source.lines().filter_map(|line| line.split_once('#'));
                    for (_, comment) in comments {
                        assert!(unix.text.contains(comment), "{name}: {}", request.name);
                    }
                }
                (Err(unix), Err(made)) => assert_eq!(unix, made),
                (unix, made) => panic!("{name}: {}: {unix:?} {made:?}", request.name),
            }
        }
    }
}

proptest! {
    /// Leaving out lines makes other scripts, valid or not. There must be no panic, and every patched script must be valid.
    #[test]
    fn any_script_is_edited_or_refused(
        which in 0..SCRIPTS.len(),
        kept in proptest::collection::vec(proptest::bool::weighted(0.9), 60),
        first in 0..30_usize,
        second in 0..30_usize,
    ) {
        let lines = SCRIPTS[which].1.lines().zip(kept).filter(|(_, kept)| *kept);
        let text: String = lines.map(|(line, _)| format!("{line}\n")).collect();
        let tricks = every_trick();
        let asked = vec![
            tricks[first % tricks.len()].clone(),
            tricks[second % tricks.len()].clone(),
        ];
        if let Ok(asked) = Requests::checked(asked)
            && let Ok(made) = patch("script.py", &text, asked.as_slice())
        {
            prop_assert!(Script::read(&made.text, |_| ()).is_ok());
            prop_assert_eq!(made.diff.is_empty(), made.text == text);
        }
    }
}

const DEEPSPEED: &str = r#"{
    "train_batch_size": 64,
    "fp16": { "enabled": true, "loss_scale": 0 },
    "zero_optimization": {
        "stage": 2
    }
}
"#;

#[test]
fn keys_of_deepspeed_are_edited_in_place() {
    let asked = "accumulation steps=4 + autocast + smaller-batch batch=2 + offload-optimizer";
    let edited = deepspeed::edited(DEEPSPEED, &requests(asked)).expect("known");
    let parsed: serde_json::Value = serde_json::from_str(&edited).expect("JSON");
    assert_eq!(
        parsed["zero_optimization"]["offload_optimizer"]["device"],
        "cpu"
    );
    insta::with_settings!({omit_expression => true, prepend_module_to_snapshot => false}, {
        insta::assert_snapshot!("deepspeed", edited);
    });
    for (json, asked) in [
        ("{}", "offload-optimizer"),
        ("[]", "autocast"),
        ("{", "autocast"),
        ("{\"bf16\": 3}", "autocast"),
        ("{}", "checkpointing"),
    ] {
        assert!(
            deepspeed::edited(json, &requests(asked)).is_err(),
            "{json} {asked}"
        );
    }
    assert_eq!(
        deepspeed::edited("{}", &requests("autocast")).as_deref(),
        Ok("{\"bf16\": {\"enabled\": true}}")
    );
}

#[test]
fn keys_of_accelerate_are_edited_in_place() {
    let edited = accelerate_config::edited(None, &requests("autocast")).expect("known");
    assert!(edited.contains("mixed_precision: bf16\n"), "{edited}");
    let yaml =
        "deepspeed_config:\n  zero_stage: 2\nmixed_precision: 'no' # so far\nnum_processes: 1\n";
    let asked = requests("autocast dtype=fp16 + accumulation steps=4");
    assert_eq!(
        accelerate_config::edited(Some(yaml), &asked).as_deref(),
        Ok(
            "deepspeed_config:\n  zero_stage: 2\n  gradient_accumulation_steps: 4\nmixed_precision: fp16\nnum_processes: 1\n"
        )
    );
    let refused = accelerate_config::edited(None, &requests("accumulation")).expect_err("no key");
    assert!(refused.reason.contains("Accelerator("), "{refused}");
}
