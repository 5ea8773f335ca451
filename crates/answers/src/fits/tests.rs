//! The answer in each situation, as a user sees it: on one screen, and with `--verbose`.

use std::path::Path;

use ghostgpu_cost::{HostCalls, Operation, Precision, Repeated, Stretch, Work};
use ghostgpu_device::Catalogue;
use ghostgpu_session::card_usage::CardUse;
use ghostgpu_session::{
    AllocatorPeaks, Coverage, Covered, NotReached, OomReport, ProcessReport, RefusedCall,
    StackFrame, TrainingPart,
};

use super::{FollowUps, add_peak_ranges, text_answer};
use crate::breakdown::tests::a_leaking_transformer;
use crate::fits::{Answer, Circumstances, Need};
use crate::style::{Detail, PLAIN, Style, assert_fits_one_screen};
use ghostgpu_plan::verdict::{OnCard, judge, need_seen_in};
use ghostgpu_plan::{KeepingLine, Smallest, StepGrowth};
use ghostgpu_recording::{DevicePeak, Verdict};
use ghostgpu_rehearse::{Ending, Findings, Memory, Run};
use ghostgpu_whatif::PeakRanges;

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
        moment: None,
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

fn run(ending: Ending, process: ProcessReport) -> Run {
    Run::new(
        ending,
        Findings {
            processes: vec![process],
            cards: vec![CardUse {
                used_bytes: 0,
                peak_bytes: 11_779_088_384,
            }],
            ..Findings::default()
        },
    )
}

fn answer_on(card: &str, run: &Run, need: Need) -> Answer {
    answer_with(card, run, need, None, 0)
}

fn answer_with(
    card: &str,
    run: &Run,
    need: Need,
    growth: Option<&StepGrowth>,
    reserve_bytes: u64,
) -> Answer {
    let card = Catalogue::builtin().find(card).expect("a card");
    let sheet = card.sheet();
    let uncertainty = card.uncertainty();
    let on_card = OnCard {
        sheet: &sheet,
        count: run.findings.cards.len(),
        uncertainty: uncertainty.as_ref(),
        reserve_bytes,
        margin: None,
        torch: None,
    };
    crate::fits::answer(
        run,
        judge(run, need.smallest(), growth, &on_card),
        need,
        &Circumstances {
            card: &sheet,
            card_count: run.findings.cards.len(),
            reserve_bytes,
            torch_version: Some("2.11.0+cu130"),
            torch_cuda: Some("13.0"),
            assumptions: &[],
        },
    )
}

/// The need of a run that fits, if no smaller one was searched for.
fn peak_of(run: &Run) -> Need {
    Need::Found(need_seen_in(run))
}

fn words(text: &str) -> Option<Vec<String>> {
    Some(text.split(' ').map(str::to_owned).collect())
}

fn follow_ups(card: &str) -> FollowUps {
    FollowUps {
        plan: words(&format!("ghostgpu plan --gpu {card} train.py")),
        largest_batch: words(&format!("ghostgpu max-batch --gpu {card} train.py")),
        page: words(&format!(
            "ghostgpu run --gpu {card} --report report.html train.py"
        )),
        lint: words("ghostgpu lint train.py"),
        longer: words(&format!("ghostgpu run --gpu {card} --budget 600s train.py")),
        unhidden: words(&format!(
            "env -u CUDA_VISIBLE_DEVICES ghostgpu run --gpu {card} train.py"
        )),
        rehearsed: words("train.py"),
    }
}

/// Both forms of an answer, after checking what must hold for all answers.
fn shown(answer: &Answer, memory: &Memory, follow_ups: &FollowUps) -> String {
    let with = |detail| text_answer(answer, memory, follow_ups, Style { detail, ..PLAIN });
    assert_eq!(with(Detail::Quiet).lines().count(), 1);
    let screen = with(Detail::Screen);
    assert_fits_one_screen(&screen);
    format!("{screen}\n--verbose\n{}", with(Detail::Everything))
}

fn report_on(card: &str, run: &Run, need: Need) -> String {
    shown(
        &answer_on(card, run, need),
        &Memory::Unwanted,
        &follow_ups(card),
    )
}

/// An answer of a job that fits a GeForce RTX 3060.
pub fn fitting() -> Answer {
    let run = run(Ending::Exited(0), process());
    answer_on("3060", &run, peak_of(&run))
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
    run.findings.work = [(run.findings.processes[0].pid, made_up_work())].into();
    insta::assert_snapshot!(report_on("3060", &run, peak_of(&run)));
}

