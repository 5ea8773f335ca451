//! What is written is read again, and what anybody else has written is refused in one sentence.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use ghostgpu_recording::file::{FileError, Limits, read, write};
use ghostgpu_recording::made_up::{MadeUp, recording, recording_at_random};
use ghostgpu_recording::{Event, FailureId, Recording};
use proptest::prelude::*;

fn written(recording: &Recording) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(recording, &mut bytes).expect("writing to memory");
    bytes
}

fn read_all(bytes: &[u8]) -> Result<Recording, FileError> {
    read(bytes, Limits::default())
}

fn small() -> Recording {
    recording(MadeUp {
        layers: 2,
        steps: 2,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read_again(seed: u64, events in 0_usize..400) {
        let recording = recording_at_random(seed, events);
        let bytes = written(&recording);
        prop_assert_eq!(&read_all(&bytes).expect("our own file"), &recording);
        prop_assert_eq!(written(&recording), bytes);
    }

    #[test]
    fn a_failed_run_is_read_again_with_the_run_that_had_enough(seed: u64, events in 0_usize..200) {
        let mut recording = recording_at_random(seed, events);
        recording.keep_failed_run(recording_at_random(seed.rotate_left(7), events / 2));
        let bytes = written(&recording);
        prop_assert!(bytes[8] >= 3);
        prop_assert_eq!(&read_all(&bytes).expect("our own file"), &recording);
    }

    #[test]
    fn ranks_are_read_again_each_with_what_nccl_holds(seed: u64, events in 0_usize..100) {
        let of_rank = |rank: u32| {
            let mut recording = recording_at_random(seed.rotate_left(rank), events);
            recording.keep_failed_run(recording_at_random(seed.rotate_left(rank + 9), events));
            let failed = recording.failed_run.iter_mut().flat_map(|run| &mut run.cards);
            for card in recording.cards.iter_mut().chain(failed) {
                card.rank = Some(rank);
                card.nccl_bytes = card.outside_bytes / 2;
            }
            recording
        };
        let mut joined = of_rank(3);
        let cards = joined.cards.len() + of_rank(1).cards.len();
        joined.join(of_rank(1));
        prop_assert_eq!(joined.cards.len(), cards);
        prop_assert_eq!(joined.cards[0].rank, Some(1));
        prop_assert_eq!(joined.check(), Ok(()));
        let bytes = written(&joined);
        prop_assert_eq!(bytes[8], 4);
        prop_assert_eq!(&read_all(&bytes).expect("our own file"), &joined);
        joined.join(of_rank(1));
        prop_assert!(joined.cards.is_empty() || joined.check().is_err(), "a rank occurs twice");
    }

    #[test]
    fn any_bytes_after_the_head_are_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut file = b"\x89ghost\r\n\x02\0\0\0".to_vec();
        file.extend(bytes);
        if let Err(error) = read_all(&file) {
            prop_assert!(error.offset().expect("a place") <= file.len() as u64, "{}", error);
        }
    }

    #[test]
    fn any_values_in_a_section_are_an_answer(
        kind in 1_u8..7,
        values in prop::collection::vec(prop_oneof![0_u8..4, any::<u8>()], 0..300),
    ) {
        let mut file = head();
        if matches!(kind, 3 | 5) {
            push_section(&mut file, 2, &no_names());
        }
        push_section(&mut file, kind, &values);
        prop_assert!(read_all(&file).is_err());
    }
}

#[test]
fn a_made_up_training_is_read_again() {
    let recording = recording(MadeUp {
        layers: 12,
        steps: 5,
    });
    assert_eq!(
        read_all(&written(&recording)).expect("our own file"),
        recording
    );
}

#[test]
fn a_file_that_ends_anywhere_is_refused_at_its_end_or_before() {
    let bytes = written(&small());
    for length in 0..bytes.len() {
        let error = read_all(&bytes[..length]).expect_err("not whole");
        assert!(error.offset().expect("a place") <= length as u64, "{error}");
    }
}

#[test]
fn a_file_with_any_byte_changed_is_refused_or_says_something_that_holds() {
    let bytes = written(&small());
    let mut changed = bytes.clone();
    for at in 0..bytes.len() {
        changed[at] ^= 0x15;
        if let Ok(recording) = read_all(&changed) {
            recording.check().expect("what is read is consistent");
        }
        changed[at] = bytes[at];
    }
}

fn head() -> Vec<u8> {
    b"\x89ghost\r\n\x02\0\0\0".to_vec()
}

fn push_section(file: &mut Vec<u8>, kind: u8, values: &[u8]) {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(values).expect("memory");
    let packed = encoder.finish().expect("memory");
    file.push(kind);
    file.extend((packed.len() as u64).to_le_bytes());
    file.extend(packed);
}

/// Only the empty name, operator, module and stack; no frame.
fn no_names() -> Vec<u8> {
    vec![1, 0, 1, 0, 1, 0, 0, 0, 0, 1, 0]
}

/// A card with one allocation of 512 bytes, and events of these kinds with these values.
fn a_card(kinds: &[u8], values: &[u8]) -> Vec<u8> {
    // Its number, what is outside, the default pool, nothing reserved before, the allocation.
    let mut card = vec![0, 0, 1, 0, 0, 0, 1, 0, 4, 4, 0, 0, 0, 0, 0, 0];
    card.push(kinds.len() as u8);
    card.extend(kinds);
    card.extend(values);
    // When it began, and the times.
    card.extend(vec![0; 1 + kinds.len()]);
    // One stage, from the first event on, and no ranges.
    card.extend([1, 0, 0, 0, 0]);
    card
}

#[test]
fn hostile_files_are_refused_in_one_sentence() {
    let section = |kind: u8, values: &[u8]| {
        let mut file = head();
        push_section(&mut file, kind, values);
        file
    };
    let card = |kinds: &[u8], values: &[u8]| {
        let mut file = section(2, &no_names());
        push_section(&mut file, 3, &a_card(kinds, values));
        file
    };
    let mut promise = head();
    promise.push(2);
    promise.extend(u64::MAX.to_le_bytes());
    let mut follows = written(&small());
    follows.push(0);
    let mut names_twice = section(2, &no_names());
    push_section(&mut names_twice, 2, &no_names());
    let mut failed_twice = section(2, &no_names());
    push_section(&mut failed_twice, 5, &[0, 0]);
    push_section(&mut failed_twice, 5, &[0, 0]);
    let mut failed_card_twice = section(2, &no_names());
    let two_cards = [vec![0, 2], a_card(&[], &[]), a_card(&[], &[])].concat();
    push_section(&mut failed_card_twice, 5, &two_cards);
    for (file, sentence) in [
        (
            b"".to_vec(),
            "this is no recording of GhostGPU's (at byte 0)",
        ),
        (
            b"\x80\x04\x95 a pickle".to_vec(),
            "this is no recording of GhostGPU's (at byte 0)",
        ),
        (
            b"\x89ghost\n\x02\0\0\0".to_vec(),
            "this is no recording of GhostGPU's (at byte 0)",
        ),
        (
            b"\x89ghost\r\n\x05\0\0\0 whatever".to_vec(),
            "this recording has format 5, and this GhostGPU reads formats 2 to 4 (at byte 8)",
        ),
        (head(), "the recording ends too early, at byte 12"),
        (promise, "the recording ends too early, at byte 21"),
        (section(9, b""), "at byte 12: no section has kind 9"),
        (section(3, b""), "at byte 12: a card comes before the names"),
        (section(4, b""), "at byte 12: there are no names"),
        (section(5, b""), "at byte 12: a card comes before the names"),
        (failed_twice, "section 5 occurs twice"),
        (failed_card_twice, "a card of the failed run occurs twice"),
        (names_twice, "section 2 occurs twice"),
        (follows, "something follows the recording's end"),
        (
            section(2, &[0xff; 30]),
            "10 bytes into what is packed there: a number is longer than 64 bits",
        ),
        (
            section(2, &[0xff, 0xff, 0xff, 0xff, 0x7f, 0]),
            "6 bytes into what is packed there: the section ends too early",
        ),
        (
            section(2, &[1, 0xff, 0xff, 0xff, 0xff, 0x7f, b'x']),
            "7 bytes into what is packed there: a text ends too early",
        ),
        (section(2, &[1, 1, 0xc3]), "a text is not UTF-8"),
        (
            section(2, &[0, 0, 0, 0, 0]),
            "the first name is not the empty one",
        ),
        (
            section(2, &[1, 0, 1, 0, 1, 0, 0, 0, 0, 1, 1, 0]),
            "there is no frame 0",
        ),
        (
            section(2, &[1, 0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 7]),
            "the section has more than it should",
        ),
        (card(&[7], &[]), "no kind of event has number 7"),
        (card(&[0], &[2]), "there are 1 allocations, and no 1"),
        (card(&[0, 0], &[0, 1]), "allocation 0 begins twice"),
        (card(&[1, 1], &[0, 0]), "allocation 0 ends twice"),
        (card(&[1, 0], &[0, 0]), "allocation 0 ends before it begins"),
        (
            card(&[3], &[0, 9, 0, 0]),
            "event 0 gives back more memory than is reserved",
        ),
        (
            card(&[2], &[1, 9, 0, 0]),
            "event 0 is about memory beyond the last address",
        ),
    ] {
        let error = read_all(&file).expect_err(sentence).to_string();
        assert!(error.contains(sentence), "{error}");
        assert_eq!(error.lines().count(), 1);
    }
}

#[test]
fn a_small_file_of_very_many_events_stops_at_the_limit() {
    // Ten million events of nothing in some kilobytes.
    let mut file = head();
    push_section(&mut file, 2, &no_names());
    let mut card = vec![0, 0, 1, 0, 0, 0, 0];
    card.extend([0x80, 0xad, 0xe2, 0x04]);
    card.extend(vec![4; 10_000_000]);
    push_section(&mut file, 3, &card);
    assert!(file.len() < 20_000);
    let limits = Limits {
        memory_bytes: 1 << 20,
    };
    let error = read(&file[..], limits).expect_err("too large");
    assert!(matches!(error, FileError::TooLarge { .. }), "{error}");
}

#[test]
fn a_recording_that_contradicts_itself_is_not_written() {
    let mut wrong = small();
    wrong.cards[0].events.pop();
    let error = write(&wrong, Vec::new())
        .expect_err("inconsistent")
        .to_string();
    assert!(
        error.starts_with("the recording contradicts itself: card 0: "),
        "{error}"
    );
    let mut wrong = small();
    wrong.cards[0].events[5] = Event::OutOfMemory(FailureId(0));
    assert!(write(&wrong, Vec::new()).is_err());
    let mut wrong = small();
    wrong.cards[0].phases.remove(0);
    wrong.cards[0].phases[0].first_event = 3;
    assert!(write(&wrong, Vec::new()).is_err());
}
