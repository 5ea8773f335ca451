//! One case for each verdict, and one for each pair of reasons whose order matters.

use std::path::PathBuf;

use ghostgpu_device::{Catalogue, DeviceSheet, Uncertainty};
use ghostgpu_rehearse::{Ending, Findings};
use ghostgpu_session::card_usage::{CardUse, ProcessUse};
use ghostgpu_session::{AllocatorPeaks, Covered, OomReport};
use ghostgpu_whatif::{History, Known};

use super::*;
use crate::step_growth::KeepingLine;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// What happened in a simulated run on a card of 10 GiB; by default it trains for ten steps and fits.
#[derive(Clone)]
struct Seen {
    is_out_of_memory: bool,
    exit_code: i32,
    peak_bytes: u64,
    allocations: u64,
    flushes: u64,
    architectures: &'static str,
    visible_devices: Option<&'static str>,
    torch_cuda: Option<&'static str>,
    covered: Vec<(TrainingPart, &'static str)>,
    not_reached: Vec<TrainingPart>,
    has_report: bool,
    is_stopped: bool,
    is_shortened: bool,
    do_batches_vary: bool,
    left_out_steps: Option<u64>,
    growth_bytes: u64,
    is_copied: bool,
    reserve_bytes: u64,
    margin: Option<Margin>,
    uncertain_bytes: Option<u64>,
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            is_out_of_memory: false,
            exit_code: 0,
            peak_bytes: 4 * GIB,
            allocations: 100,
            flushes: 0,
            architectures: "sm_80 sm_86",
            visible_devices: None,
            torch_cuda: Some("13.0"),
            covered: Vec::new(),
            not_reached: Vec::new(),
            has_report: true,
            is_stopped: true,
            is_shortened: false,
            do_batches_vary: false,
            left_out_steps: None,
            growth_bytes: 0,
            is_copied: false,
            reserve_bytes: 0,
            margin: None,
            uncertain_bytes: None,
        }
    }
}

fn sheet() -> DeviceSheet {
    let card = Catalogue::builtin().find("3060").expect("a card");
    card.sheet_with_total(10 * GIB)
}

impl Seen {
    fn run(&self) -> Run {
        let oom = OomReport {
            device: 0,
            requested_bytes: 1,
            message: String::new(),
            step: 1,
            stage: "forward".to_owned(),
            stack: Vec::new(),
            is_fatal: true,
            moment: None,
        };
        let coverage = Coverage {
            is_shortened: self.is_shortened,
            is_training_shortened: self.is_shortened,
            left_out_steps: self.left_out_steps,
            later_passes_are_alike: false,
            do_batches_vary: self.do_batches_vary,
            growth_cut_short: None,
            covered: self
                .covered
                .iter()
                .map(|(part, detail)| Covered {
                    part: *part,
                    detail: (*detail).to_owned(),
                })
                .collect(),
            not_reached: self
                .not_reached
                .iter()
                .map(|part| NotReached {
                    part: *part,
                    because: "the time budget of 60 s was spent".to_owned(),
                })
                .collect(),
        };
        let process = ProcessReport {
            torch: Some("2.11.0".to_owned()),
            torch_cuda: self.torch_cuda.map(str::to_owned),
            code_architectures: self.architectures.split(' ').map(str::to_owned).collect(),
            steps: 10,
            stopped_by_step_limit: self.is_stopped,
            peaks: vec![AllocatorPeaks {
                peak_reserved_bytes: self.peak_bytes,
                retries: self.flushes,
                allocations: self.allocations,
                ..AllocatorPeaks::default()
            }],
            ooms: self.is_out_of_memory.then_some(oom).into_iter().collect(),
            visible_devices: self.visible_devices.map(str::to_owned),
            coverage: Some(coverage),
            ..ProcessReport::default()
        };
        Run::new(
            Ending::Exited(self.exit_code),
            Findings {
                processes: self.has_report.then_some(process).into_iter().collect(),
                cards: vec![CardUse {
                    used_bytes: 0,
                    peak_bytes: self.peak_bytes,
                }],
                ..Findings::default()
            },
        )
    }

