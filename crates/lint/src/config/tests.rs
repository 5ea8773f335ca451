//! Configurations, valid and invalid.

use std::path::Path;

use super::*;

fn config(body: &str) -> Result<Config, ConfigError> {
    let text = format!("[tool.ghostgpu.lint]\n{body}");
    Config::read(&text).map(|config| config.expect("a section of ours"))
}

fn asked(config: &Config, path: &str) -> Vec<&'static str> {
    let settings = config.settings(Path::new(path), &Config::default());
    ["made-up-noisy", "made-up-quiet", "made-up-import"]
        .into_iter()
        .filter(|name| !settings.off.contains(name))
        .collect()
}

#[test]
fn every_key_has_its_effect() {
    let config = config(
        "select = ['kept-graphs', 'made-up-quiet']\n\
         ignore = ['summed-loss']\n\
         exclude = ['build', 'a/*.py']\n\
         fail-on = 'never'\n\
         per-file-ignores = { 'tests/**' = ['made-up-noisy'] }\n\
         [tool.ghostgpu.lint.severity]\n\
         made-up-noisy = 'note'\n",
    )
    .expect("a good one");
    assert_eq!(
        asked(&config, "train.py"),
        ["made-up-noisy", "made-up-quiet"]
    );
    assert_eq!(asked(&config, "tests/a/x.py"), ["made-up-quiet"]);
    assert!(config.excludes(Path::new("x/build/y.py")));
    assert!(!config.excludes(Path::new("train.py")));
    assert_eq!(config.fail_on, Some(FailOn::Never));
    let settings = config.settings(Path::new("train.py"), &Config::default());
    assert_eq!(
        settings.severity(&crate::made_up::NOISY, Severity::Warning),
        Severity::Note
    );
    assert_eq!(
        settings.severity(
            &crate::made_up::IMPORTING,
            crate::made_up::IMPORTING.severity
        ),
        Severity::Warning
    );
}

#[test]
fn the_command_line_replaces_the_selection_and_adds_to_what_is_ignored() {
    let config = config("select = ['made-up-noisy']\nignore = ['made-up-quiet']").expect("good");
    let command_line = Config {
        select: Some(rules("--select", &["all".to_owned()]).expect("all")),
        ignore: rules("--ignore", &["made-up-import".to_owned()]).expect("a rule"),
        ..Config::default()
    };
    let settings = config.settings(Path::new("x.py"), &command_line);
    assert!(settings.selects(&crate::made_up::NOISY));
    assert!(!settings.selects(&crate::made_up::QUIET));
    assert!(!settings.selects(&crate::made_up::IMPORTING));
}

#[test]
fn mistakes_are_reported_with_a_hint() {
    let cases = [
        (
            "selct = []",
            "`tool.ghostgpu.lint`: unknown key `selct`",
            "did you mean `select`?",
        ),
        (
            "per_file_ignores = {}",
            "`tool.ghostgpu.lint`: unknown key `per_file_ignores`",
            "did you mean `per-file-ignores`?",
        ),
        (
            "select = ['sumed-loss']",
            "`select`: unknown rule `sumed-loss`",
            "did you mean `summed-loss`?",
        ),
        (
            "ignore = ['x']",
            "`ignore`: unknown rule `x`",
            "`ghostgpu lint --rules` lists the rules",
        ),
        (
            "select = 'all'",
            "`select` is not a list of strings",
            "write `select = [\"…\", \"…\"]`",
        ),
        (
            "fail-on = 3",
            "`fail-on`: invalid value `3`",
            "expected one of note, warning, error, never",
        ),
        (
            "severity = { all = 'bad' }",
            "`severity.all`: invalid value `\"bad\"`",
            "expected one of note, warning, error",
        ),
    ];
    for (body, message, hint) in cases {
        let error = config(body).expect_err(body);
        assert_eq!(
            (error.message.as_str(), error.hint.as_deref()),
            (message, Some(hint))
        );
    }
    let error = config("exclude = ['a[']").expect_err("no pattern");
    assert!(
        error
            .message
            .starts_with("`exclude`: `a[` is not a valid pattern"),
        "{}",
        error.message
    );
    let error = config("select = [").expect_err("no TOML");
    assert!(error.message.starts_with("line 2: "), "{}", error.message);
    let error = Config::read("[tool.ghostgpu.lnt]\n").expect_err("unknown");
    assert_eq!(error.hint.as_deref(), Some("did you mean `lint`?"));
}

#[test]
fn files_without_a_lint_section_are_ignored() {
    for text in [
        "",
        "[project]\nname = 'x'\n",
        "{{ cookiecutter }}",
        "[tool.ghostgpu]\n",
    ] {
        assert!(Config::read(text).expect("no error").is_none(), "{text}");
    }
}

#[test]
fn rules_that_are_off_by_default_run_only_when_selected() {
    let off = "foreach-where-fused";
    let rule = crate::RULES
        .iter()
        .find(|rule| rule.name == off)
        .expect("a rule");
    let path = std::path::Path::new("train.py");
    let nothing = Config::default();
    assert!(!nothing.settings(path, &Config::default()).selects(rule));
    let selected = config(&format!("select = ['{off}']")).expect("good");
    assert!(selected.settings(path, &Config::default()).selects(rule));
}
