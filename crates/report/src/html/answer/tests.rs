use ghostgpu_ledger::Groups;
use ghostgpu_recording::made_up::ByHand;
use ghostgpu_recording::{About, Category, Failure};
use ghostgpu_session::OomReport;

use super::*;

fn with(answer: Option<Answer>) -> Recording {
    Recording {
        about: About {
            gpu: "T4".to_owned(),
            gpu_total_bytes: 15 << 30,
            answer,
            ..About::default()
        },
        ..Recording::default()
    }
}

fn sentence(answer: Option<Answer>) -> String {
    let recording = with(answer);
    let (verdict, figures) = Words::new(&recording, &[]).sentence();
    format!("{verdict} {figures}").replace('\u{a0}', " ")
}

#[test]
fn the_sentence_says_what_is_known() {
    let fitting = Answer {
        fits: Some(true),
        peak_device_bytes: 1 << 30,
        ..Answer::default()
    };
    assert_eq!(
        sentence(Some(fitting)),
        "It fits: T4 has 15.00 GiB, the job takes 1.00 GiB."
    );
    let misfit = Answer {
        fits: Some(false),
        needed_device_bytes: Some(16 << 30),
        peak_device_bytes: 1 << 30,
        ..Answer::default()
    };
    assert_eq!(
        sentence(Some(misfit.clone())),
        "It does not fit: T4 has 15.00 GiB, the job needs 16.00 GiB."
    );
    let unknown_need = Answer {
        needed_device_bytes: None,
        ..misfit
    };
    assert_eq!(
        sentence(Some(unknown_need)),
        "It does not fit: T4 has 15.00 GiB, and 1.00 GiB were in use when a request failed."
    );
    assert_eq!(
        sentence(None),
        "Peak: 0 bytes in use on T4, which has 15.00 GiB."
    );
}

#[test]
fn without_an_answer_nothing_is_assumed() {
    let recording = with(None);
    let words = Words::new(&recording, &[]);
    assert_eq!(words.out_of_memory(), "");
    assert_eq!(words.remarks(), "");
}

#[test]
fn a_failed_request_is_told_with_its_line_and_nothing_of_it_is_markup() {
    let frame = |file: &str, line, source: Option<&str>, is_user_code| StackFrame {
        file: file.to_owned(),
        line,
        function: "f".to_owned(),
        source: source.map(str::to_owned),
        is_user_code,
    };
    let recording = with(Some(Answer {
        oom: Some(OomReport {
            device: 0,
            requested_bytes: 2048,
            message: "<b>".to_owned(),
            step: 0,
            stage: "forward".to_owned(),
            stack: vec![
                frame("<i>.py", 7, Some(" x = y "), true),
                frame("torch/f.py", 9, None, false),
            ],
            is_fatal: true,
            moment: None,
        }),
        ..Answer::default()
    }));
    let html = Words::new(&recording, &[]).out_of_memory();
    let line = "in step 1 (forward), at <code>&lt;i&gt;.py:7</code>: <code>x = y</code>";
    assert!(html.contains(line), "{html}");
    assert!(html.contains("<p>&lt;b&gt;</p>"));
}

#[test]
fn a_recording_beyond_the_card_is_said_to_be_of_another_run() {
    let mut by_hand = ByHand::new();
    by_hand.allocate(16 << 30, Category::Parameter, Default::default());
    let mut recording = by_hand.recording;
    recording.about.gpu_total_bytes = 15 << 30;
    for (fits, expected) in [(true, false), (false, true)] {
        recording.about.answer = Some(Answer {
            fits: Some(fits),
            ..Answer::default()
        });
        let groups = Groups::of(&recording);
        let counted = [Counted::of(&recording, &recording.cards[0], &groups)];
        let words = Words::new(&recording, &counted);
        assert_eq!(words.other_run().contains("a second run"), expected);
    }
}

#[test]
fn a_snapshot_says_what_failed_and_what_it_cannot_know() {
    let mut by_hand = ByHand::new();
    by_hand.allocate(1 << 30, Category::Unknown, Default::default());
    let event = by_hand.card().fail(Failure {
        requested_bytes: 2 << 30,
        driver_free_bytes: Some(1 << 20),
        ..Failure::default()
    });
    by_hand.push(event);
    let mut recording = by_hand.recording;
    recording.about.source = Source::Snapshot;
    let groups = Groups::of(&recording);
    let counted = [Counted::of(&recording, &recording.cards[0], &groups)];
    let words = Words::new(&recording, &counted);
    let (verdict, figures) = words.sentence();
    assert_eq!(
        format!("{verdict} {figures}").replace('\u{a0}', " "),
        "Out of memory: a request for 2.00 GiB failed with 1.00 GiB reserved and 1.00 MiB left on the card."
    );
    assert_eq!(words.class(), "misfit");
    assert!(words.out_of_memory().contains("is event 2 of device 0"));
    assert!(
        words
            .remarks()
            .contains("<h3>What no snapshot can say</h3>")
    );
}

#[test]
fn warnings_and_assumptions_are_listed() {
    let mut recording = with(Some(Answer {
        assumptions: vec!["a & b".to_owned()],
        ..Answer::default()
    }));
    recording.warnings = vec!["late".to_owned()];
    assert_eq!(
        Words::new(&recording, &[]).remarks(),
        "<h3>Missing from this recording</h3><ul><li>late</li></ul>\
         <h3>Assumed</h3><ul><li>a &amp; b</li></ul>"
    );
}