    fn judged(&self) -> Judgement {
        let run = self.run();
        let sheet = sheet();
        let uncertainty = self.uncertain_bytes.map(|bytes| Uncertainty {
            bytes,
            because: "its libraries were not measured on such a card".to_owned(),
        });
        let card = OnCard {
            sheet: &sheet,
            count: 1,
            uncertainty: uncertainty.as_ref(),
            reserve_bytes: self.reserve_bytes,
            margin: self.margin,
            torch: None,
        };
        let need = need_seen_in(&run);
        let growth = StepGrowth {
            bytes_per_step: self.growth_bytes,
            peak_bytes_per_step: self.growth_bytes * if self.is_copied { 2 } else { 1 },
            line: Some(KeepingLine {
                place: "train.py:20 in main".to_owned(),
                kept_in: "losses".to_owned(),
                bytes_per_step: self.growth_bytes,
            }),
        };
        judge(&run, Some(&need), Some(&growth), &card)
    }
}

#[test]
fn every_degree_has_its_reason() {
    let cases = [
        (Seen::default(), Verdict::Fits, "6.00 GiB (60 %) to spare"),
        (
            Seen {
                reserve_bytes: 2 * GIB,
                ..Seen::default()
            },
            Verdict::Fits,
            "4.00 GiB (50 %) to spare",
        ),
        (
            Seen {
                flushes: 9,
                ..Seen::default()
            },
            Verdict::FitsTightly,
            "PyTorch flushes its cache 0.9 times a step, which is slow",
        ),
        // A flush in the first step, and one after the end of an epoch.
        (
            Seen {
                flushes: 2,
                ..Seen::default()
            },
            Verdict::Fits,
            "6.00 GiB (60 %) to spare",
        ),
        // The same with batches that differ in size, on a nearly full card.
        (
            Seen {
                flushes: 2,
                do_batches_vary: true,
                peak_bytes: 10 * GIB - 20 * MIB,
                ..Seen::default()
            },
            Verdict::FitsTightly,
            "20.00 MiB to spare is little where batches differ in size: in another order they may need more",
        ),
        // The same where the rehearsed steps left PyTorch's cache alone.
        (
            Seen {
                do_batches_vary: true,
                peak_bytes: 10 * GIB - 20 * MIB,
                ..Seen::default()
            },
            Verdict::FitsTightly,
            "20.00 MiB to spare is little where batches differ in size: in another order they may need more",
        ),
        // There is enough left for another order, or no more batches are to come.
        (
            Seen {
                flushes: 2,
                do_batches_vary: true,
                ..Seen::default()
            },
            Verdict::Fits,
            "6.00 GiB (60 %) to spare",
        ),
        (
            Seen {
                flushes: 2,
                do_batches_vary: true,
                is_stopped: false,
                peak_bytes: 10 * GIB,
                ..Seen::default()
            },
            Verdict::Fits,
            "0 bytes (0 %) to spare",
        ),
        (
            Seen {
                peak_bytes: 10 * GIB - 20 * MIB,
                uncertain_bytes: Some(46 * MIB),
                ..Seen::default()
            },
            Verdict::FitsTightly,
            "20.00 MiB to spare is less than the margin of 46.00 MiB: its libraries were not measured on such a card",
        ),
        // Full to the last byte, on a card whose figures were measured.
        (
            Seen {
                peak_bytes: 10 * GIB,
                ..Seen::default()
            },
            Verdict::Fits,
            "0 bytes (0 %) to spare",
        ),
        (
            Seen {
                margin: Some(Margin::Percent(70.0)),
                ..Seen::default()
            },
            Verdict::FitsTightly,
            "6.00 GiB to spare is less than the margin of 7.00 GiB: --margin asks for it",
        ),
        (
            Seen {
                margin: Some(Margin::Bytes(0)),
                peak_bytes: 10 * GIB - MIB,
                uncertain_bytes: Some(46 * MIB),
                ..Seen::default()
            },
            Verdict::Fits,
            "1.00 MiB (0.0 %) to spare",
        ),
        (
            Seen {
                growth_bytes: 30 * MIB,
                ..Seen::default()
            },
            Verdict::WillRunOut,
            "the card is full after about 204 more steps: each keeps 30.00 MiB more from train.py:20 in main, kept in losses",
        ),
        // A list that gets one number per step.
        (
            Seen {
                growth_bytes: 512,
                ..Seen::default()
            },
            Verdict::Fits,
            "6.00 GiB (60 %) to spare",
        ),
        (
            Seen {
                growth_bytes: 30 * MIB,
                peak_bytes: GIB / 2,
                ..Seen::default()
            },
            Verdict::WillRunOut,
            "the card is full after about 324 more steps: each keeps 30.00 MiB more from train.py:20 in main, kept in losses",
        ),
        // The script ran to its end, so there are no more steps.
        (
            Seen {
                growth_bytes: 30 * MIB,
                is_stopped: false,
                ..Seen::default()
            },
            Verdict::Fits,
            "6.00 GiB (60 %) to spare",
        ),
        // It ran to its end only because its passes were shortened.
        (
            Seen {
                growth_bytes: 30 * MIB,
                is_stopped: false,
                is_shortened: true,
                ..Seen::default()
            },
            Verdict::WillRunOut,
            "the card is full after about 204 more steps: each keeps 30.00 MiB more from train.py:20 in main, kept in losses",
        ),
        (
            Seen {
                growth_bytes: 30 * MIB,
                is_stopped: false,
                is_shortened: true,
                left_out_steps: Some(300),
                ..Seen::default()
            },
            Verdict::WillRunOut,
            "the card is full after about 204 more steps: each keeps 30.00 MiB more from train.py:20 in main, kept in losses",
        ),
        // The training ends before the card is full, but its growth reduces the headroom.
        (
            Seen {
                growth_bytes: 30 * MIB,
                is_stopped: false,
                is_shortened: true,
                left_out_steps: Some(100),
                ..Seen::default()
            },
            Verdict::Fits,
            "3.07 GiB (31 %) to spare",
        ),
        // One tensor that each step copies into a longer one: while it does, both exist.
        (
            Seen {
                growth_bytes: 30 * MIB,
                is_copied: true,
                is_stopped: false,
                is_shortened: true,
                left_out_steps: Some(100),
                ..Seen::default()
            },
            Verdict::Fits,
            "144.00 MiB (1 %) to spare",
        ),
        (
            Seen {
                growth_bytes: 30 * MIB,
                is_copied: true,
                ..Seen::default()
            },
            Verdict::WillRunOut,
            "the card is full after about 102 more steps: each keeps 30.00 MiB more from train.py:20 in main, kept in losses",
        ),
        (
            Seen {
                is_out_of_memory: true,
                exit_code: 1,
                ..Seen::default()
            },
            Verdict::DoesNotFit,
            "it runs out of memory in step 2 (forward)",
        ),
        (
            Seen {
                allocations: 0,
                peak_bytes: 0,
                visible_devices: Some("5"),
                ..Seen::default()
            },
            Verdict::DidNotUseCard,
            "CUDA_VISIBLE_DEVICES=5 hides every card from the script",
        ),
        (
            Seen {
                allocations: 0,
                peak_bytes: 0,
                torch_cuda: None,
                ..Seen::default()
            },
            Verdict::DidNotUseCard,
            "torch 2.11.0 is built without CUDA",
        ),
        // It asked for the card's name and trained elsewhere, so there is only a context.
        (
            Seen {
                allocations: 0,
                peak_bytes: 100 * MIB,
                visible_devices: Some("0"),
                ..Seen::default()
            },
            Verdict::DidNotUseCard,
            "the script put nothing on the card",
        ),
        // A library other than PyTorch has memory on the card.
        (
            Seen {
                allocations: 0,
                ..Seen::default()
            },
            Verdict::Fits,
            "6.00 GiB (60 %) to spare",
        ),
        (
            Seen {
                architectures: "sm_90 sm_100",
                ..Seen::default()
            },
            Verdict::CannotRun,
            "torch 2.11.0 has no code for compute capability 8.6 (it has sm_90, sm_100), so the script would stop at its first kernel",
        ),
        (
            Seen {
                not_reached: vec![TrainingPart::Checkpoint, TrainingPart::Evaluation],
                ..Seen::default()
            },
            Verdict::NotKnown,
            "evaluation was not reached: the time budget of 60 s was spent",
        ),
        (
            Seen {
                not_reached: vec![TrainingPart::Steps],
                ..Seen::default()
            },
            Verdict::NotKnown,
            "no optimizer step was reached: the time budget of 60 s was spent",
        ),
        // A part that is not decisive.
        (
            Seen {
                not_reached: vec![TrainingPart::Checkpoint, TrainingPart::SmallestBatch],
                ..Seen::default()
            },
            Verdict::Fits,
            "6.00 GiB (60 %) to spare",
        ),
        (
            Seen {
                not_reached: vec![TrainingPart::NextEpoch],
                covered: vec![(TrainingPart::EndOfScript, "")],
                ..Seen::default()
            },
            Verdict::NotKnown,
            "the next epoch was not reached: the time budget of 60 s was spent",
        ),
        (
            Seen {
                has_report: false,
                ..Seen::default()
            },
            Verdict::NotKnown,
            "no process of the script reported (was python started with -I, -S or -E, or killed?)",
        ),
        (
            Seen {
                exit_code: 7,
                is_stopped: false,
                ..Seen::default()
            },
            Verdict::ScriptFailed,
            "the script failed with exit code 7",
        ),
    ];
    for (seen, verdict, reason) in cases {
        let judged = seen.judged();
        assert_eq!((judged.verdict, judged.reason.as_str()), (verdict, reason));
    }
}

