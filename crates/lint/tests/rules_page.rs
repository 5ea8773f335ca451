//! The page of rules is up to date.

#[test]
fn the_rules_page_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/lint-rules.md");
    let page = std::fs::read_to_string(path).expect("the page");
    assert!(
        page == ghostgpu_lint::catalogue::markdown(),
        "docs/lint-rules.md is out of date: \
         `cargo run -p ghostgpu-lint --example rules_page > docs/lint-rules.md`"
    );
}
