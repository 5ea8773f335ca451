//! Which releases of PyTorch word a message in a certain way.

use std::fmt;

use serde::{Serialize, Serializer};

/// The major and minor number of a release.
pub type Release = (u32, u32);

/// The releases that word a message this way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wording {
    pub first: Release,
    pub last: Last,
    /// The allocator setting that it needs.
    pub setting: Option<&'static str>,
}

/// The last release with a wording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Last {
    /// The first has it alone.
    Same,
    Release(Release),
    /// The newest still have it.
    Open,
}

impl Wording {
    pub(crate) const fn of(first: Release, last: Last) -> Self {
        Self {
            first,
            last,
            setting: None,
        }
    }

    pub(crate) const fn only(release: Release) -> Self {
        Self::of(release, Last::Same)
    }

    pub(crate) const fn since(first: Release) -> Self {
        Self::of(first, Last::Open)
    }

    pub(crate) const fn until(first: Release, last: Release) -> Self {
        Self::of(first, Last::Release(last))
    }

    /// Whether every release with this wording is older.
    pub(crate) fn is_before(self, release: Release) -> bool {
        match self.last {
            Last::Same => self.first < release,
            Last::Release(last) => last < release,
            Last::Open => false,
        }
    }
}

/// `1.10`.
pub fn release_text((major, minor): Release) -> String {
    format!("{major}.{minor}")
}

impl fmt::Display for Wording {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "PyTorch {}", release_text(self.first))?;
        match self.last {
            Last::Same => {}
            Last::Release(last) => write!(out, " to {}", release_text(last))?,
            Last::Open => out.write_str(" or newer")?,
        }
        match self.setting {
            Some(setting) => write!(out, ", {setting}"),
            None => Ok(()),
        }
    }
}

impl Serialize for Wording {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wording_names_its_releases() {
        let with_setting = Wording {
            setting: Some("backend:cudaMallocAsync"),
            ..Wording::since((2, 0))
        };
        for (wording, text) in [
            (Wording::only((2, 10)), "PyTorch 2.10"),
            (Wording::until((1, 0), (1, 3)), "PyTorch 1.0 to 1.3"),
            (
                with_setting,
                "PyTorch 2.0 or newer, backend:cudaMallocAsync",
            ),
        ] {
            assert_eq!(wording.to_string(), text);
        }
    }

    #[test]
    fn only_a_wording_that_has_ended_is_before_a_release() {
        assert!(Wording::until((1, 8), (2, 0)).is_before((2, 1)));
        assert!(!Wording::until((1, 8), (2, 10)).is_before((2, 9)));
        assert!(Wording::only((2, 1)).is_before((2, 10)));
        assert!(!Wording::since((1, 0)).is_before((2, 1)));
    }
}
