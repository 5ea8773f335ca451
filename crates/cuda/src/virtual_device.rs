//! One virtual card, as this process sees it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use ghostgpu_device::{Budget, CardMemory, DeviceSheet, HostLayout, PAGE_BYTES, StreamOrderedPool};
use ghostgpu_session::memory_log::LogEntry;

use crate::memory_window::Window;
use crate::{allocation_faults, handed_on, observer, state};

/// One virtual card.
pub struct VirtualDevice {
    /// Its place in the machine, before `CUDA_VISIBLE_DEVICES`.
    pub ordinal: usize,
    pub sheet: DeviceSheet,
    pub uuid: [u8; 16],
    memory: Mutex<CardMemory>,
    pool: Mutex<StreamOrderedPool>,
    window: Window,
    has_unlimited_memory: bool,
    has_context: AtomicBool,
    has_kernels: AtomicBool,
    has_blas: AtomicBool,
    has_dnn: AtomicBool,
    has_solver: AtomicBool,
    has_transforms: AtomicBool,
    /// What library handles and streams hold, before rounding to pages.
    object_bytes: AtomicU64,
}

impl VirtualDevice {
    pub fn new(
        ordinal: usize,
        sheet: &DeviceSheet,
        window: Window,
        has_unlimited_memory: bool,
    ) -> Self {
        let pool_bytes = window.bytes / 4;
        let pool_start = window.start + (window.bytes - pool_bytes);
        Self {
            ordinal,
            sheet: sheet.clone(),
            uuid: ghostgpu_device::uuid_of(ordinal),
            memory: Mutex::new(CardMemory::new(
                window.start,
                window.bytes - pool_bytes,
                sheet.overhead.context_bytes,
                HostLayout::default(),
            )),
            pool: Mutex::new(StreamOrderedPool::new(pool_start, pool_bytes)),
            window,
            has_unlimited_memory,
            has_context: AtomicBool::new(false),
            has_kernels: AtomicBool::new(false),
            has_blas: AtomicBool::new(false),
            has_dnn: AtomicBool::new(false),
            has_solver: AtomicBool::new(false),
            has_transforms: AtomicBool::new(false),
            object_bytes: AtomicU64::new(0),
        }
    }

    /// The same card for a forked child: at the same addresses, but empty.
    pub fn for_forked_child(&self) -> Self {
        let inherited = |flag: &AtomicBool| AtomicBool::new(flag.load(Ordering::Acquire));
        Self {
            has_context: inherited(&self.has_context),
            has_kernels: inherited(&self.has_kernels),
            has_blas: inherited(&self.has_blas),
            has_dnn: inherited(&self.has_dnn),
            has_solver: inherited(&self.has_solver),
            has_transforms: inherited(&self.has_transforms),
            ..Self::new(
                self.ordinal,
                &self.sheet,
                self.window,
                self.has_unlimited_memory,
            )
        }
    }

    /// A card at the same addresses, empty and with another sheet.
    pub fn with_sheet(&self, sheet: &DeviceSheet, has_unlimited_memory: bool) -> Self {
        Self::new(self.ordinal, sheet, self.window, has_unlimited_memory)
    }

    pub fn owns(&self, address: u64) -> bool {
        address >= self.window.start && address - self.window.start < self.window.bytes
    }

    pub fn memory(&self) -> MutexGuard<'_, CardMemory> {
        // A panic while holding the lock is our bug; the accounting is still the best there is.
        self.memory
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The default stream-ordered pool.
    pub fn pool(&self) -> MutexGuard<'_, StreamOrderedPool> {
        self.pool
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub fn used_bytes(&self) -> u64 {
        state::usage().map_or(0, |usage| usage.used_bytes(self.ordinal))
    }

    pub fn peak_bytes(&self) -> u64 {
        state::usage().map_or(0, |usage| usage.peak_bytes(self.ordinal))
    }

    /// What each process of the run uses on this card, as NVML reports it: (process id, bytes).
    pub fn used_by_process(&self) -> Vec<(u32, u64)> {
        let Some(usage) = state::usage() else {
            return Vec::new();
        };
        let mut processes = usage.used_by_process(self.ordinal);
        for (_, used) in &mut processes {
            *used = used.saturating_sub(self.sheet.overhead.driver_bytes);
        }
        processes
    }

