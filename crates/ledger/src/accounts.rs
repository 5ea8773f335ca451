//! What a card's memory consists of at a moment.

use ghostgpu_recording::{Category, Source};

use crate::by_category::ByCategory;
use crate::moment::Moment;

/// Every byte on a card at a moment, each counted once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accounts {
    pub moment: Moment,
    /// Time of the event before the moment, since the first event.
    pub time_us: u64,
    /// Requested bytes of live allocations.
    pub requested: ByCategory,
    /// Bytes of the live blocks; PyTorch's "allocated".
    pub allocated_bytes: u64,
    /// Bytes that the allocator has from the driver; PyTorch's "reserved".
    pub reserved_bytes: u64,
    /// Of what is reserved and not allocated: whole segments, which could be returned to the driver.
    pub releasable_bytes: u64,
    /// Memory outside PyTorch's allocator: the CUDA context and what libraries hold.
    pub outside_bytes: u64,
    /// The part of it that NCCL holds for groups of several ranks.
    pub nccl_bytes: u64,
    /// What other processes of the run held when the card's use was highest.
    pub other_processes_bytes: u64,
}

/// One row of the accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    Category(Category),
    /// The difference between blocks and the requests they serve.
    Rounding,
    /// Reserved, not allocated, and could be returned to the driver.
    Cached,
    /// Reserved, not allocated, and in the same segment as a live block.
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

    /// Whether a recording from this source knows this part.
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

    /// Its name in JSON.
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

    /// Its title in reports.
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

    /// Its title for a rank, which may hold only shards of parameters.
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

    /// Cached bytes in segments that also have a live block: fragmentation keeps them.
    pub fn pinned_bytes(&self) -> u64 {
        self.cached_bytes().saturating_sub(self.releasable_bytes)
    }

    /// The sum of all parts.
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
