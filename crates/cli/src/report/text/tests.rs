//! The report in each situation, as a user would see it.

use std::path::Path;

use ghostgpu_device::Catalogue;
use ghostgpu_session::ledger::CardUse;
use ghostgpu_session::{AllocatorPeaks, OomReport, ProcessReport, RefusedCall, StackFrame};

use super::{Look, text_report};
use crate::answer::{Answer, Circumstances, Need};
use crate::findings::Findings;
use crate::judge::Rehearsal;
use crate::process::{Cause, Ending, Supervised};
use crate::recorded_memory::Memory;

const PLAIN: Look = Look {
    has_colour: false,
    current_dir: None,
};

fn frame(file: &str, line: u64, function: &str, source: &str, is_user_code: bool) -> StackFrame {
    StackFrame {
        file: file.to_owned(),
        line,
        function: function.to_owned(),
        source: Some(source.to_owned()),
        is_user_code,
    }
}

fn stack() -> Vec<StackFrame> {
    vec![
        frame("/home/me/job/train.py", 88, "<module>", "main()", true),
        frame(
            "/home/me/job/model.py",
            41,
            "forward",
            "    x = self.attn(x)",
            true,
        ),
        frame(
            "/site-packages/torch/nn/functional.py",
            6010,
            "softmax",
            "ret = input.softmax(dim)",
            false,
        ),
    ]
}

fn oom(stage: &str, is_fatal: bool) -> OomReport {
    OomReport {
        device: 0,
        requested_bytes: 1_610_612_736,
        message: "CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of \
                  11.63 GiB of which 650.00 MiB is free. Including non-PyTorch memory, this process \
                  has 10.97 GiB memory in use."
            .to_owned(),
        step: 0,
        stage: stage.to_owned(),
        stack: stack(),
        is_fatal,
    }
}

fn process() -> ProcessReport {
    ProcessReport {
        pid: 7,
        torch: Some("2.11.0+cu130".to_owned()),
        code_architectures: ["sm_75", "sm_80", "sm_86", "sm_90"]
            .map(str::to_owned)
            .to_vec(),
        steps: 3,
        stopped_by_step_limit: true,
        peaks: vec![AllocatorPeaks {
            device: 0,
            peak_allocated_bytes: 10_866_913_280,
            peak_reserved_bytes: 11_253_317_632,
            retries: 0,
            allocations: 1_234,
        }],
        ..ProcessReport::default()
    }
}

fn run(ending: Ending, process: ProcessReport) -> Rehearsal {
    Rehearsal {
        capacity_bytes: None,
        supervised: Supervised {
            ending,
            cause: Cause::Own,
        },
        findings: Findings {
            processes: vec![process],
            cards: vec![CardUse {
                used_bytes: 0,
                peak_bytes: 11_779_088_384,
            }],
            ..Findings::default()
        },
    }
}

fn report_on(card: &str, run: &Rehearsal, need: Need) -> String {
    let sheet = Catalogue::builtin().find(card).expect("a card").sheet();
    let answer = Answer::new(
        run,
        need,
        &Circumstances {
            card: &sheet,
            card_count: run.findings.cards.len(),
            torch_version: Some("2.11.0+cu130"),
            torch_cuda: Some("13.0"),
            assumptions: &[],
        },
    );
    text_report(&answer, &Memory::Unwanted, PLAIN)
}

#[test]
fn a_job_that_fits() {
    let mut run = run(Ending::Exited(0), process());
    run.findings.processes[0].assumptions = vec![
        "cuDNN's workspace sizes come from the installed cuDNN 9.19.0, asked without a device"
            .to_owned(),
        "`torch.nonzero` at model.py:12 was assumed to find every second element, because its real \
         result depends on values that were never computed"
            .to_owned(),
    ];
    insta::assert_snapshot!(report_on("3060", &run, Need::Peak));
}

#[test]
fn a_job_that_does_not_fit() {
    let mut failed = process();
    failed.steps = 0;
    failed.stopped_by_step_limit = false;
    failed.peaks[0].retries = 1;
    failed.ooms = vec![oom("forward", true)];
    failed.exception = Some("OutOfMemoryError: CUDA out of memory.".to_owned());
    let need = Need::Measured {
        device_bytes: 15_053_881_344,
        allocated_bytes: Some(14_110_000_128),
        reserved_bytes: Some(14_501_806_080),
    };
    insta::assert_snapshot!(report_on("3060", &run(Ending::Exited(1), failed), need));
}