/// A hundred products of 4096×4096 matrices in half precision.
fn made_up_work() -> Work {
    let operation = Operation::Product {
        m: 4096,
        n: 4096,
        k: 4096,
        batch: 1,
        precision: Precision::Half,
        is_aligned: true,
    };
    let host = HostCalls {
        with_graph: 100,
        ..HostCalls::default()
    };
    Work {
        step: 2,
        stretches: vec![Stretch {
            times: 1,
            host,
            operations: vec![Repeated {
                times: 100,
                operation,
            }],
        }],
    }
}

#[test]
fn a_step_time_is_predicted_for_the_card_to_two_digits() {
    let mut run = run(Ending::Exited(0), process());
    let predicted =
        |card: &str, run: &Run| answer_on(card, run, peak_of(run)).predicted_step_seconds;
    assert_eq!(predicted("3060", &run), None);
    run.findings.work = [(run.findings.processes[0].pid, made_up_work())].into();
    let slow = predicted("3060", &run).expect("a step was rehearsed");
    let quick = predicted("h200", &run).expect("a step was rehearsed");
    assert!(slow > 10.0 * quick, "{slow} {quick}");
    assert_eq!(
        slow,
        format!("{slow:.1e}").parse::<f64>().expect("a number")
    );
}

#[test]
fn peaks_that_depend_on_where_segments_lie_are_given_as_ranges() {
    let mut answer = fitting();
    let before = answer.assumptions.len();
    let ranges = PeakRanges {
        allocated_bytes: [2_296_016_896, 2_300_211_200],
        reserved_bytes: [2_489_319_424; 2],
    };
    add_peak_ranges(&mut answer, &ranges);
    assert_eq!(
        answer.peak_allocated_range_bytes,
        Some(ranges.allocated_bytes)
    );
    assert_eq!(
        answer.peak_reserved_range_bytes,
        Some(ranges.reserved_bytes)
    );
    assert_eq!(
        answer.assumptions[before..],
        [
            "the peak is 2,296,016,896 to 2,300,211,200 bytes allocated, depending on where the driver puts \
             segments, which differs from machine to machine"
        ]
    );
}

#[test]
fn a_job_that_does_not_fit() {
    let mut failed = process();
    failed.steps = 0;
    failed.stopped_by_step_limit = false;
    failed.peaks[0].retries = 1;
    failed.ooms = vec![oom("forward", true)];
    failed.exception = Some("OutOfMemoryError: CUDA out of memory.".to_owned());
    let need = Need::Found(Smallest {
        device_bytes: 15_053_881_344,
        allocated_bytes: Some(14_110_000_128),
        reserved_bytes: Some(14_501_806_080),
        comfortable_device_bytes: Some(16_053_881_344),
        flushes: Some(9),
        steps: 6,
        growth_bytes: 0,
        takes_smaller_workspaces: true,
        is_confirmed: true,
    });
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
    let run = run(Ending::Exited(0), recovered);
    insta::assert_snapshot!(report_on("3060", &run, peak_of(&run)));
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
    insta::assert_snapshot!(report_on("1080ti", &small, peak_of(&small)));
}

#[test]
fn several_cards_have_a_line_each() {
    let mut several = run(Ending::Exited(0), process());
    several.findings.cards.push(CardUse {
        used_bytes: 0,
        peak_bytes: 9_000_000_000,
    });
    insta::assert_snapshot!(report_on("3060", &several, peak_of(&several)));
}

#[test]
fn a_script_that_never_used_cuda() {
    let mut idle = run(Ending::Exited(0), ProcessReport::default());
    idle.findings.processes.clear();
    idle.findings.cards[0].peak_bytes = 0;
    insta::assert_snapshot!(report_on("3060", &idle, peak_of(&idle)));
}

#[test]
fn what_a_job_took_is_not_called_its_need() {
    let fits = run(Ending::Exited(0), process());
    let need = Need::NotLookedFor {
        took: need_seen_in(&fits),
        because: "it was not searched for (--no-retry)".to_owned(),
    };
    let answer = answer_on("3060", &fits, need);
    assert_eq!(answer.needed_device_bytes, None);
    assert_eq!(answer.needed_reserved_bytes, None);
    assert!(answer.headroom_bytes.is_some());
    let text = text_answer(&answer, &Memory::Unwanted, &FollowUps::default(), PLAIN);
    assert!(text.starts_with("fits           took "), "{text}");
}

