//! The catalogue as its users see it: names, numbers, and what happens to names it does not know.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::{Capability, lookup};

fn find(name: &str) -> &'static Card {
    Catalogue::builtin()
        .find(name)
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn refusal(name: &str) -> LookupError {
    match Catalogue::builtin().find(name) {
        Ok(card) => panic!("{name} must not be found, but is {}", card.name),
        Err(error) => error,
    }
}

#[test]
fn there_are_more_than_a_hundred_cards() {
    assert!(Catalogue::builtin().cards().len() > 100);
}

#[test]
fn no_alias_means_two_cards() {
    let mut owners: BTreeMap<String, &str> = BTreeMap::new();
    for card in Catalogue::builtin().cards() {
        assert!(!card.aliases.is_empty(), "{} has no alias", card.name);
        let keys: BTreeSet<String> = card
            .aliases
            .iter()
            .map(|alias| lookup::key(alias))
            .collect();
        assert_eq!(
            keys.len(),
            card.aliases.len(),
            "{} repeats an alias",
            card.name
        );
        for key in keys {
            let other = owners.insert(key.clone(), card.name);
            assert_eq!(other, None, "`{key}` is an alias of {} too", card.name);
        }
    }
}

#[test]
fn every_card_is_found_by_its_name_and_by_each_alias() {
    for card in Catalogue::builtin().cards() {
        assert_eq!(find(card.name).name, card.name);
        for alias in &card.aliases {
            assert_eq!(find(alias).name, card.name, "{alias}");
        }
    }
}

#[test]
fn a_driver_name_finds_a_card_that_has_it() {
    for card in Catalogue::builtin().cards() {
        assert_eq!(find(card.driver_name).driver_name, card.driver_name);
    }
}

#[test]
fn a_name_shared_by_several_cards_comes_with_a_note() {
    let mut cards_by_driver_name: BTreeMap<&str, usize> = BTreeMap::new();
    for card in Catalogue::builtin().cards() {
        *cards_by_driver_name.entry(card.driver_name).or_default() += 1;
    }
    for (driver_name, count) in cards_by_driver_name {
        if count > 1 {
            assert!(
                find(driver_name).note.is_some(),
                "{driver_name} has no note"
            );
        }
    }
}

#[test]
fn names_as_people_type_them_lead_to_the_right_card() {
    for (typed, driver_name, board_gib) in [
        ("1080ti", "NVIDIA GeForce GTX 1080 Ti", 11),
        ("GTX 1080 Ti", "NVIDIA GeForce GTX 1080 Ti", 11),
        ("RTX 3060", "NVIDIA GeForce RTX 3060", 12),
        ("3060", "NVIDIA GeForce RTX 3060", 12),
        ("3060 laptop", "NVIDIA GeForce RTX 3060 Laptop GPU", 6),
        ("RTX 3060 Mobile", "NVIDIA GeForce RTX 3060 Laptop GPU", 6),
        ("rtx-4090", "NVIDIA GeForce RTX 4090", 24),
        ("NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 4090", 24),
        ("4090 24gb", "NVIDIA GeForce RTX 4090", 24),
        ("4060 ti 16gb", "NVIDIA GeForce RTX 4060 Ti", 16),
        ("4070 Ti Super", "NVIDIA GeForce RTX 4070 Ti SUPER", 16),
        ("3090", "NVIDIA GeForce RTX 3090", 24),
        ("t4", "Tesla T4", 16),
        ("nvidia tesla t4", "Tesla T4", 16),
        ("a10g", "NVIDIA A10G", 24),
        ("a100", "NVIDIA A100-SXM4-40GB", 40),
        ("a100-40", "NVIDIA A100-SXM4-40GB", 40),
        ("A100-40GB", "NVIDIA A100-SXM4-40GB", 40),
        ("a100-80", "NVIDIA A100-SXM4-80GB", 80),
        ("A100 80 GB", "NVIDIA A100-SXM4-80GB", 80),
        ("a100-80g", "NVIDIA A100-SXM4-80GB", 80),
        ("v100", "Tesla V100-SXM2-16GB", 16),
        ("v100-32", "Tesla V100-SXM2-32GB", 32),
        ("h100", "NVIDIA H100 80GB HBM3", 80),
        ("h100 pcie", "NVIDIA H100 PCIe", 80),
        ("H200", "NVIDIA H200", 141),
        ("l4", "NVIDIA L4", 24),
        ("l40s", "NVIDIA L40S", 48),
        ("RTX A6000", "NVIDIA RTX A6000", 48),
        ("rtx 6000 ada", "NVIDIA RTX 6000 Ada Generation", 48),
        (
            "rtx pro 6000",
            "NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
            96,
        ),
        ("titan rtx", "NVIDIA TITAN RTX", 24),
        ("Titan V", "NVIDIA TITAN V", 12),
        ("b200", "NVIDIA B200", 180),
        ("gb200", "NVIDIA GB200", 186),
        ("dgx spark", "NVIDIA GB10", 128),
    ] {
        let card = find(typed);
        assert_eq!(
            (card.driver_name, card.board_gib),
            (driver_name, board_gib),
            "{typed}"
        );
    }
}

