//! This process as one rank of several: meeting the others, telling them what it calls, and waiting for them.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CString, c_char, c_int, c_void};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ghostgpu_device::{Order, StreamKey};
use ghostgpu_rendezvous::{
    Communicator as Meeting, Dependency, Machine, Member, ProcessId, Surroundings, Ticket, Trouble,
    this_process,
};

use super::awaited::{self, Awaited};
use super::status;
use crate::runtime::errors::RANKS_CANNOT_GO_ON;
use crate::{notes, state, with_threads_own};

/// What the agent registers to be asked which line of the script makes a call.
pub type LineCallback = extern "C" fn(text: *mut c_char, room: u32);

static LINE_CALLBACK: AtomicUsize = AtomicUsize::new(0);

pub fn set_line_callback(callback: Option<LineCallback>) {
    let address = callback.map_or(0, |function| function as usize);
    LINE_CALLBACK.store(address, Ordering::Release);
}

/// The line of the script that is running now, as `train.py:41`; empty if nobody can say.
pub fn users_line() -> String {
    let callback = LINE_CALLBACK.load(Ordering::Acquire);
    if callback == 0 {
        return String::new();
    }
    // SAFETY: only `set_line_callback` stores here, and it stores a `LineCallback` or zero.
    let callback: LineCallback = unsafe { std::mem::transmute(callback) };
    let mut text = [0u8; 256];
    callback(text.as_mut_ptr().cast(), text.len() as u32 - 1);
    let end = text.iter().position(|&byte| byte == 0).unwrap_or(0);
    String::from_utf8_lossy(&text[..end]).into_owned()
}

/// What the agent registers where some ranks of a job are not run, to be asked who is in a group: by the 128 bytes
/// that name a communicator, or, where those are null, by the colour of a split. Writes 1 for a rank that is
/// run and 0 for one that is not, and returns how many ranks there are; less than one where it does not know.
pub type MembersCallback =
    extern "C" fn(id: *const u8, color: c_int, are_run: *mut u8, room: u32) -> c_int;

static MEMBERS_CALLBACK: AtomicUsize = AtomicUsize::new(0);

pub fn set_members_callback(callback: Option<MembersCallback>) {
    let address = callback.map_or(0, |function| function as usize);
    MEMBERS_CALLBACK.store(address, Ordering::Release);
}

/// By what a group is known before it exists.
#[derive(Clone, Copy)]
pub enum GroupKey<'a> {
    Id(&'a [u8; 128]),
    Color(c_int),
}

/// More ranks than anybody has.
const MOST_MEMBERS: usize = 1 << 16;

/// Which ranks of a group are run, in their order; none where all of them are, or nobody knows the group.
pub fn who_is_run(group: GroupKey) -> Option<Vec<bool>> {
    let callback = MEMBERS_CALLBACK.load(Ordering::Acquire);
    if callback == 0 {
        return None;
    }
    // SAFETY: only `set_members_callback` stores here, and it stores a `MembersCallback` or zero.
    let callback: MembersCallback = unsafe { std::mem::transmute(callback) };
    let (id, color) = match group {
        GroupKey::Id(id) => (id.as_ptr(), 0),
        GroupKey::Color(color) => (std::ptr::null(), color),
    };
    let mut are_run = vec![0u8; MOST_MEMBERS];
    let count = callback(id, color, are_run.as_mut_ptr(), MOST_MEMBERS as u32);
    are_run.truncate(usize::try_from(count).unwrap_or(0));
    (!are_run.is_empty()).then(|| are_run.into_iter().map(|is_run| is_run != 0).collect())
}

/// Communicators of several processes, by their handles. One that was ended stays: streams may still wait in it.
static MEETINGS: Mutex<BTreeMap<usize, Arc<Meeting>>> = Mutex::new(BTreeMap::new());

fn meetings() -> MutexGuard<'static, BTreeMap<usize, Arc<Meeting>>> {
    MEETINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn remember(handle: usize, meeting: Arc<Meeting>) {
    meetings().insert(handle, meeting);
}

/// The name of a communicator of several processes, from which those of its parts are made.
pub fn name_in_use(handle: usize) -> String {
    meeting(handle).map_or_else(String::new, |meeting| meeting.name().to_owned())
}

pub fn meeting(handle: usize) -> Option<Arc<Meeting>> {
    meetings().get(&handle).cloned()
}

/// The rank of this process in its job and one; zero until somebody says so.
static JOB_RANK: AtomicUsize = AtomicUsize::new(0);

pub fn set_job_rank(rank: u32) {
    JOB_RANK.store(rank as usize + 1, Ordering::Release);
}

