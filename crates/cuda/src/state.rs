//! The virtual machine room: the cards of this run and what this process holds on them.

use std::cell::Cell;
use std::path::PathBuf;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Mutex, OnceLock, RwLock};

use ghostgpu_device::{Capability, DeviceSheet, Overhead};
use ghostgpu_session::{SESSION_VARIABLE, Session};

use crate::card_usage::CardUsage;
use crate::clock;
use crate::memory_window;
use crate::real_library;
use crate::runtime::stream::submit_library_work;
pub use crate::virtual_device::VirtualDevice;

impl Room {
    fn visible(&self) -> &[usize] {
        self.visible.get_or_init(|| {
            let wanted = std::env::var("CUDA_VISIBLE_DEVICES").ok();
            let uuids: Vec<[u8; 16]> = self.devices.iter().map(|device| device.uuid).collect();
            ghostgpu_device::visible_devices(wanted.as_deref(), &uuids)
        })
    }
}

struct Room {
    session: Session,
    devices: Vec<VirtualDevice>,
    /// Indices into `devices`, in the order the process sees them. Read from the environment when
    /// the process first asks for its cards: a script may choose them after it has imported torch.
    visible: OnceLock<Vec<usize>>,
    usage: CardUsage,
}

/// The room of this process: null until the first CUDA call, and again in a forked child.
static ROOM: AtomicPtr<Option<Room>> = AtomicPtr::new(null_mut());

/// In a forked child that has not used the cards itself: the room of its parent.
static PARENTS_ROOM: AtomicPtr<Option<Room>> = AtomicPtr::new(null_mut());

/// Whether this process, a forked child, has opened a room of its own.
static HAS_LEFT_PARENT: AtomicBool = AtomicBool::new(false);

/// The room, opened at the first CUDA call. `None` without a session: then there are no devices.
fn room() -> Option<&'static Room> {
    let opened = ROOM.load(Ordering::Acquire);
    if opened.is_null() {
        return open_once();
    }
    // SAFETY: a room is leaked when it is opened.
    unsafe { &*opened }.as_ref()
}

#[cold]
fn open_once() -> Option<&'static Room> {
    static OPENING: Mutex<()> = Mutex::new(());
    let _alone = OPENING
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if ROOM.load(Ordering::Acquire).is_null() {
        // SAFETY: a room is leaked when it is opened.
        let parents = unsafe { PARENTS_ROOM.load(Ordering::Acquire).as_ref() };
        let opened = Box::new(open_room(parents.and_then(Option::as_ref)));
        watch_for_forks();
        HAS_LEFT_PARENT.store(parents.is_some(), Ordering::Release);
        ROOM.store(Box::into_raw(opened), Ordering::Release);
    }
    // SAFETY: stored above or by the thread before this one, and leaked.
    unsafe { &*ROOM.load(Ordering::Acquire) }.as_ref()
}

/// Makes every forked child open the cards again at its first CUDA call: it does not own what its parent
/// holds there.
fn watch_for_forks() {
    extern "C" fn begin_in_child() {
        // Atomics only: a lock may be held by a thread that the child does not have.
        let parents = ROOM.swap(null_mut(), Ordering::AcqRel);
        if !parents.is_null() {
            PARENTS_ROOM.store(parents, Ordering::Release);
        }
        HAS_LEFT_PARENT.store(false, Ordering::Release);
    }
    static IS_WATCHING: AtomicBool = AtomicBool::new(false);
    if !IS_WATCHING.swap(true, Ordering::AcqRel) {
        // SAFETY: the handler is a function of a library that is never unloaded.
        unsafe { libc::pthread_atfork(None, None, Some(begin_in_child)) };
    }
}

/// Opens the cards for this process, at the same addresses as its parent's if it is a forked child.
///
/// A forked child of a process with a context cannot use a real card. If it tries here, its allocations
/// are counted as its own, but not a context: destroying its parent's objects in it must not cost memory.
fn open_room(parents: Option<&Room>) -> Option<Room> {
    let path = PathBuf::from(std::env::var_os(SESSION_VARIABLE)?);
    let session = match Session::load(&path) {
        Ok(session) => session,
        Err(error) => {
            eprintln!("ghostgpu: {error}");
            return None;
        }
    };
    if let Some(major) = real_library::unknown_cuda_major() {
        eprintln!(
            "ghostgpu: this program uses CUDA {major}, which is not simulated (12 and 13 are), so it has \
             no device"
        );
        return None;
    }
    let run_dir = other_run_dir().unwrap_or_else(|| session.run_dir.clone());
    let Some(usage) = CardUsage::open(&run_dir) else {
        eprintln!("ghostgpu: the usage file of this run cannot be opened, so it has no device");
        return None;
    };
    let devices: Vec<VirtualDevice> = match parents {
        Some(parents) => parents
            .devices
            .iter()
            .map(VirtualDevice::for_forked_child)
            .collect(),
        None => session
            .devices
            .iter()
            .zip(memory_window::reserve(&session.devices)?)
            .enumerate()
            .map(|(ordinal, (sheet, window))| {
                VirtualDevice::new(ordinal, sheet, window, session.unlimited_memory)
            })
            .collect(),
    };
    Some(Room {
        session,
        devices,
        visible: OnceLock::new(),
        usage,
    })
}

