//! Whole logs: what is found in them, and what is not.

mod common;

use common::read;
use ghostgpu_explain::{Explanation, Kind, Log, Situation, Stage, explain};

const ERROR: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total \
capacity of 23.65 GiB of which 300.00 MiB is free. Including non-PyTorch memory, this process has 23.30 GiB \
memory in use. Of the allocated memory 22.50 GiB is allocated by PyTorch, and 250.00 MiB is reserved by \
PyTorch but unallocated.";

fn log_of(text: &str) -> Log {
    read(text.as_bytes(), usize::MAX)
}

fn explained(text: &str) -> Explanation {
    explain(&log_of(text)).expect("something is recognised")
}

/// A traceback through these calls, and the error.
fn traceback(frames: &[(&str, &str, &str)]) -> String {
    let mut text = "Traceback (most recent call last):\n".to_owned();
    for (file, function, code) in frames {
        text.push_str(&format!(
            "  File \"{file}\", line 7, in {function}\n    {code}\n"
        ));
    }
    text + ERROR
}

#[test]
fn text_that_only_resembles_a_failure_is_not_a_finding() {
    for text in [
        "If you get CUDA out of memory, lower the batch size.",
        "Tip: CUDA out of memory errors are common on small cards",
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm`",
        "OSError: [Errno 28] No space left on device: '/data/checkpoint.pt'",
        "INFO 01-28 16:08:46 [gpu_worker.py:358] Available KV cache memory: 18.78 GiB",
        "The process was Killed by me",
        "CUDA OOMs: 1            |        cudaMalloc retries: 1",
        "    raise ValueError(\"No available memory for the cache blocks. \"",
        "    if \"CUDA out of memory\" in str(error):",
        "exitcode  : 1 (pid: 4711)",
        "Process finished with exit code 0",
        "ncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nCuda failure 1 'invalid argument'",
        "memory: 5123 loss: 0.2",
        "WARNING: sending process 1 closing signal SIGTERM",
    ] {
        let log = log_of(text);
        assert!(log.findings.is_empty(), "{text}: {:?}", log.findings);
    }
}

#[test]
fn memory_that_rises_in_the_log_is_growth() {
    let prints: String = (1..450)
        .map(|step| format!("step {step} loss 0.5 memory: {} MiB\n", 9000 + step * 30))
        .collect();
    let answer = explained(&(prints + &traceback(&[("train.py", "train", "loss.backward()")])));
    let main = &answer.situations[0];
    assert_eq!(main.situation, Situation::Growth);
    assert!(
        main.reasons[0].contains("rises from 8.82 GiB (line 1)"),
        "{main:?}"
    );
    assert!(main.reasons[1].contains("after step 449"), "{main:?}");
    assert_eq!(answer.stage, Some(Stage::Backward));
}

#[test]
fn memory_that_stays_level_is_not_growth() {
    let prints: String = (1..450)
        .map(|step| format!("step {step} memory: {} MiB\n", 9000 + step % 5))
        .collect();
    let answer = explained(&(prints + ERROR));
    assert_eq!(answer.situations[0].situation, Situation::Activations);
}

#[test]
fn running_out_repeatedly_with_more_each_time_is_growth() {
    let text: String = (0..6)
        .map(|time| {
            format!(
                "WARNING: CUDA out of memory. Tried to allocate 50.00 MiB (GPU 0; 10.76 GiB total capacity; \
                 {}.00 GiB already allocated; 20.00 MiB free; 10.20 GiB reserved in total by PyTorch)\n",
                4 + time
            )
        })
        .collect();
    assert_eq!(explained(&text).situations[0].situation, Situation::Growth);
}

#[test]
fn the_traceback_tells_the_stage() {
    let library = "/v/lib/python3.11/site-packages/torch/nn/modules/module.py";
    let adam = "/v/lib/python3.11/site-packages/torch/optim/adamw.py";
    for (frames, situation) in [
        (
            vec![
                ("run.py", "main", "model = model.to(device)"),
                (library, "_apply", "fn(t)"),
            ],
            Situation::ModelDoesNotFit,
        ),
        (
            vec![
                ("run.py", "main", "opt.step()"),
                (
                    adam,
                    "_init_group",
                    "state[\"exp_avg\"] = torch.zeros_like(",
                ),
            ],
            Situation::OptimizerState,
        ),
        (
            vec![
                ("run.py", "fit", "self.validate()"),
                ("run.py", "validate", "out = net(x)"),
            ],
            Situation::Evaluation,
        ),
        (
            vec![("run.py", "train", "loss.backward()")],
            Situation::Activations,
        ),
        (vec![("run.py", "main", "y = f(x)")], Situation::Full),
    ] {
        let answer = explained(&traceback(&frames));
        assert_eq!(answer.situations[0].situation, situation, "{frames:?}");
    }
}

#[test]
fn a_traceback_in_json_is_located() {
    let text = traceback(&[("/w/train.py", "train", "loss.backward()")]);
    let escaped = text
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n");
    let answer = explained(&format!(
        "{{\"level\": \"error\", \"msg\": \"{escaped}\"}}\n"
    ));
    let traceback = answer.finding.traceback.expect("a traceback");
    assert_eq!(
        traceback.place().map(|frame| frame.file.as_str()),
        Some("/w/train.py")
    );
}

#[test]
fn a_chinese_console_is_read() {
    // `File "D:\项目\train.py", line 12, in main`, then `模型 = model.cuda()`, in GBK.
    let mut bytes = b"Traceback (most recent call last):\r\n  File \"D:\\\xCF\xEE\xC4\xBF\\train.py\", line 12, in main\r\n    \xC4\xA3\xD0\xCD = model.cuda()\r\n".to_vec();
    bytes.extend_from_slice(ERROR.as_bytes());
    bytes.extend_from_slice(b"\r\n\xCF\xD4\xB4\xE6\xB2\xBB\xD7\xE3\r\n");
    let answer = explain(&read(&bytes, 7)).expect("an answer");
    let place = answer
        .finding
        .traceback
        .as_ref()
        .and_then(|traceback| traceback.place());
    assert_eq!(
        place.map(|frame| frame.file.as_str()),
        Some("D:\\项目\\train.py")
    );
    assert_eq!(
        place.map(|frame| frame.code.as_str()),
        Some("模型 = model.cuda()")
    );
}

#[test]
fn lines_that_a_terminal_wrapped_are_shown_joined() {
    let line = format!("[rank0]: {ERROR}");
    let characters: Vec<char> = line.chars().collect();
    let cut: Vec<String> = characters
        .chunks(80)
        .map(|piece| piece.iter().collect())
        .collect();
    let answer = explained(&cut.join("\n"));
    assert!(
        answer
            .finding
            .text
            .starts_with("CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has")
    );
}

#[test]
fn several_ranks_are_summarised() {
    let lines = traceback(&[("train.py", "train", "loss.backward()")]);
    let mut text = String::new();
    for line in lines.lines() {
        for rank in [3, 0, 7] {
            text.push_str(&format!("[rank{rank}]: {line}\n"));
        }
    }
    let ranks = explained(&text).ranks.expect("several ranks");
    let names: Vec<&str> = ranks
        .failed
        .iter()
        .map(|failure| failure.name.as_str())
        .collect();
    assert_eq!(names, ["rank 3", "rank 0", "rank 7"]);
    assert!(!ranks.differ);
}

#[test]
fn the_most_informative_message_is_explained_and_the_others_are_listed() {
    let text = format!(
        "{ERROR}\nERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 3 (pid: 8) of binary: python\n"
    );
    let answer = explained(&text);
    assert_eq!(answer.finding.kind, Kind::CudaAllocator);
    assert_eq!(answer.others.len(), 1);
    assert_eq!(answer.others[0].kind, Kind::HostKillLikely);
}

#[test]
fn a_log_full_of_errors_is_bounded_and_its_end_is_read() {
    let mut text = String::new();
    for number in 0..6_000 {
        text.push_str(&ERROR.replace("512.00", &format!("{}.00", 20 + number % 2500)));
        text.push('\n');
    }
    text.push_str(&ERROR.replace("512.00", "7777.00"));
    let log = log_of(&text);
    assert!(log.findings.len() <= 256);
    assert!(log.left_out > 3_000);
    let last = |finding: &&ghostgpu_explain::Finding| {
        finding
            .figures
            .requested
            .is_some_and(|requested| requested.bytes == 7777 << 20)
    };
    assert!(log.findings.iter().any(|finding| last(&finding)));
}

#[test]
fn common_advice_that_does_not_help_is_named() {
    let useless = |text: &str| -> Vec<String> {
        let answer = explained(text);
        let all = answer.does_not_help.iter();
        all.map(|each| each.what.clone()).collect()
    };
    let splitting = "max_split_size_mb, expandable_segments".to_owned();
    let large = useless(&ERROR.replace("512.00", "900.00"));
    assert!(large.contains(&"torch.cuda.empty_cache()".to_owned()));
    assert!(large.contains(&splitting));
    // What is free and what is cached would have been enough together: settings may help.
    assert!(!useless(ERROR).contains(&splitting));
}

#[test]
fn every_kind_of_the_corpus_has_advice_with_commands() {
    for message in common::corpus() {
        let answer = explained(&message.text);
        assert!(!answer.advice.is_empty(), "{}", message.source);
        for advice in &answer.advice {
            assert!(
                !advice.command.is_empty() && !advice.command.contains('\n'),
                "{advice:?}"
            );
        }
        assert!(
            !answer.situations[0].reasons.is_empty(),
            "{}",
            message.source
        );
    }
}