#[test]
fn what_is_certain_comes_before_what_is_not() {
    let no_code = Seen {
        architectures: "sm_90",
        ..Seen::default()
    };
    let out_of_memory = Seen {
        is_out_of_memory: true,
        exit_code: 1,
        ..Seen::default()
    };
    let not_reached = vec![TrainingPart::Evaluation];
    let cases = [
        (
            "no card was used, so that its code does not matter",
            Seen {
                allocations: 0,
                peak_bytes: 0,
                ..no_code.clone()
            },
            Verdict::DidNotUseCard,
        ),
        (
            "what has no code cannot run, whatever its memory",
            Seen {
                is_out_of_memory: true,
                exit_code: 1,
                ..no_code.clone()
            },
            Verdict::CannotRun,
        ),
        ("what has no code does not fit", no_code, Verdict::CannotRun),
        (
            "out of memory is certain, whatever was not reached",
            Seen {
                not_reached: not_reached.clone(),
                growth_bytes: GIB,
                ..out_of_memory
            },
            Verdict::DoesNotFit,
        ),
        (
            "a card that will be full is full, whatever was not reached",
            Seen {
                not_reached: not_reached.clone(),
                growth_bytes: 30 * MIB,
                ..Seen::default()
            },
            Verdict::WillRunOut,
        ),
        (
            "growth is worse than flushes",
            Seen {
                flushes: 10,
                growth_bytes: 30 * MIB,
                ..Seen::default()
            },
            Verdict::WillRunOut,
        ),
        (
            "an evaluation that was not reached may not fit at all",
            Seen {
                flushes: 10,
                not_reached,
                ..Seen::default()
            },
            Verdict::NotKnown,
        ),
        (
            "a script that fails says nothing about its card",
            Seen {
                exit_code: 1,
                is_stopped: false,
                allocations: 0,
                peak_bytes: 0,
                ..Seen::default()
            },
            Verdict::ScriptFailed,
        ),
    ];
    for (why, seen, verdict) in cases {
        assert_eq!(seen.judged().verdict, verdict, "{why}");
    }
}

