//! Properties that hold for any bytes read as a log.

use ghostgpu_explain::{Log, Reader, explain};

/// Reads the bytes whole and in pieces: the findings are the same, and each can be explained.
/// Returns whether something was found.
pub fn check_log(bytes: &[u8]) -> bool {
    let whole = read(bytes, usize::MAX);
    // The first byte says how long the pieces are.
    let piece = bytes.first().map_or(1, |first| usize::from(*first) + 1);
    assert_eq!(read(bytes, piece), whole);
    let Some(explanation) = explain(&whole) else {
        assert!(whole.findings.is_empty());
        return false;
    };
    assert!(!explanation.situations.is_empty());
    assert!(!explanation.situations[0].reasons.is_empty());
    assert!(!explanation.advice.is_empty());
    assert_eq!(explanation.others.len() + 1, whole.findings.len());
    true
}

fn read(bytes: &[u8], piece: usize) -> Log {
    let mut reader = Reader::default();
    bytes.chunks(piece).for_each(|piece| reader.push(piece));
    reader.finish()
}
