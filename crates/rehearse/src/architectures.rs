//! Which cards the code in a torch build can run on.

use ghostgpu_device::Capability;

/// Whether code for any of these architectures (`sm_80`, `compute_90`, …) runs on a card.
///
/// The rules are those of NVIDIA's compiler: machine code (`sm_XY`) runs on its own major version
/// from its own minor version up; portable code (`compute_XY`) on everything from its version up.
/// The suffix `a` pins either to exactly one version, the suffix `f` to one major version. An
/// empty list says nothing, so it rules nothing out.
pub fn runs_on(architectures: &[String], card: Capability) -> bool {
    architectures.is_empty()
        || architectures
            .iter()
            .any(|architecture| one_runs_on(architecture, card))
}

fn one_runs_on(architecture: &str, card: Capability) -> bool {
    let Some((kind, version)) = architecture.split_once('_') else {
        return false;
    };
    let digits = version.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let suffix = &version[digits.len()..];
    let Ok(number) = digits.parse::<u32>() else {
        return false;
    };
    let code = Capability::new(number / 10, number % 10);
    match (kind, suffix) {
        (_, "a") => code == card,
        ("sm", _) | (_, "f") => code.major == card.major && code.minor <= card.minor,
        ("compute", _) => code <= card,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(architectures: &str, card: (u32, u32)) -> bool {
        let list: Vec<String> = architectures
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        runs_on(&list, Capability::new(card.0, card.1))
    }

    #[test]
    fn machine_code_runs_on_later_minor_versions_of_its_major_version() {
        assert!(check("sm_75 sm_80", (8, 6)));
        assert!(check("sm_86", (8, 6)));
        assert!(!check("sm_86", (8, 0)));
        assert!(!check("sm_75 sm_80 sm_90", (6, 1)));
        assert!(!check("sm_90", (10, 0)));
        assert!(check("sm_100 sm_120", (12, 0)));
    }

    #[test]
    fn portable_code_runs_on_everything_later() {
        assert!(check("sm_80 compute_90", (12, 1)));
        assert!(!check("compute_90", (8, 9)));
    }

    #[test]
    fn suffixes_narrow_what_code_runs_on() {
        assert!(check("sm_90a", (9, 0)));
        assert!(!check("compute_90a", (10, 0)));
        assert!(check("sm_100f", (10, 3)));
        assert!(!check("compute_100f", (12, 0)));
    }

    #[test]
    fn nothing_known_rules_nothing_out() {
        assert!(check("", (3, 5)));
        assert!(!check("gfx90a nonsense sm_x", (9, 0)));
    }
}