#[test]
fn a_need_that_could_not_be_found_says_why() {
    let mut failed = process();
    failed.steps = 0;
    failed.stopped_by_step_limit = false;
    failed.ooms = vec![oom("moving the model", true)];
    let need = Need::Unknown {
        because: "the second run, with unlimited memory, ended with KeyError: 'x'".to_owned(),
    };
    insta::assert_snapshot!(report_on("3060", &run(Ending::Exited(1), failed), need));
}

#[test]
fn a_script_that_recovered() {
    let mut recovered = process();
    recovered.stopped_by_step_limit = false;
    recovered.ooms = vec![oom("backward", false), oom("backward", false)];
    insta::assert_snapshot!(report_on(
        "3060",
        &run(Ending::Exited(0), recovered),
        Need::Peak
    ));
}

#[test]
fn a_script_that_failed_by_itself() {
    let mut failed = process();
    failed.steps = 1;
    failed.stopped_by_step_limit = false;
    failed.exception = Some("KeyError: 'labels'".to_owned());
    let need = Need::Unknown {
        because: "the script did not run to its end".to_owned(),
    };
    insta::assert_snapshot!(report_on("3060", &run(Ending::Exited(1), failed), need));
}

#[test]
fn a_script_that_was_refused_a_call() {
    let mut refused = process();
    refused.steps = 0;
    refused.stopped_by_step_limit = false;
    refused.refused = vec![RefusedCall {
        function: "cufftExecC2C".to_owned(),
        stack: stack(),
    }];
    let need = Need::Unknown {
        because: "the script did not run to its end".to_owned(),
    };
    insta::assert_snapshot!(report_on("3060", &run(Ending::Exited(1), refused), need));
}

#[test]
fn a_card_that_torch_has_no_code_for() {
    let mut small = run(Ending::Exited(0), process());
    small.findings.processes[0].peaks[0].peak_allocated_bytes = 5_491_072_512;
    small.findings.processes[0].peaks[0].peak_reserved_bytes = 5_607_784_448;
    small.findings.cards[0].peak_bytes = 6_000_000_000;
    insta::assert_snapshot!(report_on("1080ti", &small, Need::Peak));
}

#[test]
fn several_cards_have_a_line_each() {
    let mut several = run(Ending::Exited(0), process());
    several.findings.cards.push(CardUse {
        used_bytes: 0,
        peak_bytes: 9_000_000_000,
    });
    insta::assert_snapshot!(report_on("3060", &several, Need::Peak));
}

#[test]
fn a_script_that_never_used_cuda() {
    let mut idle = run(Ending::Exited(0), ProcessReport::default());
    idle.findings.processes.clear();
    idle.findings.cards[0].peak_bytes = 0;
    insta::assert_snapshot!(report_on("3060", &idle, Need::Peak));
}

#[test]
fn colour_marks_only_the_verdict_and_files_are_shown_from_here() {
    let mut failed = process();
    failed.ooms = vec![oom("forward", true)];
    failed.stopped_by_step_limit = false;
    let sheet = Catalogue::builtin().find("3060").expect("a card").sheet();
    let answer = Answer::new(
        &run(Ending::Exited(1), failed),
        Need::Unknown {
            because: "it was not looked for (--no-retry)".to_owned(),
        },
        &Circumstances {
            card: &sheet,
            card_count: 1,
            torch_version: None,
            torch_cuda: None,
            assumptions: &[],
        },
    );
    let report = text_report(
        &answer,
        &Memory::Unwanted,
        Look {
            has_colour: true,
            current_dir: Some(Path::new("/home/me/job")),
        },
    );
    assert!(
        report.starts_with("fits           \x1b[1;31mno\x1b[0m: "),
        "{report}"
    );
    assert_eq!(report.matches('\x1b').count(), 2);
    assert!(report.contains(", at model.py:41 in forward\n"), "{report}");
}