fn job_rank() -> Option<u32> {
    match JOB_RANK.load(Ordering::Acquire) {
        0 => std::env::var("RANK").ok()?.parse().ok(),
        known => u32::try_from(known - 1).ok(),
    }
}

/// Takes part in the communicator of this name as `rank` of `size`, without waiting for the others.
pub fn join(
    name: &str,
    rank: c_int,
    size: c_int,
    absent: BTreeSet<u32>,
) -> Result<Arc<Meeting>, Trouble> {
    let missing = |what: &str| Trouble::Folder(format!("there is no {what}"));
    let run_dir = state::run_dir().ok_or_else(|| missing("run"))?;
    let device = state::current_device().ok_or_else(|| missing("card"))?;
    let pci = &device.sheet.pci;
    let own = Member {
        process: this_process(),
        job_rank: job_rank(),
        size: size.unsigned_abs(),
        host: std::env::var("NCCL_HOSTID").unwrap_or_default(),
        // As NCCL writes it.
        bus: format!(
            "{:x}",
            (pci.domain << 20) | (pci.bus << 12) | (pci.device << 4)
        ),
        line: users_line(),
    };
    Meeting::join(&run_dir, name, rank.unsigned_abs(), own, absent).map(Arc::new)
}

/// A name for the bytes that ranks pass around to find each other.
pub fn name_of(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

thread_local! {
    /// How many groups of calls this thread has begun and not ended.
    static GROUPS: Cell<u32> = const { Cell::new(0) };
    /// Communicators made in such a group: all of them wait at its end.
    static TO_MEET: RefCell<Vec<Arc<Meeting>>> = const { RefCell::new(Vec::new()) };
    /// Calls made in such a group: they begin together, so none of them waits for another.
    static TO_HAND_IN: RefCell<Vec<HandedIn>> = const { RefCell::new(Vec::new()) };
    /// What this thread has waited for: whatever it calls comes after that.
    static WAITED_FOR: RefCell<Awaited> = const { RefCell::new(Awaited::new()) };
}

/// A call, on a stream, of a communicator.
type HandedIn = ((StreamKey, Order), usize, Ticket);

/// Lets what is handed to the stream from now on wait for a call; from the end of the group of calls on, if one has begun.
pub fn hand_in(stream: (StreamKey, Order), communicator: usize, ticket: Ticket) {
    let call = (stream, communicator, ticket);
    let is_later =
        GROUPS.get() > 0 && with_threads_own(&TO_HAND_IN, |calls| calls.push(call)).is_some();
    if !is_later {
        hand_in_now(call);
    }
}

fn hand_in_now(((stream, order), communicator, ticket): HandedIn) {
    awaited::hand_in(stream, order, communicator, ticket);
}

/// What has to be over before a call on a stream can begin, for those who read the log of this communicator.
pub fn dependencies(of_stream: &Awaited, communicator: &str) -> Vec<Dependency> {
    let mut awaited = of_stream.clone();
    with_threads_own(&WAITED_FOR, |waited_for| awaited.join(waited_for));
    let tickets = awaited.tickets().filter_map(|(handle, ticket)| {
        let meeting = meeting(handle)?;
        let (channel, number) = ticket.place();
        let other = (meeting.name() != communicator).then(|| meeting.name().to_owned());
        Some(Dependency {
            communicator: other,
            channel,
            number,
        })
    });
    tickets.collect()
}

pub fn begin_group() {
    GROUPS.set(GROUPS.get() + 1);
}

/// Ends a group, and meets those who were to be met in it.
pub fn end_group() -> i32 {
    GROUPS.set(GROUPS.get().saturating_sub(1));
    if GROUPS.get() > 0 {
        return status::SUCCESS;
    }
    let calls = with_threads_own(&TO_HAND_IN, std::mem::take).unwrap_or_default();
    calls.into_iter().for_each(hand_in_now);
    for meeting in with_threads_own(&TO_MEET, std::mem::take).unwrap_or_default() {
        if let Err(trouble) = wait(|here| meeting.meet(here)) {
            return report(&trouble);
        }
    }
    status::SUCCESS
}

/// Meets the other ranks now, or at the end of the group of calls that has begun.
pub fn meet(meeting: &Arc<Meeting>) -> Result<(), Trouble> {
    if GROUPS.get() > 0 {
        let later = with_threads_own(&TO_MEET, |waiting| waiting.push(Arc::clone(meeting)));
        if later.is_some() {
            return Ok(());
        }
    }
    wait(|here| meeting.meet(here))
}

/// What went wrong first: from then on nothing is waited for.
static TROUBLE: Mutex<Option<Trouble>> = Mutex::new(None);

/// The sentence about it, for C.
static SENTENCE: AtomicPtr<c_char> = AtomicPtr::new(std::ptr::null_mut());

/// What went wrong, for whoever asks for NCCL's or CUDA's last error.
pub fn sentence() -> Option<*const c_char> {
    let sentence = SENTENCE.load(Ordering::Acquire);
    (!sentence.is_null()).then_some(sentence.cast_const())
}

fn wait(waiting: impl FnOnce(&Here) -> Result<(), Trouble>) -> Result<(), Trouble> {
    let first = || TROUBLE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(trouble) = first().clone() {
        return Err(trouble);
    }
    let here = Here {
        asked_interpreter: Cell::new(Instant::now()),
    };
    let result = waiting(&here);
    if let Err(trouble) = &result
        && first().is_none()
    {
        *first() = Some(trouble.clone());
        let text = CString::new(trouble.to_string()).unwrap_or_default();
        SENTENCE.store(text.into_raw(), Ordering::Release);
        if *trouble != Trouble::Interrupted {
            notes::ranks_cannot_go_on(&trouble.to_string(), trouble.is_consequence());
        }
    }
    result
}

/// What NCCL answers.
pub fn report(trouble: &Trouble) -> i32 {
    match trouble {
        Trouble::Folder(_) | Trouble::Interrupted => status::INTERNAL_ERROR,
        Trouble::Ended { .. } => status::REMOTE_ERROR,
        _ => status::INVALID_USAGE,
    }
}

/// Waits until everybody has made the call.
pub fn wait_for(meeting: &Meeting, ticket: Ticket) -> Result<(), Trouble> {
    wait(|here| meeting.wait(ticket, here))
}

/// Waits until everybody has made all calls that this rank has made. Returns what NCCL answers.
pub fn finish(handle: usize) -> i32 {
    let Some(meeting) = meeting(handle) else {
        return status::SUCCESS;
    };
    let waits = |ticket| wait_for(&meeting, ticket);
    match meeting.newest().into_iter().try_for_each(waits) {
        Ok(()) => status::SUCCESS,
        Err(trouble) => report(&trouble),
    }
}

/// The host waits for what a stream waits for. Returns a status of the runtime.
pub fn host_waits(awaited: &Awaited) -> c_int {
    for (handle, ticket) in awaited.tickets() {
        let Some(meeting) = meeting(handle) else {
            continue;
        };
        if wait_for(&meeting, ticket).is_err() {
            return RANKS_CANNOT_GO_ON;
        }
    }
    awaited::settle(awaited);
    if !awaited.is_empty() {
        with_threads_own(&WAITED_FOR, |waited_for| waited_for.join(awaited));
    }
    0
}

/// This process, while it waits.
struct Here {
    asked_interpreter: Cell<Instant>,
}

/// How often Python gets to run its handlers of signals while the main thread waits here.
const SIGNALS_EVERY: Duration = Duration::from_millis(200);

impl Surroundings for Here {
    fn pause(&self, time: Duration) -> bool {
        std::thread::sleep(time);
        if self.asked_interpreter.get().elapsed() < SIGNALS_EVERY {
            return true;
        }
        self.asked_interpreter.set(Instant::now());
        python_goes_on()
    }

    fn is_alive(&self, process: ProcessId) -> bool {
        Machine.is_alive(process)
    }

    fn processor_ticks(&self, process: ProcessId) -> u64 {
        Machine.processor_ticks(process)
    }
}

/// Lets Python run its handlers of signals, which only its main thread may. False if one of them raised.
///
/// Launchers end the other ranks with a signal when one has failed: they must not wait for us.
fn python_goes_on() -> bool {
    // SAFETY: these only return numbers.
    let is_main_thread = unsafe { libc::gettid() == libc::getpid() };
    if !is_main_thread {
        return true;
    }
    let find = |name: &std::ffi::CStr| -> *mut c_void {
        // SAFETY: the name ends with a zero.
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
    };
    let ensure = find(c"PyGILState_Ensure");
    let release = find(c"PyGILState_Release");
    let check = find(c"PyErr_CheckSignals");
    if ensure.is_null() || release.is_null() || check.is_null() {
        return true;
    }
    // SAFETY: these are the documented signatures of Python's functions, and an interpreter that has them in this
    // process is initialised: it called us.
    unsafe {
        let ensure: extern "C" fn() -> c_int = std::mem::transmute(ensure);
        let release: extern "C" fn(c_int) = std::mem::transmute(release);
        let check: extern "C" fn() -> c_int = std::mem::transmute(check);
        let held = ensure();
        let result = check();
        release(held);
        result == 0
    }
}
