//! Prints `docs/lint-rules.md`.

fn main() {
    print!("{}", ghostgpu_lint::catalogue::markdown());
}