#[test]
fn an_ambiguous_name_tells_about_the_other_card() {
    assert_eq!(
        find("a100").note,
        Some("`a100` means the 40 GB card; the other is `a100-80`")
    );
    assert!(
        find("rtx 6000")
            .note
            .is_some_and(|note| note.contains("`6000-ada`"))
    );
}

#[test]
fn every_name_in_a_note_is_the_name_of_a_card() {
    for card in Catalogue::builtin().cards() {
        let Some(note) = card.note else { continue };
        for name in note.split('`').skip(1).step_by(2) {
            find(name);
        }
    }
}

#[test]
fn every_sheet_has_sane_values() {
    for card in Catalogue::builtin().cards() {
        let sheet = card.sheet();
        let name = card.name;
        let board_bytes = u64::from(card.board_gib) << 30;
        let share = sheet.total_bytes as f64 / board_bytes as f64;
        assert!(
            (0.85..1.0).contains(&share),
            "{name}: {share:.3} of the board"
        );
        assert!((5..=200).contains(&sheet.multiprocessors), "{name}");
        assert!(
            (750 << 10..=150 << 20).contains(&sheet.l2_cache_bytes),
            "{name}"
        );
        assert!(
            sheet.persisting_l2_cache_max_bytes < sheet.l2_cache_bytes,
            "{name}"
        );
        assert!((600_000..=3_000_000).contains(&sheet.clock_khz), "{name}");
        assert!(
            (700_000..=16_000_000).contains(&sheet.memory_clock_khz),
            "{name}"
        );
        assert!((64..=8192).contains(&sheet.memory_bus_bits), "{name}");
        assert_eq!(sheet.memory_bus_bits % 32, 0, "{name}");
        assert!(sheet.pci_device_number <= 0xffff, "{name}");
        assert_eq!(sheet.name, card.driver_name);
        let overhead = sheet.overhead;
        let all = overhead.context_bytes
            + overhead.kernels_bytes
            + 2 * overhead.blas_handle_bytes
            + overhead.blas_code_bytes
            + 2 * overhead.dnn_handle_bytes
            + overhead.dnn_code_bytes;
        assert!(overhead.context_bytes >= 50 << 20, "{name}");
        assert!(
            all < sheet.total_bytes / 4,
            "{name}: {all} of {}",
            sheet.total_bytes
        );
    }
}

#[test]
fn memory_bandwidth_follows_from_clock_and_bus() {
    // The bandwidths are those of the data sheets, in GB/s: a typing error in either column would show here.
    for (name, bandwidth) in [
        ("1080ti", 484.0),
        ("t4", 320.0),
        ("v100", 900.0),
        ("3060", 360.0),
        ("3090", 936.0),
        ("a100-40", 1555.0),
        ("a100-80", 2039.0),
        ("4090", 1008.0),
        ("l4", 300.0),
        ("l40s", 864.0),
        ("h100", 3350.0),
        ("h200", 4800.0),
        ("b200", 8000.0),
        ("5090", 1792.0),
    ] {
        let card = find(name);
        let computed =
            f64::from(card.memory_clock_khz) * 2.0 * f64::from(card.memory_bus_bits) / 8.0 / 1e6;
        let ratio = computed / bandwidth;
        assert!(
            (0.97..1.03).contains(&ratio),
            "{name}: {computed:.0} for {bandwidth}"
        );
    }
}

#[test]
fn the_h200_is_the_real_one() {
    let sheet = find("h200").sheet();
    assert_eq!(sheet.name, "NVIDIA H200");
    assert_eq!(sheet.capability, Capability::new(9, 0));
    assert_eq!(sheet.total_bytes, 150_109_880_320);
    assert_eq!(sheet.multiprocessors, 132);
    assert_eq!(sheet.l2_cache_bytes, 62_914_560);
    assert_eq!(sheet.persisting_l2_cache_max_bytes, 39_321_600);
    assert_eq!(sheet.clock_khz, 1_980_000);
    assert_eq!(sheet.memory_clock_khz, 3_201_000);
    assert_eq!(sheet.memory_bus_bits, 6_016);
    assert_eq!(sheet.pci_device_number, 0x2335);
    assert!(sheet.ecc_enabled && !sheet.is_integrated);
    assert_eq!(sheet.overhead.context_bytes, 552_402_944);
    let card = find("h200");
    assert_eq!(card.memory_provenance, Provenance::Measured);
    assert_eq!(card.properties_provenance, Provenance::Measured);
    assert_eq!(card.overhead_provenance, Provenance::Measured);
    assert_eq!(card.assumptions(), Vec::<String>::new());
}

#[test]
fn readings_are_taken_at_their_lowest() {
    assert_eq!(find("3060").total_bytes, 11_906 << 20);
    assert_eq!(find("a100-40").total_bytes, 42_404_806_656);
    assert_eq!(find("l4").total_bytes, 23_659_151_360);
    assert_eq!(find("a100").sheet().overhead.context_bytes, 424 << 20);
    assert_eq!(find("a100").overhead_provenance, Provenance::Published);
}

