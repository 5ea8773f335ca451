//! What ignore comments suppress, and what is reported about unused ones.

use crate::settings::Settings;
use crate::source::Source;
use crate::{Diagnostic, examine};

fn remarks_with(text: &str, settings: &Settings) -> Vec<String> {
    let source = Source::script(text.as_bytes()).expect("text");
    let name = |remark: &Diagnostic| {
        let line = source.position(remark.range.start).line;
        format!("{line} {}", remark.origin.name())
    };
    examine(&source, settings).iter().map(name).collect()
}

fn remarks(text: &str) -> Vec<String> {
    remarks_with(text, &Settings::default())
}

#[test]
fn a_comment_suppresses_what_it_names() {
    let nothing: [&str; 10] = [
        "noisy()  # ghostgpu: ignore[made-up-noisy]\n",
        "noisy()  # ghostgpu: ignore[made-up-noisy] as we want it so\n",
        "noisy(quiet)  # ghostgpu: ignore[made-up-noisy, made-up-quiet]\n",
        "noisy(quiet)  # ghostgpu: ignore\n",
        "noisy()  #ghostgpu:ignore[kept-graphs]\n",
        "noisy()  # noqa: E501  # ghostgpu: ignore[made-up-noisy]\n",
        "# ghostgpu: ignore[made-up-noisy]\nnoisy()\n",
        "# ghostgpu: ignore[made-up-noisy]\n# because\nnoisy()\n",
        "x = [\n    noisy,\n    2,\n]  # ghostgpu: ignore[made-up-noisy]\n",
        "x = 1\n# ghostgpu: ignore-file[made-up-noisy]\nnoisy()\nnoisy()\n",
    ];
    for text in nothing {
        assert_eq!(remarks(text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn a_comment_elsewhere_suppresses_nothing() {
    let cases: [(&str, &[&str]); 6] = [
        (
            "# ghostgpu: ignore[made-up-noisy]\n\nnoisy()\n",
            &["1 unused-ignore", "3 made-up-noisy"],
        ),
        (
            "noisy()\n# ghostgpu: ignore\nx = 1\n",
            &["1 made-up-noisy", "2 unused-ignore"],
        ),
        ("x = 'ghostgpu: ignore'; noisy()\n", &["1 made-up-noisy"]),
        (
            "noisy()  # ghostgpu: ignored, I hope\n",
            &["1 made-up-noisy"],
        ),
        ("noisy()  # see ghostgpu: ignore\n", &["1 made-up-noisy"]),
        (
            "noisy(quiet)  # ghostgpu: ignore[made-up-quiet]\n",
            &["1 made-up-noisy"],
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(remarks(text), expected, "{text}");
    }
}

#[test]
fn unused_comments_are_reported() {
    let cases: [(&str, &[&str]); 6] = [
        ("x = 1  # ghostgpu: ignore\n", &["1 unused-ignore"]),
        (
            "x = 1  # ghostgpu: ignore[made-up-noisy]\n",
            &["1 unused-ignore"],
        ),
        ("x = 1  # ghostgpu: ignore[]\n", &["1 unused-ignore"]),
        (
            "x = 1  # ghostgpu: ignore[made-up-noisy\n",
            &["1 unused-ignore"],
        ),
        (
            "noisy()  # ghostgpu: ignore[made-up-noisy, nosiy]\n",
            &["1 unknown-rule"],
        ),
        ("x = 1  # ghostgpu: ignore-file\n", &["1 unused-ignore"]),
    ];
    for (text, expected) in cases {
        assert_eq!(remarks(text), expected, "{text}");
    }
}

#[test]
fn an_unknown_name_is_reported_in_place_with_a_suggestion() {
    let text = "noisy()  # ghostgpu: ignore[made-up-noisy,  summed-los]\n";
    let source = Source::script(text.as_bytes()).expect("text");
    let found = examine(&source, &Settings::default());
    assert_eq!(&text[found[0].range.clone()], "summed-los");
    assert_eq!(found[0].help, "did you mean `summed-loss`?");
}

#[test]
fn a_comment_for_a_rule_that_did_not_run_is_not_called_unused() {
    let settings = Settings {
        off: ["made-up-noisy"].into(),
        ..Settings::default()
    };
    for text in [
        "x = 1  # ghostgpu: ignore[made-up-noisy]\n",
        "x = 1  # ghostgpu: ignore\n",
    ] {
        assert_eq!(
            remarks_with(text, &settings),
            Vec::<String>::new(),
            "{text}"
        );
    }
}

#[test]
fn in_half_a_file_no_comment_is_called_unused() {
    let text = "def (:\nx = 1  # ghostgpu: ignore[made-up-noisy]\n";
    assert!(remarks(text).iter().all(|it| it.ends_with("syntax-error")));
}