#[test]
fn headroom_is_what_need_and_reserve_leave_and_unknown_if_the_job_does_not_fit() {
    let left = |seen: Seen| seen.judged().headroom_bytes;
    assert_eq!(left(Seen::default()), Some(6 * GIB));
    let shared = Seen {
        reserve_bytes: 5 * GIB,
        ..Seen::default()
    };
    assert_eq!(left(shared), Some(GIB));
    let too_large = Seen {
        is_out_of_memory: true,
        ..Seen::default()
    };
    assert_eq!(left(too_large), None);
    let unreached = Seen {
        not_reached: vec![TrainingPart::Evaluation],
        ..Seen::default()
    };
    assert_eq!(left(unreached), None);
}

#[test]
fn flushes_per_step_are_those_of_the_process_with_the_most() {
    let flushing = Seen {
        flushes: 25,
        ..Seen::default()
    };
    assert_eq!(flushing.judged().flushes_per_step, Some(2.5));
}

#[test]
fn a_job_that_would_run_out_with_segments_elsewhere_fits_tightly() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let file = folder.join("../../ground_truth/allocator/h200/unet+default.pickle.gz");
    let snapshot = ghostgpu_snapshot::open(&file).expect("a recording");
    let history = History::of(&snapshot, 0, Known::default()).expect("a history");
    let least = history.smallest_memory().expect("it ended");
    let mut run = Seen::default().run();
    run.history = Some(Box::new(history));
    let mut judged = |memory_bytes: u64, flushes: u64| {
        run.findings.processes[0].peaks[0] = AllocatorPeaks {
            peak_reserved_bytes: memory_bytes,
            allocations: 100,
            retries: flushes,
            ..AllocatorPeaks::default()
        };
        run.findings.cards[0].peak_bytes = memory_bytes;
        run.findings.process_use = vec![ProcessUse {
            process: run.findings.processes[0].pid,
            device: 0,
            used_bytes: 0,
            peak_bytes: memory_bytes,
            at_card_peak_bytes: memory_bytes,
        }];
        let sheet = DeviceSheet {
            total_bytes: memory_bytes,
            ..sheet()
        };
        let card = OnCard {
            sheet: &sheet,
            count: 1,
            uncertainty: None,
            reserve_bytes: 0,
            margin: None,
            torch: None,
        };
        judge(&run, Some(&need_seen_in(&run)), None, &card).verdict
    };
    assert_eq!(judged(least, 2), Verdict::Fits);
    // It completed here, but in a replay with the host's memory elsewhere it runs out.
    assert_eq!(judged(least - 64 * MIB, 2), Verdict::FitsTightly);
    // If PyTorch never had to flush its cache, nothing depends on addresses.
    assert_eq!(judged(least - 64 * MIB, 0), Verdict::Fits);
}

#[test]
fn a_job_whose_growth_was_not_rehearsed_to_its_end_is_not_said_to_fit() {
    let seen = Seen {
        is_shortened: true,
        ..Seen::default()
    };
    let mut run = seen.run();
    let sentence = "memory grows by 262,144 bytes with each batch at train.py:6, and the time budget allowed for 4 of 313";
    let coverage = run.findings.processes[0].coverage.as_mut();
    coverage.expect("a coverage").growth_cut_short = Some(sentence.to_owned());
    let sheet = sheet();
    let card = OnCard {
        sheet: &sheet,
        count: 1,
        uncertainty: None,
        reserve_bytes: 0,
        margin: None,
        torch: None,
    };
    let judged = judge(&run, Some(&need_seen_in(&run)), None, &card);
    assert_eq!(
        (judged.verdict, judged.reason.as_str()),
        (Verdict::NotKnown, sentence)
    );
    // Growth that comes from a line in every step is extrapolated instead.
    let growth = StepGrowth {
        bytes_per_step: 8192,
        peak_bytes_per_step: 8192,
        line: None,
    };
    let extrapolated = judge(&run, Some(&need_seen_in(&run)), Some(&growth), &card);
    assert_ne!(extrapolated.verdict, Verdict::NotKnown);
}
