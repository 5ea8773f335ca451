//! The virtual machine room: the cards of this run and what this process holds on them.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, RwLock};

use ghostgpu_device::{
    Budget, Capability, CardMemory, DeviceSheet, Overhead, PAGE_BYTES, StreamOrderedPool,
};
use ghostgpu_session::{SESSION_VARIABLE, Session};

use crate::clock;
use crate::handed_on;
use crate::ledger::Ledger;
use crate::memory_window;
use crate::visible_devices;

/// One virtual card.
pub struct VirtualDevice {
    /// Its place in the machine, before `CUDA_VISIBLE_DEVICES`.
    pub ordinal: usize,
    pub sheet: DeviceSheet,
    pub uuid: [u8; 16],
    memory: Mutex<CardMemory>,
    pool: Mutex<StreamOrderedPool>,
    window_start: u64,
    window_bytes: u64,
    is_elastic: bool,
    has_context: AtomicBool,
    has_kernels: AtomicBool,
    has_blas: AtomicBool,
    has_dnn: AtomicBool,
    has_solver: AtomicBool,
    has_transforms: AtomicBool,
    /// What library handles and streams hold, before rounding to pages.
    object_bytes: AtomicU64,
}

struct Room {
    session: Session,
    devices: Vec<VirtualDevice>,
    /// Indices into `devices`, in the order the process sees them.
    visible: Vec<usize>,
    ledger: Ledger,
}

static ROOM: OnceLock<Option<Room>> = OnceLock::new();

/// The room, opened at the first CUDA call. `None` without a session: then there are no devices.
fn room() -> Option<&'static Room> {
    ROOM.get_or_init(open_room).as_ref()
}

fn open_room() -> Option<Room> {
    let path = PathBuf::from(std::env::var_os(SESSION_VARIABLE)?);
    let session = match Session::load(&path) {
        Ok(session) => session,
        Err(error) => {
            eprintln!("ghostgpu: {error}");
            return None;
        }
    };
    let Some(ledger) = Ledger::open(&session.run_dir) else {
        eprintln!("ghostgpu: the memory ledger of this run cannot be opened, so it has no device");
        return None;
    };
    let windows = memory_window::reserve(&session.devices)?;
    let devices: Vec<VirtualDevice> = session
        .devices
        .iter()
        .zip(windows)
        .enumerate()
        .map(|(ordinal, (sheet, window))| VirtualDevice {
            ordinal,
            sheet: sheet.clone(),
            uuid: uuid_of(ordinal),
            memory: Mutex::new(CardMemory::new(
                window.start,
                window.bytes - window.bytes / 4,
                sheet.overhead.context_bytes,
            )),
            pool: Mutex::new(StreamOrderedPool::new(
                window.start + (window.bytes - window.bytes / 4),
                window.bytes / 4,
            )),
            window_start: window.start,
            window_bytes: window.bytes,
            is_elastic: session.elastic,
            has_context: AtomicBool::new(false),
            has_kernels: AtomicBool::new(false),
            has_blas: AtomicBool::new(false),
            has_dnn: AtomicBool::new(false),
            has_solver: AtomicBool::new(false),
            has_transforms: AtomicBool::new(false),
            object_bytes: AtomicU64::new(0),
        })
        .collect();
    let wanted = std::env::var("CUDA_VISIBLE_DEVICES").ok();
    let uuids: Vec<[u8; 16]> = devices.iter().map(|device| device.uuid).collect();
    let visible = visible_devices::select(wanted.as_deref(), &uuids);
    Some(Room {
        session,
        devices,
        visible,
        ledger,
    })
}

/// Each card's own number, recognisable as ours: the bytes spell "ghostgpu".
fn uuid_of(ordinal: usize) -> [u8; 16] {
    let mut uuid = *b"ghostgpu\0\0\0\0\0\0\0\0";
    uuid[8..].copy_from_slice(&(ordinal as u64 + 1).to_be_bytes());
    uuid
}

