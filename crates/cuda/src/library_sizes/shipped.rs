//! The recording that comes with this library, made on an H200 by `ground_truth/tables/record.sh`.

use std::sync::OnceLock;

use ghostgpu_library_sizes::Compact;

const RECORDED: &str = include_str!("h200.tsv");

/// Read at the first question: most scripts ask none.
pub fn recording() -> &'static Compact {
    static RECORDING: OnceLock<Compact> = OnceLock::new();
    RECORDING.get_or_init(|| Compact::read(RECORDED).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_recording_is_read_whole_and_says_where_it_is_from() {
        let read = Compact::read(RECORDED).expect("every line is of the form");
        let lines = RECORDED.lines().filter(|line| !line.starts_with('#'));
        assert_eq!(read.series().count(), lines.count());
        assert!(RECORDED.contains("# card\tNVIDIA H200\n"));
        let points: usize = read.series().map(|(_, series)| series.points.len()).sum();
        assert!(points > 10_000, "{points} points");
    }
}