#[test]
fn colour_marks_only_the_verdict_and_files_are_shown_from_here() {
    let mut failed = process();
    failed.ooms = vec![oom("forward", true)];
    failed.stopped_by_step_limit = false;
    let answer = answer_on(
        "3060",
        &run(Ending::Exited(1), failed),
        Need::Unknown {
            because: "it was not searched for (--no-retry)".to_owned(),
        },
    );
    let style = Style {
        has_colour: true,
        current_dir: Some(Path::new("/home/me/job")),
        ..PLAIN
    };
    for detail in [Detail::Quiet, Detail::Screen, Detail::Everything] {
        let style = Style { detail, ..style };
        let text = text_answer(&answer, &Memory::Unwanted, &FollowUps::default(), style);
        assert!(
            text.starts_with("\x1b[1;31mdoes not fit\x1b[0m   needs "),
            "{text}"
        );
        assert_eq!(text.matches('\x1b').count(), 2);
        let names_the_place = text.contains(" model.py:41 in forward\n");
        assert_eq!(names_the_place, detail != Detail::Quiet, "{text}");
    }
}

fn does_not_fit(stage: &str) -> ProcessReport {
    ProcessReport {
        steps: 0,
        stopped_by_step_limit: false,
        ooms: vec![oom(stage, true)],
        exception: Some("OutOfMemoryError: CUDA out of memory.".to_owned()),
        ..process()
    }
}

/// The need of a job that runs without flushes only on a larger card.
fn measured_with_flushes() -> Need {
    let Need::Found(smallest) = measured(11) else {
        return measured(11);
    };
    Need::Found(Smallest {
        comfortable_device_bytes: Some(13 << 30),
        flushes: Some(31),
        steps: 10,
        ..smallest
    })
}

fn measured(gib: u64) -> Need {
    Need::Found(Smallest {
        device_bytes: gib << 30,
        allocated_bytes: Some((gib << 30) - (300 << 20)),
        reserved_bytes: Some((gib << 30) - (100 << 20)),
        ..Smallest::default()
    })
}

#[test]
fn a_job_that_leaks_will_run_out() {
    let mut leaking = run(Ending::Exited(0), process());
    leaking.memory = Memory::Recorded(Box::new(a_leaking_transformer()));
    let growth = StepGrowth::of(&leaking);
    let answer = answer_with("t4", &leaking, peak_of(&leaking), growth.as_ref(), 0);
    if let Memory::Recorded(recording) = &mut leaking.memory {
        recording.about.answer = Some(answer.clone());
    }
    insta::assert_snapshot!(shown(&answer, &leaking.memory, &follow_ups("t4")));
}

#[test]
fn a_job_that_fits_and_does_not_leak() {
    let fitting = run(Ending::Exited(0), process());
    let answer = answer_on("t4", &fitting, peak_of(&fitting));
    let mut steady = a_leaking_transformer();
    steady.about.steps = 1;
    for card in &mut steady.cards {
        card.phases.retain(|phase| phase.step == 0);
    }
    let memory = Memory::Recorded(Box::new(steady));
    let screen = text_answer(&answer, &memory, &follow_ups("t4"), PLAIN);
    assert_fits_one_screen(&screen);
    insta::assert_snapshot!(screen);
}

/// Everything at once: a long name, a deep path, long code, growth, many assumptions.
#[test]
fn the_worst_ordinary_case_fits_one_screen() {
    let mut failed = does_not_fit("forward");
    let deep = "/home/somebody/projects/experiments/2026-11/very-long-names/src/package/models";
    failed.ooms[0].stack = vec![frame(
        &format!("{deep}/transformer_with_relative_positions.py"),
        1234,
        "forward_with_cross_attention",
        "hidden_states = self.cross_attention(self.norm(hidden_states), encoder_hidden_states)[0]",
        true,
    )];
    failed.assumptions = (1..10)
        .map(|line| {
            format!(
                "{deep}/masks.py:{line}: nonzero() or a boolean mask, 64x128: assumed that all \
                 8192 elements are selected (the largest case)"
            )
        })
        .collect();
    let card = "RTX PRO 6000 Blackwell Workstation Edition";
    let answer = answer_on(card, &run(Ending::Exited(1), failed), measured(139));
    let memory = Memory::Recorded(Box::new(a_leaking_transformer()));
    let follow_ups = FollowUps {
        plan: words(
            "ghostgpu plan --gpu pro6000 src/package/train.py --learning-rate 1e-4 --batch-size 64 \
             --weight-decay 0.1 --output results",
        ),
        ..FollowUps::default()
    };
    let screen = text_answer(&answer, &memory, &follow_ups, PLAIN);
    assert_fits_one_screen(&screen);
    insta::assert_snapshot!(screen);
}