pub fn session() -> Option<&'static Session> {
    room().map(|room| &room.session)
}

static OTHER_RUN_DIR: RwLock<Option<PathBuf>> = RwLock::new(None);

fn other_run_dir() -> Option<PathBuf> {
    OTHER_RUN_DIR.read().ok()?.clone()
}

/// The folder of the run that this process belongs to.
pub fn run_dir() -> Option<PathBuf> {
    other_run_dir().or_else(|| Some(session()?.run_dir.clone()))
}

/// Moves this process, a fork of the script, into its own run, with everything it holds on the cards.
/// False if that run's folder cannot be used, or if the fork has already used the cards.
pub fn continue_in(run_dir: PathBuf) -> bool {
    if HAS_LEFT_PARENT.load(Ordering::Acquire) {
        return false;
    }
    let parents = PARENTS_ROOM.swap(null_mut(), Ordering::AcqRel);
    if !parents.is_null() {
        ROOM.store(parents, Ordering::Release);
    }
    let is_moved = room().is_none_or(|room| room.usage.continue_in(&run_dir));
    if is_moved && let Ok(mut other) = OTHER_RUN_DIR.write() {
        *other = Some(run_dir);
    }
    is_moved
}

/// Starts this process, a copy of a script that had not used the cards yet, in the run whose session the environment
/// now names. False if the cards were used before the copy was made, or in it.
pub fn reopen_session() -> bool {
    if HAS_LEFT_PARENT.load(Ordering::Acquire) {
        return false;
    }
    // SAFETY: a room is leaked when it is opened.
    let parents = unsafe { PARENTS_ROOM.load(Ordering::Acquire).as_ref() };
    let Some(parents) = parents.and_then(Option::as_ref) else {
        return true; // the cards have not been opened yet
    };
    if parents.devices.iter().any(VirtualDevice::has_context) {
        return false;
    }
    let Some(mut room) = open_room(Some(parents)) else {
        return false;
    };
    let limits = room.session.devices.iter().zip(&parents.devices);
    room.devices = limits
        .map(|(sheet, card)| card.with_sheet(sheet, room.session.unlimited_memory))
        .collect();
    if let Some(visible) = parents.visible.get() {
        let _ = room.visible.set(visible.clone());
    }
    PARENTS_ROOM.store(null_mut(), Ordering::Release);
    ROOM.store(Box::into_raw(Box::new(Some(room))), Ordering::Release);
    true
}

/// What this process holds on the cards, in the file that it shares with the run's other processes.
pub fn usage() -> Option<&'static CardUsage> {
    room().map(|room| &room.usage)
}

/// All cards of the machine, whether or not `CUDA_VISIBLE_DEVICES` shows them to this process.
pub fn devices() -> &'static [VirtualDevice] {
    room().map_or(&[], |room| &room.devices)
}

/// Whether this process has started CUDA, which is when its cards are chosen.
pub fn is_started() -> bool {
    room().is_some_and(|room| room.visible.get().is_some())
}

pub fn visible_count() -> usize {
    room().map_or(0, |room| room.visible().len())
}

/// The card that has this number in this process.
pub fn visible_device(index: i32) -> Option<&'static VirtualDevice> {
    let room = room()?;
    let ordinal = *room.visible().get(usize::try_from(index).ok()?)?;
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

/// The current device; creates its context if it has none yet.
pub fn current_with_context() -> Option<&'static VirtualDevice> {
    let device = current_device()?;
    device.ensure_context();
    Some(device)
}

/// The first matrix product loads cuBLAS's code onto the card.
pub fn note_blas_use() {
    if let Some(device) = current_with_context() {
        device.note_kernel_use();
        device.note_blas_use();
        submit_library_work(clock::KERNEL);
    }
}

/// A plan for a convolution was made.
pub fn note_convolution_plan() {
    if let Some(device) = current_with_context() {
        device.note_convolution_plan();
    }
}

/// The first cuDNN operation loads cuDNN's code onto the card.
pub fn note_dnn_use() {
    if let Some(device) = current_with_context() {
        device.note_kernel_use();
        device.note_dnn_use();
        submit_library_work(clock::KERNEL);
    }
}

/// The first cuSOLVER handle loads cuSOLVER's code and buffers onto the card.
pub fn note_solver_use() {
    if let Some(device) = current_with_context() {
        device.note_solver_use();
    }
}

/// The first cuFFT plan loads cuFFT's code onto the card.
pub fn note_transform_use() {
    if let Some(device) = current_with_context() {
        device.note_transform_use();
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
    room.visible()
        .iter()
        .enumerate()
        .find_map(|(index, &ordinal)| {
            let device = &room.devices[ordinal];
            device.owns(address).then_some((index as i32, device))
        })
}

static CODE_ARCHITECTURES: RwLock<Vec<u32>> = RwLock::new(Vec::new());

pub fn set_code_architectures(mut numbers: Vec<u32>) {
    numbers.sort_unstable();
    if let Ok(mut known) = CODE_ARCHITECTURES.write() {
        *known = numbers;
    }
}

/// The architecture of the code that the installed torch would run on this card: the newest of the same
/// major version that is not newer than the card, otherwise the newest older one.
///
/// A card that is older than all code gets the oldest: it cannot run it, which the command line reports,
/// but its memory can still be rehearsed.
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