    /// Free memory as `cudaMemGetInfo` reports it. A card with unlimited memory that holds more than it has
    /// reports that nothing is free.
    pub fn free_bytes(&self) -> u64 {
        self.sheet.total_bytes.saturating_sub(self.used_bytes())
    }

    pub fn has_context(&self) -> bool {
        self.has_context.load(Ordering::Acquire)
    }

    pub fn ensure_context(&self) {
        self.charge_once(&self.has_context, self.sheet.overhead.context_bytes);
    }

    /// The first kernel launch makes the context larger, whichever kernel it is.
    pub fn note_kernel_use(&self) {
        handed_on::forget_all();
        self.ensure_context();
        let bytes = self.sheet.overhead.kernels_bytes;
        if self.charge_once(&self.has_kernels, bytes) {
            self.memory().note_first_kernel(bytes);
            observer::write(LogEntry::FirstKernel {
                device: self.ordinal as u8,
                context_bytes: self.sheet.overhead.context_bytes,
                bytes,
            });
        }
    }

    /// The first matrix product loads cuBLAS's code onto the card.
    pub fn note_blas_use(&self) {
        self.charge_once(&self.has_blas, self.sheet.overhead.blas_code_bytes);
    }

    /// The first cuDNN operation loads cuDNN's code onto the card.
    pub fn note_dnn_use(&self) {
        self.charge_once(&self.has_dnn, self.sheet.overhead.dnn_code_bytes);
    }

    /// A plan for a convolution loads cuDNN's code before it runs, and the first page of it is allocated before the
    /// plan's workspace. Where the rest goes depends on the kernels that follow, and is not known. Plans for attention
    /// take no such page.
    pub fn note_convolution_plan(&self) {
        if self.charge_once(&self.has_dnn, self.sheet.overhead.dnn_code_bytes) {
            self.take_addresses_for_library(PAGE_BYTES);
        }
    }

    /// The first cuSOLVER handle loads cuSOLVER's code and buffers onto the card.
    pub fn note_solver_use(&self) {
        self.charge_once(&self.has_solver, self.sheet.overhead.solver_bytes);
    }

    /// The first cuFFT plan loads cuFFT's code onto the card.
    pub fn note_transform_use(&self) {
        self.charge_once(&self.has_transforms, self.sheet.overhead.transform_bytes);
    }

    /// Charges overhead the first time only. It is charged even when the card is full: the real
    /// driver would fail here with an error that PyTorch cannot recover from, and the user is
    /// better served by the out-of-memory error that follows.
    /// Returns whether it was the first time.
    fn charge_once(&self, flag: &AtomicBool, bytes: u64) -> bool {
        if flag.load(Ordering::Acquire) || flag.swap(true, Ordering::AcqRel) {
            return false;
        }
        if let Some(usage) = state::usage() {
            usage.charge(self.ordinal, bytes, None);
        }
        true
    }

    /// Charges whole pages for objects that share them.
    pub fn charge_object(&self, bytes: u64) {
        let Some(usage) = state::usage() else {
            return;
        };
        let before = self.object_bytes.fetch_add(bytes, Ordering::AcqRel);
        let pages = |total: u64| total.div_ceil(PAGE_BYTES);
        let new_pages = pages(before + bytes) - pages(before);
        if new_pages > 0 {
            usage.charge(self.ordinal, new_pages * PAGE_BYTES, None);
            self.take_addresses_for_library(new_pages * PAGE_BYTES);
        }
    }

    /// Takes addresses for library memory that has been charged, and logs it for replays.
    fn take_addresses_for_library(&self, bytes: u64) {
        self.memory().note_library_memory(bytes);
        observer::write(LogEntry::LibraryMemory {
            device: self.ordinal as u8,
            bytes,
        });
    }
}

impl Budget for VirtualDevice {
    fn charge(&self, bytes: u64) -> bool {
        if allocation_faults::next_fails() {
            return false;
        }
        let limit = (!self.has_unlimited_memory).then_some(self.sheet.total_bytes);
        state::usage().is_some_and(|usage| usage.charge(self.ordinal, bytes, limit))
    }

    fn release(&self, bytes: u64) {
        if let Some(usage) = state::usage() {
            usage.release(self.ordinal, bytes);
        }
    }
}