#[test]
fn a_model_that_is_too_large_leads_to_a_card_that_has_enough() {
    let next = |stage: &str, gib: u64| {
        let failed = run(Ending::Exited(1), does_not_fit(stage));
        let answer = answer_on("3060", &failed, measured(gib));
        follow_ups("3060")
            .choose(&answer, false)
            .map(|next| next.words.join(" "))
    };
    let plan = Some("ghostgpu plan --gpu 3060 train.py".to_owned());
    assert_eq!(next("forward", 14), plan);
    let larger = next("moving the model", 70).expect("there are such cards");
    assert!(larger.starts_with("ghostgpu run --gpu "), "{larger}");
    assert!(larger.ends_with(" train.py"), "{larger}");
    assert_eq!(next("setup", 7000), None);
}

#[test]
fn memory_that_cuda_itself_did_not_find_is_named() {
    let mut overflowed = run(Ending::Exited(0), process());
    overflowed.capacity_bytes = Some(11 << 30);
    overflowed.findings.cards[0].peak_bytes = 12 << 30;
    insta::assert_snapshot!(report_on("3060", &overflowed, measured(12)));
}

#[test]
fn an_allocator_without_a_history_leaves_the_parts_unknown() {
    let answer = fitting();
    let memory = Memory::Unrecorded(
        "the allocator that the script chose (cudaMallocAsync) keeps no history of its blocks"
            .to_owned(),
    );
    insta::assert_snapshot!(shown(&answer, &memory, &follow_ups("3060")));
}

/// A training that was covered completely.
fn covering() -> ProcessReport {
    let part = |part, detail: &str| Covered {
        part,
        detail: detail.to_owned(),
    };
    ProcessReport {
        steps: 9,
        stopped_by_step_limit: true,
        coverage: Some(Coverage {
            covered: vec![
                part(TrainingPart::Steps, "9"),
                part(TrainingPart::LargestBatch, "16×512"),
                part(TrainingPart::SmallestBatch, "16×35"),
                part(TrainingPart::LastBatch, "8"),
                part(TrainingPart::Evaluation, "at train.py:41"),
                part(TrainingPart::Checkpoint, "at train.py:52"),
                part(TrainingPart::NextEpoch, "3 steps"),
            ],
            not_reached: Vec::new(),
            is_shortened: true,
            is_training_shortened: true,
            left_out_steps: None,
            later_passes_are_alike: false,
            do_batches_vary: false,
            growth_cut_short: None,
        }),
        ..process()
    }
}

fn without_evaluation() -> ProcessReport {
    let mut process = covering();
    if let Some(coverage) = &mut process.coverage {
        coverage.covered.truncate(3);
        coverage.not_reached = [TrainingPart::Evaluation, TrainingPart::NextEpoch]
            .map(|part| NotReached {
                part,
                because: "the time budget of 60 s was spent".to_owned(),
            })
            .to_vec();
    }
    process
}

fn leak() -> StepGrowth {
    StepGrowth {
        bytes_per_step: 30 << 20,
        peak_bytes_per_step: 30 << 20,
        line: Some(KeepingLine {
            place: "train.py:20 in main".to_owned(),
            kept_in: "losses".to_owned(),
            bytes_per_step: 30 << 20,
        }),
    }
}

