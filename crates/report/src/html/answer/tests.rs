use ghostgpu_ledger::Groups;
use ghostgpu_recording::made_up::ByHand;
use ghostgpu_recording::{About, Category, Failure};

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
fn the_sentence_has_the_degree_of_the_verdict() {
    for (verdict, fits, word, class) in [
        (Verdict::Fits, Some(true), "It fits:", "fits"),
        (
            Verdict::FitsTightly,
            Some(true),
            "It fits tightly:",
            "tight",
        ),
        (
            Verdict::WillRunOut,
            Some(false),
            "It will run out of memory:",
            "misfit",
        ),
        (
            Verdict::DoesNotFit,
            Some(false),
            "It does not fit:",
            "misfit",
        ),
        (
            Verdict::DidNotUseCard,
            None,
            "It did not use the card:",
            "unknown",
        ),
        (Verdict::CannotRun, None, "It cannot run:", "misfit"),
        (
            Verdict::NotKnown,
            None,
            "It is not known whether it fits:",
            "unknown",
        ),
        (Verdict::ScriptFailed, None, "Peak:", "unknown"),
    ] {
        let recording = with(Some(Answer {
            verdict,
            fits,
            reason: "it <grows>".to_owned(),
            ..Answer::default()
        }));
        let words = Words::new(&recording, &[]);
        assert_eq!((words.sentence().0, words.class()), (word, class));
        assert_eq!(words.reason(), "<p class=\"reason\">It &lt;grows&gt;.</p>");
    }
}

#[test]
fn without_an_answer_nothing_is_assumed() {
    let recording = with(None);
    let words = Words::new(&recording, &[]);
    assert_eq!(words.reason(), "");
    assert_eq!(words.remarks(), "");
}

#[test]
fn a_recording_beyond_the_card_is_said_to_be_of_another_run() {
    let mut by_hand = ByHand::new();
    by_hand.allocate(16 << 30, Category::Parameter, Default::default());
    let mut recording = by_hand.recording;
    recording.about.gpu_total_bytes = 15 << 30;
    let said = |recording: &Recording| {
        let counted = Counted::all(recording, &Groups::of(recording));
        Words::new(recording, &counted).runs()
    };
    for (verdict, expected) in [(Verdict::Fits, false), (Verdict::DoesNotFit, true)] {
        recording.about.answer = Some(Answer {
            verdict,
            fits: verdict.fits(),
            ..Answer::default()
        });
        assert_eq!(said(&recording).contains("a second run"), expected);
    }
    recording.keep_failed_run(ByHand::new().recording);
    assert!(said(&recording).contains("Until it ran out of memory</button>"));
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
    let counted = Counted::all(&recording, &Groups::of(&recording));
    let words = Words::new(&recording, &counted);
    let (verdict, figures) = words.sentence();
    assert_eq!(
        format!("{verdict} {figures}").replace('\u{a0}', " "),
        "Out of memory: a request for 2.00 GiB failed with 1.00 GiB reserved and 1.00 MiB left on the card."
    );
    assert_eq!(words.class(), "misfit");
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
