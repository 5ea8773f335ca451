//! Reads a log and says what was found, and how long that took: `read_log FILE`.

use std::io::Read;
use std::time::Instant;

use ghostgpu_explain::{Reader, explain};

fn main() -> std::io::Result<()> {
    let path = std::env::args_os().nth(1).unwrap_or_default();
    let mut file = std::fs::File::open(path)?;
    let begin = Instant::now();
    let mut reader = Reader::default();
    let mut piece = vec![0; 1 << 18];
    loop {
        match file.read(&mut piece)? {
            0 => break,
            count => reader.push(&piece[..count]),
        }
    }
    let log = reader.finish();
    let seconds = begin.elapsed().as_secs_f64();
    let megabytes = log.bytes as f64 / 1e6;
    println!(
        "{megabytes:.0} MB in {seconds:.2} s, {} findings",
        log.findings.len()
    );
    if let Some(answer) = explain(&log) {
        println!("{}", answer.finding.text);
    }
    Ok(())
}
