//! Settings texts, and what each release says about them. The reasons were read off torch 2.8, 2.11 and
//! 2.15 by giving them the same texts.

use ghostgpu_allocator::{PythonException, Release, Settings};

fn refused(text: &str, minor: u16) -> Option<(&'static str, String)> {
    let error = Settings::parse(text, Release::new(2, minor)).err()?;
    Some((error.exception.name(), error.reason.trim_end().to_owned()))
}

/// Text, what 2.8 says, what 2.11 says; empty where it is accepted.
const TEXTS: [(&str, &str, &str); 36] = [
    (
        "max_split_size_mb:19",
        "CachingAllocator option max_split_size_mb too small, must be > 20",
        "CachingAllocator option max_split_size_mb too small, must be >= 20",
    ),
    (
        "max_split_size_mb:20",
        "CachingAllocator option max_split_size_mb too small, must be > 20",
        "",
    ),
    ("max_split_size_mb:abc", "stoi", "stoull"),
    ("max_split_size_mb:-1", "", ""),
    (
        "max_split_size_mb",
        "Error parsing CachingAllocator settings, expected :",
        "Index out of bounds in ConfigTokenizer",
    ),
    (
        "max_split_size_mb:",
        "Error, expecting max_split_size_mb value",
        "Index out of bounds in ConfigTokenizer",
    ),
    (
        "foo:1",
        "Unrecognized CachingAllocator option: foo",
        "Unrecognized key 'foo' in Accelerator allocator config.",
    ),
    (
        "backend:zzz",
        "Unknown allocator backend, options are native and cudaMallocAsync",
        "Unknown allocator backend, options are native and cudaMallocAsync",
    ),
    ("backend:native", "", ""),
    (
        "backend:native:x",
        "Error parsing CachingAllocator settings, expected ,",
        "Unrecognized key 'x' in Accelerator allocator config.",
    ),
    (
        "expandable_segments:true",
        "Expected a single True/False argument for expandable_segments",
        "Expected 'True' or 'False' at index 2 in ConfigTokenizer but got 'true'",
    ),
    (
        "expandable_segments",
        "Error parsing CachingAllocator settings, expected :",
        "Index out of bounds in ConfigTokenizer",
    ),
    (
        "max_split_size_mb:30;expandable_segments:True",
        "Error parsing CachingAllocator settings, expected ,",
        "Unrecognized key 'True' in Accelerator allocator config.",
    ),
    (
        "garbage_collection_threshold:1.0",
        "garbage_collect_threshold too big, set it 0.0~1.0",
        "garbage_collect_threshold is invalid, set it in (0.0, 1.0)",
    ),
    ("garbage_collection_threshold:x", "stod", "stod"),
    ("garbage_collection_threshold:0.5abc", "", ""),
    (
        "roundup_power2_divisions:3",
        "For roundups, the divisions has to be power of 2",
        "For roundups, the divisions has to be power of 2",
    ),
    (
        "roundup_power2_divisions:0",
        "For roundups, the divisions has to be power of 2",
        "For roundups, the divisions has to be power of 2",
    ),
    (
        "roundup_power2_divisions:[3:1]",
        "For roundups, the intervals have to be power of 2",
        "For roundups, the intervals have to be power of 2",
    ),
    (
        "roundup_power2_divisions:[256:3]",
        "For roundups, the divisions has to be power of 2 or 0 to disable roundup",
        "For roundups, the divisions has to be power of 2 or 0 to disable roundup",
    ),
    (
        "roundup_power2_divisions:[256:1",
        "Error parsing CachingAllocator settings, expected ,",
        "Index out of bounds in ConfigTokenizer",
    ),
    ("roundup_power2_divisions:[256:1,>:4]", "", ""),
    (
        "roundup_power2_divisions:[",
        "",
        "Expected closing bracket ']' in ConfigTokenizer but reached end of config",
    ),
    (
        "pinned_num_register_threads:3",
        "Number of register threads has to be power of 2",
        "Number of register threads has to be power of 2, got 3",
    ),
    (
        "pinned_num_register_threads:256",
        "Number of register threads should be less than or equal to 128",
        "Number of register threads should be less than or equal to 128, got 256",
    ),
    (
        "per_process_memory_fraction:2",
        "Unrecognized CachingAllocator option: per_process_memory_fraction",
        "per_process_memory_fraction is invalid, set it in [0.0, 1.0]",
    ),
    (
        "large_segment_size_mb:10",
        "Unrecognized CachingAllocator option: large_segment_size_mb",
        "CachingAllocator option large_segment_size_mb must be > 10 MB",
    ),
    (
        "large_segment_size_mb:32,max_split_size_mb:20",
        "Unrecognized CachingAllocator option: large_segment_size_mb",
        "CachingAllocator option max_split_size_mb too small, must be >= 32",
    ),
    (
        "max_non_split_rounding_mb:19",
        "CachingAllocator option max_non_split_rounding_mb too small, must be > 20",
        "CachingAllocator option max_non_split_rounding_mb too small, must be >= 20",
    ),
    (
        "pinned_reserve_segment_size_mb:0",
        "Unrecognized CachingAllocator option: pinned_reserve_segment_size_mb",
        "Pinned reserve segment size has to be greater than 0",
    ),
    (
        ",,",
        "Unrecognized CachingAllocator option: ,",
        "Unrecognized key ',' in Accelerator allocator config.",
    ),
    ("max_split_size_mb:64,", "", ""),
    (
        "max_split_size_mb 64",
        "Unrecognized CachingAllocator option: max_split_size_mb64",
        "Unrecognized key 'max_split_size_mb64' in Accelerator allocator config.",
    ),
    (
        "throw_on_cudamalloc_oom:True",
        "Unrecognized CachingAllocator option: throw_on_cudamalloc_oom",
        "Unrecognized key 'throw_on_cudamalloc_oom' in Accelerator allocator config.",
    ),
    (
        "release_lock_on_cudamalloc:1",
        "Expected a single True/False argument for release_lock_on_cudamalloc",
        "Expected 'True' or 'False' at index 2 in ConfigTokenizer but got '1'",
    ),
    ("max_split_size_mb:99999999999999999999", "stoi", "stoull"),
];

