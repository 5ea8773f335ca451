//! The settings worth replaying: what a release supports, alone and in sensible pairs.

use ghostgpu_allocator::{Release, Settings};

const SPLIT_LIMITS_MB: [u64; 16] = [
    21, 24, 32, 40, 48, 64, 80, 96, 128, 160, 192, 256, 384, 512, 1024, 2048,
];
const ROUNDINGS: [&str; 9] = [
    "2",
    "4",
    "8",
    "16",
    "32",
    "64",
    "[256:1,512:2,1024:4,>:8]",
    "[64:8,256:4,1024:2,>:1]",
    "[4:2,64:4,256:8,>:4]",
];
const LARGE_SEGMENTS_MB: [u64; 4] = [32, 64, 128, 256];
const THRESHOLDS: [&str; 5] = ["0.5", "0.6", "0.7", "0.8", "0.9"];
const SLACKS_MB: [u64; 4] = [32, 64, 128, 256];

/// Every sensible setting of a release, the default first, none twice. Garbage collection is among them
/// only where a memory limit makes it work.
pub fn candidates(release: Release, has_limit: bool) -> Vec<Settings> {
    let mut texts = vec![String::new(), "expandable_segments:True".to_owned()];
    let splits = || SPLIT_LIMITS_MB.map(|limit| format!("max_split_size_mb:{limit}"));
    let roundings = || ROUNDINGS.map(|rounding| format!("roundup_power2_divisions:{rounding}"));
    let segments = || LARGE_SEGMENTS_MB.map(|size| format!("large_segment_size_mb:{size}"));
    let collections = || {
        let thresholds = if has_limit { &THRESHOLDS[..] } else { &[] };
        thresholds
            .iter()
            .map(|threshold| format!("garbage_collection_threshold:{threshold}"))
    };
    texts.extend(splits());
    texts.extend(roundings());
    texts.extend(segments());
    texts.extend(collections());
    for rounding in roundings() {
        texts.push(format!("expandable_segments:True,{rounding}"));
        texts.extend(splits().map(|split| format!("{split},{rounding}")));
    }
    for segment in segments() {
        texts.push(format!("expandable_segments:True,{segment}"));
        texts.extend(
            splits()
                .iter()
                .skip(1)
                .step_by(4)
                .map(|split| format!("{split},{segment}")),
        );
    }
    for slack in SLACKS_MB {
        let slack = format!("max_non_split_rounding_mb:{slack}");
        texts.extend(
            splits()
                .iter()
                .skip(2)
                .step_by(3)
                .map(|split| format!("{split},{slack}")),
        );
    }
    for collection in collections() {
        texts.extend(
            splits()
                .iter()
                .skip(2)
                .step_by(3)
                .map(|split| format!("{split},{collection}")),
        );
    }
    let understood = |text: &String| Settings::parse(text, release).ok();
    texts.iter().filter_map(understood).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_about_two_hundred_of_them_and_none_twice() {
        for release in [Release::new(2, 6), Release::new(2, 11), Release::new(2, 15)] {
            let found = candidates(release, true);
            assert!((150..=280).contains(&found.len()), "{}", found.len());
            assert_eq!(found[0], Settings::default());
            for (at, one) in found.iter().enumerate() {
                let again = found[at + 1..].iter().any(|other| other.text == one.text);
                assert!(!again, "{}", one.text);
            }
        }
    }

    #[test]
    fn what_a_release_does_not_know_is_left_out() {
        let texts = |release, limit| -> Vec<String> {
            let found = candidates(release, limit);
            found.into_iter().map(|settings| settings.text).collect()
        };
        let old = texts(Release::new(2, 0), false);
        assert!(!old.iter().any(|text| text.contains("expandable_segments")));
        assert!(!old.iter().any(|text| text.contains("large_segment")));
        assert!(!old.iter().any(|text| text.contains("garbage")));
        let new = texts(Release::new(2, 11), true);
        assert!(
            new.iter()
                .any(|text| text.contains("large_segment_size_mb"))
        );
        assert!(new.iter().any(|text| text.contains("garbage")));
    }
}
