//! What differs between releases of PyTorch, as one table.

use std::fmt;
use std::str::FromStr;

/// A release of PyTorch: major and minor number. Patch releases behave alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release {
    pub major: u16,
    pub minor: u16,
}

/// How equal sizes are ordered among free blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TieBreak {
    /// Lower address first (up to 2.11).
    Address,
    /// The block object that was constructed earlier (2.12).
    ConstructionOrder,
    /// The older segment, inside one the lower address (from 2.13).
    SegmentThenAddress,
}

/// When a failed allocation tries the pools opened with `use_on_oom`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UseOnOom {
    Never,
    /// After the cache was flushed (2.8 to 2.10).
    AfterFlush,
    /// Before anything is released (from 2.11).
    BeforeRelease,
}

/// How a memory fraction becomes a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FractionRule {
    /// Rounded down; also a fraction of 1 is a limit (up to 2.9).
    AlwaysFloor,
    /// Rounded down; 1 means no limit (2.10 to 2.12).
    FloorBelowOne,
    /// Rounded to the nearest; 1 means no limit (from 2.13).
    RoundBelowOne,
}

/// The behaviour of one release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Behaviour {
    pub tie_break: TieBreak,
    pub use_on_oom: UseOnOom,
    pub fraction: FractionRule,
    /// Up to 2.3 a division of 1 left requests above 512 bytes unrounded.
    pub one_division_leaves_unrounded: bool,
    /// From 2.10 what counts is whether the pool can have expandable segments; before, the option.
    pub expandable_follows_pool: bool,
    /// From 2.10 nested pool scopes are checked newest first.
    pub newest_scope_first: bool,
    /// Up to 2.12 any open pool scope suspends event polling and flushing for the whole device.
    pub scopes_suspend_flushing: bool,
    /// From 2.8 releasing oversize blocks passes over expandable ones.
    pub oversize_release_skips_expandable: bool,
    /// From 2.12: `throw_on_cudamalloc_oom`.
    pub can_reject_early: bool,
    /// From 2.13: `reserved_bytes_by_private_pools`.
    pub counts_private_pools: bool,
    /// From 2.3: `num_device_alloc`, `num_device_free`, `num_sync_all_streams`.
    pub counts_driver_calls: bool,
    /// From 2.9 an `empty_cache` inside a pool scope is allowed.
    pub flush_inside_scope_allowed: bool,
}

impl Release {
    /// The oldest release whose traces can exist.
    pub const OLDEST: Self = Self::new(2, 0);
    /// The release the behaviour was read from in full.
    pub const REFERENCE: Self = Self::new(2, 11);
    /// The newest release whose behaviour was checked.
    pub const NEWEST_CHECKED: Self = Self::new(2, 15);

    #[must_use]
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }

    /// Whether the replica has not been compared with this release. It is assumed to behave like the
    /// newest (or oldest) one that is known.
    #[must_use]
    pub fn is_unchecked(self) -> bool {
        self < Self::OLDEST || self > Self::NEWEST_CHECKED
    }

    pub(crate) fn at_least(self, minor: u16) -> bool {
        self >= Self::new(2, minor)
    }

    #[must_use]
    pub fn behaviour(self) -> Behaviour {
        Behaviour {
            tie_break: match self {
                _ if self.at_least(13) => TieBreak::SegmentThenAddress,
                _ if self.at_least(12) => TieBreak::ConstructionOrder,
                _ => TieBreak::Address,
            },
            use_on_oom: match self {
                _ if self.at_least(11) => UseOnOom::BeforeRelease,
                _ if self.at_least(8) => UseOnOom::AfterFlush,
                _ => UseOnOom::Never,
            },
            fraction: match self {
                _ if self.at_least(13) => FractionRule::RoundBelowOne,
                _ if self.at_least(10) => FractionRule::FloorBelowOne,
                _ => FractionRule::AlwaysFloor,
            },
            one_division_leaves_unrounded: !self.at_least(4),
            expandable_follows_pool: self.at_least(10),
            newest_scope_first: self.at_least(10),
            scopes_suspend_flushing: !self.at_least(13),
            oversize_release_skips_expandable: self.at_least(8),
            can_reject_early: self.at_least(12),
            counts_private_pools: self.at_least(13),
            counts_driver_calls: self.at_least(3),
            flush_inside_scope_allowed: self.at_least(9),
        }
    }
}

impl fmt::Display for Release {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.major, self.minor)
    }
}

/// A text that does not begin with two numbers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a PyTorch version such as 2.11 or 2.11.0+cu130")]
pub struct NotARelease(pub String);

impl FromStr for Release {
    type Err = NotARelease;

    fn from_str(text: &str) -> Result<Self, NotARelease> {
        let refuse = || NotARelease(text.to_owned());
        let mut parts = text.trim().split('.');
        let number = |part: Option<&str>| -> Option<u16> {
            let part = part?;
            let digits = part
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(part.len());
            part[..digits].parse().ok()
        };
        let major = number(parts.next()).ok_or_else(refuse)?;
        let minor = number(parts.next()).ok_or_else(refuse)?;
        Ok(Self { major, minor })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_with_a_build_tag_is_read() {
        assert_eq!("2.11.0+cu130".parse(), Ok(Release::new(2, 11)));
        assert_eq!("2.15.0a0+git".parse(), Ok(Release::new(2, 15)));
        assert!("two".parse::<Release>().is_err());
    }

    #[test]
    fn equal_sizes_are_ordered_as_each_release_does() {
        let tie = |minor| Release::new(2, minor).behaviour().tie_break;
        assert_eq!(tie(8), TieBreak::Address);
        assert_eq!(tie(11), TieBreak::Address);
        assert_eq!(tie(12), TieBreak::ConstructionOrder);
        assert_eq!(tie(13), TieBreak::SegmentThenAddress);
        assert_eq!(Release::new(3, 0).behaviour().tie_break, tie(15));
    }
}