#[test]
fn what_pytorch_refuses_is_refused_in_its_words() {
    for (text, by_2_8, by_2_11) in TEXTS {
        for (minor, reason) in [(8, by_2_8), (11, by_2_11)] {
            let here = refused(text, minor).map_or(String::new(), |(_, reason)| reason);
            assert_eq!(here, reason, "2.{minor} about {text:?}");
        }
    }
}

#[test]
fn later_releases_know_more_options() {
    let unknown = refused("expandable_segments_reserve:0.5", 14).expect("not before 2.15");
    assert!(unknown.1.contains("Unrecognized key"));
    for text in [
        "throw_on_cudamalloc_oom:True",
        "pinned_max_cached_size_mb:5",
        "expandable_segments_reserve:40G",
    ] {
        assert_eq!(refused(text, 15), None, "{text}");
    }
}

#[test]
fn a_refusal_has_the_exception_that_python_sees() {
    let error = |text: &str, minor| {
        Settings::parse(text, Release::new(2, minor))
            .expect_err(text)
            .exception
    };
    assert_eq!(error("foo:1", 8), PythonException::RuntimeError);
    assert_eq!(error("foo:1", 11), PythonException::ValueError);
    assert_eq!(
        error("expandable_segments", 11),
        PythonException::RuntimeError
    );
    assert_eq!(
        error("max_split_size_mb:99999999999999999999", 11),
        PythonException::IndexError
    );
}

#[test]
fn a_list_of_divisions_fills_the_table_as_the_release_does() {
    let list = "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]";
    let table = |minor| {
        let settings = Settings::parse(list, Release::new(2, minor)).expect("a good list");
        settings.roundup_power2_divisions.0
    };
    assert_eq!(table(10), [1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 8, 8, 8, 8, 8]);
    assert_eq!(table(9), [1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 8, 8, 8, 8, 8, 8]);
}

#[test]
fn some_options_last_and_others_do_not_when_settings_are_changed() {
    let release = Release::new(2, 11);
    let first = "max_split_size_mb:64,expandable_segments:True,roundup_power2_divisions:4";
    let mut settings = Settings::parse(first, release).expect("good settings");
    settings
        .apply("garbage_collection_threshold:0.5", release)
        .expect("good settings");
    assert_eq!(settings.max_split_size, ghostgpu_allocator::UNLIMITED);
    assert_eq!(settings.roundup_power2_divisions.0, [0; 16]);
    assert!(settings.expandable_segments);
    let trouble = settings.apply("expandable_segments:False,max_split_size_mb:1", release);
    assert!(trouble.is_err());
    assert!(
        !settings.expandable_segments,
        "what stands before the bad option is in force"
    );
}
