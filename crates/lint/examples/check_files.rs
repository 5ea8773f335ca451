//! Prints what the rules find in the files given: `cargo run --example check_files -- FILES`.

use std::path::Path;

use ghostgpu_lint::{Source, check};

fn main() {
    for path in std::env::args().skip(1) {
        let contents = match std::fs::read(&path) {
            Ok(contents) => contents,
            Err(error) => {
                eprintln!("{path}: {error}");
                continue;
            }
        };
        let is_notebook = Path::new(&path)
            .extension()
            .is_some_and(|end| end == "ipynb");
        let source = if is_notebook {
            Source::notebook(&contents)
        } else {
            Source::script(&contents)
        };
        match source {
            Ok(source) => {
                for finding in check(&source, |_| true).findings {
                    let place = source.position(finding.range.start);
                    let cell = place
                        .cell
                        .map(|cell| format!("cell {cell}:"))
                        .unwrap_or_default();
                    println!(
                        "{path}:{cell}{}:{}: {}: {}",
                        place.line, place.column, finding.rule.name, finding.message
                    );
                }
            }
            Err(error) => eprintln!("{path}: {error}"),
        }
    }
}
