//! The allocator's interface to the card's driver. The caller supplies it: a model of a real
//! card, the addresses of a recording, or [`SimpleDriver`](crate::SimpleDriver).

use crate::ids::{Address, PoolId, StreamId};

/// A request for device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverRequest {
    pub bytes: u64,
    pub stream: StreamId,
    pub pool: PoolId,
}

/// The answer of `cudaMemGetInfo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryInfo {
    pub free: u64,
    pub total: u64,
}

/// An event that was recorded on a stream when a block used there was freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedEvent {
    pub stream: StreamId,
    /// Counts up over all streams, from 1.
    pub number: u64,
}

/// Memory that others than the allocator take from the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outside {
    /// A library keeps it for the life of the process.
    Library { bytes: u64 },
    /// The context's memory moves, and grows by `bytes`, when the first kernel is launched.
    FirstKernel { bytes: u64 },
}

/// The driver of one card. `None` and `false` mean that memory is exhausted.
pub trait Driver {
    /// `cudaMalloc`.
    fn allocate(&mut self, request: DriverRequest) -> Option<Address>;

    /// `cudaFree`.
    fn free(&mut self, address: Address, bytes: u64);

    /// Reserves address space for an expandable segment.
    fn reserve(&mut self, request: DriverRequest) -> Option<Address>;

    /// Frees the address space of an expandable segment.
    fn release_reservation(&mut self, address: Address, bytes: u64);

    /// Maps memory to `bytes` from `address` on, in pages of `page_bytes`: all of it or none.
    fn map(&mut self, address: Address, bytes: u64, page_bytes: u64) -> bool;

    /// Unmaps the memory of a range.
    fn unmap(&mut self, address: Address, bytes: u64);

    /// The card's total memory, from its properties: memory fractions refer to it.
    fn total_bytes(&self) -> u64;

    /// `cudaMemGetInfo`.
    fn memory_info(&self) -> MemoryInfo;

    /// Announces how many segments are expected at a time. Most drivers ignore it.
    fn reserve_room(&mut self, _segments: usize) {}

    /// Others take memory, which moves what the allocator gets next. Ignored where addresses are not
    /// modelled.
    fn take_outside(&mut self, _taken: Outside) {}

    /// Whether the card has passed an event. Asked in the order in which events of a stream were
    /// recorded, until the first that it has not.
    fn has_passed(&mut self, event: RecordedEvent) -> bool;
}
