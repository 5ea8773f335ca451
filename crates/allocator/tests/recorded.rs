//! What PyTorch's own allocator did on the virtual card, repeated. The files in `recorded/` are short
//! runs of `tests/allocator/drive.py`; longer ones are made and compared by `make test-e2e` and
//! `make prove-allocator`.

mod differential;

#[test]
fn the_replica_does_what_pytorchs_allocator_did() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recorded");
    let mut files = 0;
    let mut failed_requests = 0;
    for entry in std::fs::read_dir(folder).expect("the folder of recordings") {
        let path = entry.expect("a file in it").path();
        let text = std::fs::read_to_string(&path).expect("a readable recording");
        match differential::compare(&text) {
            Ok(compared) => {
                assert!(compared.operations > 300 && compared.trace_entries > 400);
                assert!(compared.statistics > 3000 && compared.segments > 30);
                failed_requests += compared.failed_requests;
            }
            Err(difference) => panic!("{}: {difference}", path.display()),
        }
        files += 1;
    }
    assert_eq!(files, 12);
    assert!(failed_requests > 30);
}

#[test]
fn a_difference_is_named_with_its_line() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/recorded/torch-2.11-pools-full.txt"
    );
    let text = std::fs::read_to_string(path).expect("a readable recording");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let answers = (0..lines.len()).filter(|&index| lines[index].starts_with("= "));
    let line = { answers }.nth(20).expect("a successful request");
    lines[line].push('0');
    let changed = lines.join("\n");
    let difference = differential::compare(&changed).expect_err("an address was changed");
    // The line of the request, which stands just before its answer.
    assert!(
        difference.starts_with(&format!("line {line}: Malloc")),
        "{difference}"
    );
}
