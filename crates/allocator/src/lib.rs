//! PyTorch's CUDA caching allocator, bit for bit, without PyTorch and without a card.
//!
//! [`Allocator`] takes the operations of a program (allocate, free, use on another stream, flush) and
//! does what PyTorch's allocator does with them: the same blocks at the same addresses, the same calls
//! to the driver, the same figures in `memory_stats`, the same sentence when memory runs out. Releases
//! differ, mostly in which of several equally large free blocks is taken; [`Release`] is the table of
//! these differences.
//!
//! The crate is pure: no files, no global state, no clock, no `unsafe`. What the card's driver answers
//! is supplied by the caller through [`Driver`]; [`SimpleDriver`] is a card with a capacity and
//! ascending addresses. What the allocator does goes to a [`TraceSink`] as the entries that PyTorch's
//! memory history has.
//!
//! ```
//! use ghostgpu_allocator::{Allocator, Release, Settings, SimpleDriver, StreamId};
//!
//! let release: Release = "2.11.0+cu130".parse()?;
//! let settings = Settings::parse("max_split_size_mb:128", release)?;
//! let driver = SimpleDriver::new(80 << 30);
//! let mut allocator = Allocator::new(release, settings, driver);
//!
//! let tensor = allocator.malloc(3_000_000, StreamId::DEFAULT)?;
//! assert_eq!(tensor.size, 3_000_320);
//! assert_eq!(allocator.stats().reserved_bytes.all.current, 20 << 20);
//!
//! allocator.free(tensor.address)?;
//! allocator.empty_cache()?;
//! assert_eq!(allocator.stats().reserved_bytes.all.current, 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Parts
//!
//! * [`Release`]: a version of PyTorch, and how it behaves.
//! * [`Settings`]: `PYTORCH_CUDA_ALLOC_CONF`, read as that version reads it, refused with its words.
//! * [`Driver`]: what gives addresses. [`SimpleDriver`] is the built-in one.
//! * [`Allocator`]: [`malloc`](Allocator::malloc), [`free`](Allocator::free),
//!   [`record_stream`](Allocator::record_stream), [`empty_cache`](Allocator::empty_cache),
//!   [`set_memory_fraction`](Allocator::set_memory_fraction), private pools
//!   ([`begin_scope`](Allocator::begin_scope), [`end_scope`](Allocator::end_scope),
//!   [`release_pool`](Allocator::release_pool)); [`stats`](Allocator::stats) and
//!   [`segments`](Allocator::segments) to look at it.
//! * [`OutOfMemory`]: what was known when a request failed, and [`its sentence`](OutOfMemory::text).
//! * [`Refusal`]: why no cached block served a request.
//! * [`TraceSink`]: where trace entries go.
//!
//! # Events
//!
//! A block that another stream uses ([`Allocator::record_stream`]) is not free before that stream has
//! passed an event. The allocator records the event in its own books when the block is freed, and asks
//! [`Driver::has_passed`] at the next allocation, where PyTorch asks the card.
//!
//! # Speed
//!
//! Blocks live in one array, a cache line each; free blocks in bins by size, whose first block is found
//! by two steps through a map of bits. Once these have reached their size, allocating and freeing touches
//! no heap; [`Allocator::reserve`] lets them reach it before. A caller who keeps the [`BlockId`] of each
//! [`Allocation`] spares the replica a table of addresses ([`Allocator::without_addresses`]), as replays
//! do. `cargo run --release -p ghostgpu-allocator --example speed` measures it.

#![forbid(unsafe_code)]

mod allocator;
mod driver;
mod ids;
mod oom_text;
mod pools;
mod refusal;
mod release;
pub mod replay;
pub mod rounding;
mod settings;
mod simple_driver;
mod stats;
mod structures;
mod trace;

pub use allocator::{
    AdoptError, AllocError, Allocation, Allocator, BlockImage, BlockState, BlockView,
    InvalidPointer, Request, Room, SegmentImage, SegmentView, StreamIdentity,
};
pub use driver::{Driver, DriverRequest, MemoryInfo, Outside, RecordedEvent};
pub use ids::{Address, BlockId, PoolId, PoolKind, StreamId, ThreadId};
pub use oom_text::{OutOfMemory, ProcessOnCard, size_text};
pub use pools::{PoolError, PoolOptions, ScopeFilter};
pub use refusal::{CachedBlocks, PinnedSegment, Refusal, Wanted, WhyNot};
pub use release::{Behaviour, FractionRule, NotARelease, Release, TieBreak, UseOnOom};
pub use settings::{
    PinnedSettings, PythonException, ReserveSize, Settings, SettingsError, SnapshotSettings,
    UNLIMITED,
};
pub use simple_driver::SimpleDriver;
pub use stats::{Stat, StatArray, Stats};
pub use trace::{Action, NoTrace, TraceEvent, TraceSink};