/// An answer for each verdict, on a GeForce RTX 3060 or another card.
fn one_of_each_degree() -> Vec<(&'static str, Answer)> {
    let completed = |process: ProcessReport| run(Ending::Exited(0), process);
    let smaller = |run: &Run, device_bytes: u64| {
        Need::Found(Smallest {
            device_bytes,
            comfortable_device_bytes: Some(run.findings.peak_device_bytes()),
            flushes: Some(12),
            steps: 10,
            ..need_seen_in(run)
        })
    };
    let fits = completed(covering());
    let flushing = completed(ProcessReport {
        peaks: vec![AllocatorPeaks {
            retries: 9,
            ..process().peaks[0]
        }],
        ..covering()
    });
    let idle = Run::new(
        Ending::Exited(0),
        Findings {
            processes: vec![ProcessReport {
                peaks: Vec::new(),
                visible_devices: Some("5".to_owned()),
                torch_cuda: Some("13.0".to_owned()),
                ..process()
            }],
            cards: vec![CardUse {
                used_bytes: 0,
                peak_bytes: 0,
            }],
            ..Findings::default()
        },
    );
    let failed = run(Ending::Exited(1), does_not_fit("forward"));
    let unreached = completed(without_evaluation());
    vec![
        ("3060", answer_on("3060", &fits, smaller(&fits, 9 << 30))),
        (
            "3060",
            answer_with("3060", &fits, smaller(&fits, 9 << 30), None, 1 << 30),
        ),
        (
            "3060",
            answer_on("3060", &flushing, measured_with_flushes()),
        ),
        (
            "3060",
            answer_with("3060", &fits, peak_of(&fits), None, 650 << 20),
        ),
        (
            "t4",
            answer_with("t4", &fits, peak_of(&fits), Some(&leak()), 0),
        ),
        ("3060", answer_on("3060", &failed, measured(14))),
        ("3060", answer_on("3060", &idle, peak_of(&idle))),
        ("1080ti", answer_on("1080ti", &fits, peak_of(&fits))),
        ("3060", answer_on("3060", &unreached, peak_of(&unreached))),
    ]
}

#[test]
fn every_degree_is_told_in_one_line_on_one_screen_in_full_and_as_json() {
    let mut all = String::new();
    let mut seen = Vec::new();
    for (card, answer) in one_of_each_degree() {
        let quiet = Style {
            detail: Detail::Quiet,
            ..PLAIN
        };
        let quiet = text_answer(&answer, &Memory::Unwanted, &follow_ups(card), quiet);
        let fields = serde_json::to_value(&answer).expect("an answer");
        let fields = [
            "verdict",
            "fits",
            "reason",
            "headroom_bytes",
            "margin_bytes",
            "reserve_bytes",
            "needed_device_bytes",
            "needed_reserved_bytes",
            "comfortable_device_bytes",
            "cache_flushes_per_step",
            "needed_flushes_per_step",
            "exit_code",
        ]
        .map(|name| format!("{name}: {}\n", fields[name]));
        let text = shown(&answer, &Memory::Unwanted, &follow_ups(card));
        all.push_str(&format!("{quiet}\n{text}\n{}\n----\n", fields.concat()));
        seen.push(answer.verdict);
    }
    seen.dedup();
    assert_eq!(
        seen,
        [
            Verdict::Fits,
            Verdict::FitsTightly,
            Verdict::WillRunOut,
            Verdict::DoesNotFit,
            Verdict::DidNotUseCard,
            Verdict::CannotRun,
            Verdict::NotKnown,
        ]
    );
    insta::assert_snapshot!(all);
}

/// Everything that a screen can hold: a long name, coverage, what was not reached, flushes, all parts, growth and
/// many assumptions.
#[test]
fn the_fullest_screen_of_each_degree_is_one_screen() {
    let memory = Memory::Recorded(Box::new(a_leaking_transformer()));
    let card = "RTX PRO 6000 Blackwell Workstation Edition";
    let long = FollowUps {
        page: words(&format!(
            "ghostgpu run --gpu pro6000 --report report.html src/package/train.py {}",
            "--learning-rate 1e-4 ".repeat(6)
        )),
        ..follow_ups("pro6000")
    };
    for (_, mut answer) in one_of_each_degree() {
        answer.gpu.name = format!("NVIDIA {card}");
        answer.gpu.count = 8;
        answer.devices = vec![DevicePeak::default(); 8];
        answer.recovered_ooms = vec![oom("backward", false)];
        answer.retries = 40;
        answer.comfortable_device_bytes = Some(90 << 30);
        answer.needed_flushes_per_step = Some(3.5);
        answer.not_reached = vec![
            NotReached {
                part: TrainingPart::Checkpoint,
                because: "the time budget of 60 s was spent on the batches before it".to_owned(),
            };
            3
        ];
        answer.assumptions = (0..9)
            .map(|line| format!("masks.py:{line}: nonzero() is assumed to find everything"))
            .collect();
        let screen = text_answer(&answer, &memory, &long, PLAIN);
        assert_fits_one_screen(&screen);
        assert!(screen.contains("more: --verbose"), "{screen}");
    }
}