pub fn session() -> Option<&'static Session> {
    room().map(|room| &room.session)
}

static OTHER_RUN_DIR: RwLock<Option<PathBuf>> = RwLock::new(None);

/// The folder of the run that this process belongs to.
pub fn run_dir() -> Option<PathBuf> {
    let other = OTHER_RUN_DIR.read().ok()?.clone();
    other.or_else(|| Some(session()?.run_dir.clone()))
}

/// Moves this process, a forked copy of the script, into a run of its own, with everything it holds
/// on the cards. False if that run's folder cannot be used.
pub fn continue_in(run_dir: PathBuf) -> bool {
    let is_moved = room().is_none_or(|room| room.ledger.continue_in(&run_dir));
    if is_moved && let Ok(mut other) = OTHER_RUN_DIR.write() {
        *other = Some(run_dir);
    }
    is_moved
}

/// All cards of the machine, whether or not `CUDA_VISIBLE_DEVICES` shows them to this process.
pub fn devices() -> &'static [VirtualDevice] {
    room().map_or(&[], |room| &room.devices)
}

pub fn visible_count() -> usize {
    room().map_or(0, |room| room.visible.len())
}

/// The card that this process knows under that number.
pub fn visible_device(index: i32) -> Option<&'static VirtualDevice> {
    let room = room()?;
    let ordinal = *room.visible.get(usize::try_from(index).ok()?)?;
    room.devices.get(ordinal)
}

thread_local! {
    static CURRENT: Cell<i32> = const { Cell::new(0) };
}

/// The number of the calling thread's current device.
pub fn current_index() -> i32 {
    CURRENT.get()
}

pub fn set_current_index(index: i32) {
    CURRENT.set(index);
}

pub fn current_device() -> Option<&'static VirtualDevice> {
    visible_device(current_index())
}

/// The data sheet of the calling thread's current device.
pub fn current_sheet() -> Option<&'static DeviceSheet> {
    current_device().map(|device| &device.sheet)
}

/// The current device, with its context made if it was not there yet.
pub fn current_with_context() -> Option<&'static VirtualDevice> {
    let device = current_device()?;
    device.ensure_context();
    Some(device)
}

/// The first matrix product loads cuBLAS's code onto the card.
pub fn note_blas_use() {
    if let Some(device) = current_with_context() {
        device.note_kernel_use();
        device.charge_once(&device.has_blas, device.sheet.overhead.blas_code_bytes);
    }
}

/// The first cuDNN operation loads cuDNN's code onto the card.
pub fn note_dnn_use() {
    if let Some(device) = current_with_context() {
        device.note_kernel_use();
        device.charge_once(&device.has_dnn, device.sheet.overhead.dnn_code_bytes);
    }
}

/// The first cuSOLVER handle brings its code and buffers onto the card.
pub fn note_solver_use() {
    if let Some(device) = current_with_context() {
        device.charge_once(&device.has_solver, device.sheet.overhead.solver_bytes);
    }
}

/// The first cuFFT plan brings its code onto the card.
pub fn note_transform_use() {
    if let Some(device) = current_with_context() {
        device.charge_once(
            &device.has_transforms,
            device.sheet.overhead.transform_bytes,
        );
    }
}

/// Charges what a library's handle or a stream holds on the current device. The handles live as long
/// as the process: PyTorch keeps them in pools.
pub fn note_new_object(bytes_of: impl FnOnce(&Overhead) -> u64) {
    if let Some(device) = current_with_context() {
        device.charge_object(bytes_of(&device.sheet.overhead));
    }
}

/// The visible device whose address range holds `address`, with its number.
pub fn device_of_address(address: u64) -> Option<(i32, &'static VirtualDevice)> {
    let room = room()?;
    room.visible
        .iter()
        .enumerate()
        .find_map(|(index, &ordinal)| {
            let device = &room.devices[ordinal];
            device.owns(address).then_some((index as i32, device))
        })
}