#[test]
fn another_amount_of_memory_changes_nothing_else() {
    let card = find("h200");
    let capped = card.sheet_with_total(11 << 30);
    assert_eq!(capped.total_bytes, 11 << 30);
    assert_eq!(
        crate::DeviceSheet {
            total_bytes: card.total_bytes,
            ..capped
        },
        card.sheet()
    );
}

#[test]
fn what_is_derived_is_said() {
    let card = find("5070");
    assert_eq!(card.memory_provenance, Provenance::Derived);
    assert_eq!(
        card.assumptions(),
        [
            "a program gets 11.41 GiB, derived from the 12 GiB on the board of the RTX 5070",
            "the CUDA context takes 168.00 MiB, an estimate: it is derived from the number of multiprocessors \
             of the RTX 5070",
        ]
    );
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest_cards() {
    for (typed, expected) in [
        ("h20o", "H200"),
        ("3o60", "RTX 3060 12GB"),
        ("rtx 3061", "RTX 3060 12GB"),
        ("a1oo", "A100 SXM4 40GB"),
        ("rtx 4090x", "RTX 4090"),
        ("3600", "RTX 3060 12GB"),
        ("rtx4900", "RTX 4090"),
        ("a1000", "A100 SXM4 40GB"),
        ("2800ti", "RTX 2080 Ti"),
    ] {
        let error = refusal(typed);
        let LookupError::Unknown { name, nearest } = &error else {
            panic!("{typed}: {error}")
        };
        assert_eq!(name, typed);
        assert_eq!(nearest.len(), 3, "{typed}");
        assert!(
            nearest.iter().any(|name| name == expected),
            "{typed}: {nearest:?}"
        );
        nearest
            .iter()
            .for_each(|name| assert_eq!(find(name).name, name));
    }
    for (typed, first) in [
        ("h20o", "H200"),
        ("rtx4900", "RTX 4090"),
        ("a1000", "A100 SXM4 40GB"),
    ] {
        let LookupError::Unknown { nearest, .. } = refusal(typed) else {
            unreachable!()
        };
        assert_eq!(nearest[0], first, "{typed}");
    }
}

#[test]
fn errors_read_as_one_sentence_and_a_hint() {
    let error = refusal("h20o");
    assert_eq!(error.to_string(), "unknown card `h20o`");
    assert_eq!(
        error.hint(),
        "did you mean `H200`, `H20` or `GH200 96GB`? `ghostgpu gpus` lists all cards"
    );
    assert_eq!(refusal("  ").to_string(), "the card name is empty");
}

#[test]
fn cards_that_cannot_run_cuda_are_refused_with_the_reason() {
    let error = refusal("MI300X");
    assert_eq!(
        error.to_string(),
        "`MI300X` is made by AMD, and only NVIDIA cards run CUDA"
    );
    assert_eq!(error.hint(), "`ghostgpu gpus` lists all cards");
    for name in [
        "Instinct MI250X",
        "Radeon RX 7900 XTX",
        "M2 Ultra",
        "m4 max",
        "arc a770",
    ] {
        assert!(
            matches!(refusal(name), LookupError::NotCuda { .. }),
            "{name}"
        );
    }
}

#[test]
fn cards_that_torch_no_longer_supports_are_refused_with_the_reason() {
    assert_eq!(
        refusal("Tesla K80").to_string(),
        "`Tesla K80` has compute capability 3.7, for which current CUDA and PyTorch have no code"
    );
}

/// One of the names that a card is found by, and the card.
fn any_name() -> impl Strategy<Value = (&'static str, &'static str)> {
    let names: Vec<(&str, &str)> = Catalogue::builtin()
        .cards()
        .iter()
        .flat_map(|card| {
            card.aliases
                .iter()
                .copied()
                .chain([card.name])
                .map(|name| (name, card.name))
        })
        .collect();
    prop::sample::select(names)
}

proptest! {
    #[test]
    fn case_and_separators_never_matter(
        (name, card) in any_name(),
        choices in prop::collection::vec((any::<bool>(), prop::sample::select(vec!["", " ", "-", "_", ". "])), 64),
        prefix in prop::sample::select(vec!["", "nvidia ", "NVIDIA-", " Nvidia_"]),
    ) {
        let mut typed = prefix.to_owned();
        for (letter, (upper, separator)) in name.chars().zip(choices) {
            if letter.is_ascii_alphanumeric() {
                typed.push(if upper { letter.to_ascii_uppercase() } else { letter.to_ascii_lowercase() });
            }
            typed.push_str(separator);
        }
        prop_assert_eq!(find(&typed).name, card, "typed {:?}", typed);
    }

    #[test]
    fn no_text_makes_a_lookup_panic(typed in "\\PC{0,40}") {
        match Catalogue::builtin().find(&typed) {
            Ok(card) => prop_assert!(!card.name.is_empty()),
            Err(error) => prop_assert!(!error.hint().is_empty()),
        }
    }
}
