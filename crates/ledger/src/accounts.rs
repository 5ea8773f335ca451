//! What a card's memory is made of at a moment.

use ghostgpu_recording::{Category, Source};

use crate::by_category::ByCategory;
use crate::moment::Moment;

/// Every byte on a card at a moment, each counted once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accounts {
    pub moment: Moment,
    /// Time of the event before the moment, since the first.
    pub time_us: u64,
    /// What was asked for by what is live.
    pub requested: ByCategory,
    /// Bytes of the live blocks; PyTorch's "allocated".
    pub allocated_bytes: u64,
    /// Bytes that the allocator has from the driver; PyTorch's "reserved".
    pub reserved_bytes: u64,
    /// Of what is reserved and not allocated: whole segments, which could go back to the driver.
    pub releasable_bytes: u64,
    /// Not from PyTorch's allocator: the CUDA context and what libraries hold.
    pub outside_bytes: u64,
    /// Of that, what NCCL holds for groups of several ranks.
    pub nccl_bytes: u64,
    /// What other processes of the run held when the card's use was highest.
    pub other_processes_bytes: u64,
}

/// One row of the accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    Category(Category),
    /// Blocks are larger than what was asked for.
    Rounding,
    /// Reserved, not allocated, and free to go back to the driver.
    Cached,
    /// Reserved, not allocated, and beside a live block in its segment.
    CachedPinned,
    /// The CUDA context and what libraries hold.
    Outside,
    /// What NCCL holds for groups of several ranks.
    Nccl,
    /// What other processes of the run held when the card's use was highest.
    OtherProcesses,
}

impl Part {
    /// All of them, in the order in which reports show them.
    pub fn all() -> impl Iterator<Item = Self> {
        Category::ALL.into_iter().map(Self::Category).chain([
            Self::Rounding,
            Self::Cached,
            Self::CachedPinned,
            Self::Outside,
            Self::Nccl,
            Self::OtherProcesses,
        ])
    }

    /// Whether a recording from this source can say how much of it there is.
    pub fn is_known_to(self, source: Source) -> bool {
        match self {
            Self::Category(category) => category.is_known_to(source),
            Self::Outside | Self::Nccl | Self::OtherProcesses => source == Source::Rehearsal,
            Self::Rounding | Self::Cached | Self::CachedPinned => true,
        }
    }

    /// The part with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|part| part.name() == name)
    }

    /// The word for it in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Category(category) => category.name(),
            Self::Rounding => "rounding",
            Self::Cached => "cached",
            Self::CachedPinned => "cached_unusable",
            Self::Outside => "context",
            Self::Nccl => "nccl",
            Self::OtherProcesses => "other_processes",
        }
    }

    /// The words for it in reports.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Category(category) => category.title(),
            Self::Rounding => "rounding of blocks",
            Self::Cached => "cached, unused",
            Self::CachedPinned => "cached, held by fragmentation",
            Self::Outside => "CUDA context and libraries",
            Self::Nccl => "NCCL",
            Self::OtherProcesses => "other processes",
        }
    }

    /// The words for it in the memory of a rank that may hold parts of parameters only.
    pub fn title_of_rank(self, is_sharded: bool) -> String {
        let is_part = matches!(
            self,
            Self::Category(Category::Parameter | Category::Gradient | Category::OptimizerState)
        );
        match is_part && is_sharded {
            true => format!("sharded {}", self.title()),
            false => self.title().to_owned(),
        }
    }
}

impl Accounts {
    pub fn requested_bytes(&self) -> u64 {
        self.requested.total()
    }

    pub fn rounding_bytes(&self) -> u64 {
        self.allocated_bytes.saturating_sub(self.requested_bytes())
    }

    /// Reserved and not allocated.
    pub fn cached_bytes(&self) -> u64 {
        self.reserved_bytes.saturating_sub(self.allocated_bytes)
    }

    /// Of the cached bytes, those beside a live block in its segment: fragmentation keeps them.
    pub fn pinned_bytes(&self) -> u64 {
        self.cached_bytes().saturating_sub(self.releasable_bytes)
    }

    /// All of it: the sum of the parts.
    pub fn on_card_bytes(&self) -> u64 {
        let from_allocator = self.reserved_bytes.max(self.allocated_bytes);
        from_allocator
            .saturating_add(self.outside_bytes)
            .saturating_add(self.other_processes_bytes)
    }

    pub fn part(&self, part: Part) -> u64 {
        match part {
            Part::Category(category) => self.requested.get(category),
            Part::Rounding => self.rounding_bytes(),
            Part::Cached => self.releasable_bytes,
            Part::CachedPinned => self.pinned_bytes(),
            Part::Outside => self.outside_bytes.saturating_sub(self.nccl_bytes),
            Part::Nccl => self.nccl_bytes.min(self.outside_bytes),
            Part::OtherProcesses => self.other_processes_bytes,
        }
    }

    /// The parts, which add up to [`Self::on_card_bytes`].
    pub fn parts(&self) -> impl Iterator<Item = (Part, u64)> + '_ {
        Part::all().map(|part| (part, self.part(part)))
    }
}