impl VirtualDevice {
    pub fn owns(&self, address: u64) -> bool {
        address >= self.window_start && address - self.window_start < self.window_bytes
    }

    pub fn memory(&self) -> MutexGuard<'_, CardMemory> {
        // A panic while holding the lock is a bug of ours; the books are still the best we have.
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
        room().map_or(0, |room| room.ledger.used_bytes(self.ordinal))
    }

    pub fn peak_bytes(&self) -> u64 {
        room().map_or(0, |room| room.ledger.peak_bytes(self.ordinal))
    }

    /// What each process of the run uses on this card, as NVML tells it: (process number, bytes).
    pub fn used_by_process(&self) -> Vec<(u32, u64)> {
        let Some(room) = room() else {
            return Vec::new();
        };
        let mut processes = room.ledger.used_by_process(self.ordinal);
        for (_, used) in &mut processes {
            *used = used.saturating_sub(self.sheet.overhead.driver_bytes);
        }
        processes
    }

    /// Free memory as `cudaMemGetInfo` reports it. An elastic card that holds more than it has
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

    /// The first launch loads code onto the card.
    pub fn note_kernel_use(&self) {
        clock::pass(1);
        handed_on::forget_all();
        self.ensure_context();
        let bytes = self.sheet.overhead.kernels_bytes;
        if self.charge_once(&self.has_kernels, bytes) {
            self.memory().note_first_kernel(bytes);
        }
    }

    /// Charges overhead the first time only. It is charged even when the card is full: the real
    /// driver would fail here with an error that PyTorch cannot recover from, and the user is
    /// better served by the out-of-memory error that follows.
    /// True when it was the first time.
    fn charge_once(&self, flag: &AtomicBool, bytes: u64) -> bool {
        if flag.load(Ordering::Acquire) || flag.swap(true, Ordering::AcqRel) {
            return false;
        }
        if let Some(room) = room() {
            room.ledger.charge(self.ordinal, bytes, None);
        }
        true
    }

    /// Charges whole pages for objects that share them.
    fn charge_object(&self, bytes: u64) {
        let Some(room) = room() else { return };
        let before = self.object_bytes.fetch_add(bytes, Ordering::AcqRel);
        let pages = |total: u64| total.div_ceil(PAGE_BYTES);
        let new_pages = pages(before + bytes) - pages(before);
        if new_pages > 0 {
            room.ledger
                .charge(self.ordinal, new_pages * PAGE_BYTES, None);
            self.memory().note_library_memory(new_pages * PAGE_BYTES);
        }
    }
}

impl Budget for VirtualDevice {
    fn charge(&self, bytes: u64) -> bool {
        let limit = (!self.is_elastic).then_some(self.sheet.total_bytes);
        room().is_some_and(|room| room.ledger.charge(self.ordinal, bytes, limit))
    }

    fn release(&self, bytes: u64) {
        if let Some(room) = room() {
            room.ledger.release(self.ordinal, bytes);
        }
    }
}

static CODE_ARCHITECTURES: RwLock<Vec<u32>> = RwLock::new(Vec::new());

pub fn set_code_architectures(mut numbers: Vec<u32>) {
    numbers.sort_unstable();
    if let Ok(mut known) = CODE_ARCHITECTURES.write() {
        *known = numbers;
    }
}

/// The architecture of the code that a kernel of the installed torch runs as on this card: the
/// newest one of the same major version that is not newer than the card, or else the newest older one.
///
/// A card that is older than all code gets the oldest: it could not run it, which the command line
/// says, but its memory is still asked about.
pub fn code_architecture(capability: Capability) -> u32 {
    let own = capability.as_arch_number();
    let Ok(known) = CODE_ARCHITECTURES.read() else {
        return own;
    };
    let not_newer = || known.iter().copied().filter(|&number| number <= own);
    not_newer()
        .filter(|&number| number / 10 == capability.major)
        .max()
        .or_else(|| not_newer().max())
        .or_else(|| known.first().copied())
        .unwrap_or(own)
}
