//! Communicators: made for one rank, for several processes, or for several cards of one; split, shrunk, asked
//! who is in them, ended.

use std::collections::BTreeSet;
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use ghostgpu_device::communicator_bytes;
use ghostgpu_rendezvous::{Call, Communicator as Meeting, Function};
use ghostgpu_session::memory_log::LogEntry;

use super::{Communicator, UniqueId, ranks, status};
use crate::handles::Handles;
use crate::{device_work, log_call, notes, observer, opaque_objects, state, write_out};

/// Who a communicator belongs to, and how many there are.
#[derive(Clone, Copy, Debug)]
struct Member {
    device: c_int,
    rank: c_int,
    ranks: c_int,
}

static COMMUNICATORS: Handles<Member> = Handles::starting_at(0x4CC1_0000);

/// Whether a communicator has a single rank, so that its collectives are copies.
pub fn is_alone(communicator: Communicator) -> bool {
    COMMUNICATORS.with(communicator as usize, |member| member.ranks) == Some(1)
}

/// `NCCL_SPLIT_NOCOLOR`: this rank takes no part in the new communicator.
const NO_COLOR: c_int = -1;

/// Makes a communicator of `ranks` ranks that find each other by `name`, and waits for all of them.
///
/// # Safety
/// `communicator` points to writable memory for a handle, or is null.
unsafe fn create(
    communicator: *mut Communicator,
    ranks: c_int,
    name: &str,
    rank: c_int,
    absent: BTreeSet<u32>,
) -> i32 {
    if communicator.is_null() || ranks < 1 || rank < 0 || rank >= ranks {
        return status::INVALID_ARGUMENT;
    }
    state::current_with_context();
    let member = Member {
        device: state::current_index(),
        rank,
        ranks,
    };
    let handle = COMMUNICATORS.insert(member) as Communicator;
    if ranks > 1 {
        let met = ranks::join(name, rank, ranks, absent).and_then(|meeting| {
            ranks::meet(&meeting)?;
            ranks::remember(handle as usize, meeting);
            Ok(())
        });
        if let Err(trouble) = met {
            COMMUNICATORS.remove(handle as usize);
            return ranks::report(&trouble);
        }
        charge(ranks.unsigned_abs());
    } else {
        notes::assume(UNCOUNTED);
    }
    // SAFETY: promised by the caller.
    unsafe { write_out(communicator, handle) };
    status::SUCCESS
}

/// The places of ranks that are not run.
fn absent(are_run: Option<&[bool]>) -> BTreeSet<u32> {
    let places = (0u32..).zip(are_run.unwrap_or_default());
    places
        .filter_map(|(place, is_run)| (!is_run).then_some(place))
        .collect()
}

/// Makes a communicator that is known by its id.
///
/// # Safety
/// `communicator` points to writable memory for a handle, or is null.
unsafe fn create_by_id(
    communicator: *mut Communicator,
    ranks: c_int,
    unique_id: &UniqueId,
    rank: c_int,
) -> i32 {
    let are_run = (ranks > 1)
        .then(|| ranks::who_is_run(ranks::GroupKey::Id(&unique_id.0)))
        .flatten();
    // SAFETY: promised by the caller.
    unsafe {
        create(
            communicator,
            ranks,
            &unique_id.name(),
            rank,
            absent(are_run.as_deref()),
        )
    }
}

const UNCOUNTED: &str = "memory that NCCL itself takes on the card is not counted";

/// Communicators of several ranks that this process has made, on whatever card: it uses one.
static MADE: AtomicU32 = AtomicU32::new(0);

/// Counts what NCCL takes of the card for a communicator of several ranks. PyTorch ends them with the process.
fn charge(ranks: u32) {
    let others = MADE.fetch_add(1, Ordering::AcqRel);
    let told = state::session().and_then(|session| session.nccl_bytes);
    let bytes = match told {
        Some(bytes) => bytes * u64::from(others == 0),
        None => communicator_bytes(ranks, others),
    };
    notes::assume(match told {
        Some(0) => UNCOUNTED,
        Some(_) => "NCCL takes as much of the card as --nccl-memory says",
        None => {
            "NCCL takes 544 MiB of the card for a first group of 2 ranks, 688 MiB for more ranks, and 16 MiB for every \
             further group; published figures are 0.5 to 1.1 GB, and up to 4.3 GB with all-to-all (--nccl-memory)"
        }
    });
    if bytes > 0 {
        state::note_new_object(|_| bytes);
        observer::write(LogEntry::NcclMemory { bytes });
    }
}

/// # Safety
/// `communicator` points to writable memory for a handle, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommInitRank(
    communicator: *mut Communicator,
    ranks: c_int,
    unique_id: UniqueId,
    rank: c_int,
) -> i32 {
    log_call!(ncclCommInitRank, communicator, ranks, rank);
    // SAFETY: promised by the caller.
    unsafe { create_by_id(communicator, ranks, &unique_id, rank) }
}

/// # Safety
/// `communicator` points to writable memory for a handle, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommInitRankConfig(
    communicator: *mut Communicator,
    ranks: c_int,
    unique_id: UniqueId,
    rank: c_int,
    config: *const c_void,
) -> i32 {
    log_call!(ncclCommInitRankConfig, communicator, ranks, rank, config);
    // SAFETY: promised by the caller.
    unsafe { create_by_id(communicator, ranks, &unique_id, rank) }
}

/// With many ranks, several ids share the work of making contact. All ranks have the same list.
///
/// # Safety
/// `communicator` points to writable memory for a handle, or is null; `unique_ids` to `id_count` ids.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommInitRankScalable(
    communicator: *mut Communicator,
    ranks: c_int,
    rank: c_int,
    id_count: c_int,
    unique_ids: *const UniqueId,
    config: *const c_void,
) -> i32 {
    log_call!(
        ncclCommInitRankScalable,
        communicator,
        ranks,
        rank,
        id_count,
        unique_ids,
        config
    );
    if unique_ids.is_null() || id_count < 1 {
        return status::INVALID_ARGUMENT;
    }
    // SAFETY: promised by the caller.
    let first = unsafe { *unique_ids };
    // SAFETY: promised by the caller.
    unsafe { create_by_id(communicator, ranks, &first, rank) }
}

/// One communicator per device of a list, all in this process: `DataParallel` makes them. What they
/// pass between the cards is only values.
///
/// # Safety
/// `communicators` has room for `devices` handles, or is null; `device_list` has as many numbers, or
/// is null, which stands for the first devices.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommInitAll(
    communicators: *mut Communicator,
    devices: c_int,
    device_list: *const c_int,
) -> i32 {
    log_call!(ncclCommInitAll, communicators, devices, device_list);
    if communicators.is_null() || devices < 1 {
        return status::INVALID_ARGUMENT;
    }
    notes::assume(UNCOUNTED);
    for rank in 0..devices {
        let device = match device_list.is_null() {
            true => rank,
            // SAFETY: promised by the caller.
            false => unsafe { *device_list.offset(rank as isize) },
        };
        let Some(card) = state::visible_device(device) else {
            return status::INVALID_ARGUMENT;
        };
        card.ensure_context();
        let member = Member {
            device,
            rank,
            ranks: devices,
        };
        // SAFETY: promised by the caller.
        unsafe {
            write_out(
                communicators.offset(rank as isize),
                COMMUNICATORS.insert(member) as Communicator,
            );
        }
    }
    status::SUCCESS
}

/// All ranks say which part they go to, and the parts are communicators of their own.
///
/// # Safety
/// `part` points to writable memory for a handle, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommSplit(
    communicator: Communicator,
    color: c_int,
    key: c_int,
    part: *mut Communicator,
    config: *const c_void,
) -> i32 {
    log_call!(ncclCommSplit, communicator, color, key, part, config);
    let (ranks, name, rank, absent) = match ranks::meeting(communicator as usize) {
        Some(meeting) => match split(&meeting, communicator, color, key) {
            Ok(place) => place,
            Err(code) => return code,
        },
        None => (1, String::new(), 0, BTreeSet::new()),
    };
    if color == NO_COLOR {
        // SAFETY: promised by the caller.
        unsafe { write_out(part, std::ptr::null_mut()) };
        return status::SUCCESS;
    }
    // SAFETY: promised by the caller.
    unsafe { create(part, ranks, &name, rank, absent) }
}

/// How many ranks go to the same part, its name, the place of this rank in it, and who of it is not run.
fn split(
    meeting: &Arc<Meeting>,
    communicator: Communicator,
    color: c_int,
    key: c_int,
) -> Result<(c_int, String, c_int, BTreeSet<u32>), i32> {
    let call = Call {
        function: Function::Split,
        count: 0,
        data_type: 0,
        operation: None,
        root: None,
        part: Some((color, key)),
        line: ranks::users_line(),
        after: Vec::new(),
    };
    let waited = meeting.post(call, None).and_then(|ticket| {
        ranks::wait_for(meeting, ticket)?;
        Ok(ticket)
    });
    let ticket = waited.map_err(|trouble| ranks::report(&trouble))?;
    let mut places: Vec<(c_int, u32)> = meeting
        .parts(ticket)
        .into_iter()
        .filter(|&(_, its_color, _)| its_color == color)
        .map(|(rank, _, key)| (key, rank))
        .collect();
    places.sort_unstable();
    let parent = ranks::name_in_use(communicator as usize);
    let name = ranks::name_of(format!("{parent}, part {color} of {ticket:?}").as_bytes());
    if color != NO_COLOR
        && let Some(are_run) = ranks::who_is_run(ranks::GroupKey::Color(color))
    {
        // Those who are not run have not said where they go; PyTorch's key is the place in the group.
        return Ok((are_run.len() as c_int, name, key, absent(Some(&are_run))));
    }
    let place = places.iter().position(|&(_, rank)| rank == meeting.rank());
    let count = |number: usize| c_int::try_from(number).map_err(|_| status::INVALID_ARGUMENT);
    Ok((
        count(places.len())?,
        name,
        count(place.unwrap_or(0))?,
        BTreeSet::new(),
    ))
}

/// A communicator without some of its ranks. Those are not asked.
///
/// # Safety
/// `excluded` points to `excluded_count` ranks; `rest` to writable memory for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommShrink(
    communicator: Communicator,
    excluded: *const c_int,
    excluded_count: c_int,
    rest: *mut Communicator,
    config: *const c_void,
    flags: c_int,
) -> i32 {
    static SHRUNK: AtomicU64 = AtomicU64::new(0);
    log_call!(
        ncclCommShrink,
        communicator,
        excluded,
        excluded_count,
        rest,
        config,
        flags
    );
    let Some(meeting) = ranks::meeting(communicator as usize) else {
        return status::INVALID_ARGUMENT;
    };
    let Some(count) = usize::try_from(excluded_count)
        .ok()
        .filter(|_| !excluded.is_null())
    else {
        return status::INVALID_ARGUMENT;
    };
    // SAFETY: promised by the caller.
    let excluded = unsafe { std::slice::from_raw_parts(excluded, count) };
    let stays = |rank: &u32| !excluded.iter().any(|&gone| gone.unsigned_abs() == *rank);
    let left: Vec<u32> = (0..meeting.size()).filter(stays).collect();
    let Some(place) = left.iter().position(|&rank| rank == meeting.rank()) else {
        return status::INVALID_ARGUMENT;
    };
    let number = SHRUNK.fetch_add(1, Ordering::Relaxed);
    let parent = ranks::name_in_use(communicator as usize);
    let name = ranks::name_of(format!("{parent}, {left:?}, {number}").as_bytes());
    // SAFETY: promised by the caller.
    unsafe {
        create(
            rest,
            left.len() as c_int,
            &name,
            place as c_int,
            BTreeSet::new(),
        )
    }
}

/// Answers a question about a communicator.
///
/// # Safety
/// `answer` points to a writable integer or is null.
unsafe fn tell(
    communicator: Communicator,
    answer: *mut c_int,
    value: impl FnOnce(Member) -> c_int,
) -> i32 {
    let known = COMMUNICATORS.with(communicator as usize, |member| *member);
    let (Some(member), false) = (known, answer.is_null()) else {
        return status::INVALID_ARGUMENT;
    };
    // SAFETY: promised by the caller.
    unsafe { write_out(answer, value(member)) };
    status::SUCCESS
}

/// # Safety
/// `count` points to a writable integer or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommCount(communicator: Communicator, count: *mut c_int) -> i32 {
    log_call!(ncclCommCount, communicator, count);
    // SAFETY: promised by the caller.
    unsafe { tell(communicator, count, |member| member.ranks) }
}

/// # Safety
/// `rank` points to a writable integer or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommUserRank(communicator: Communicator, rank: *mut c_int) -> i32 {
    log_call!(ncclCommUserRank, communicator, rank);
    // SAFETY: promised by the caller.
    unsafe { tell(communicator, rank, |member| member.rank) }
}

/// # Safety
/// `device` points to a writable integer or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommCuDevice(communicator: Communicator, device: *mut c_int) -> i32 {
    log_call!(ncclCommCuDevice, communicator, device);
    // SAFETY: promised by the caller.
    unsafe { tell(communicator, device, |member| member.device) }
}

/// Nothing runs, so nothing has gone wrong meanwhile.
///
/// # Safety
/// `error` points to a writable integer or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommGetAsyncError(
    communicator: Communicator,
    error: *mut c_int,
) -> i32 {
    log_call!(ncclCommGetAsyncError, communicator, error);
    // SAFETY: promised by the caller.
    unsafe { tell(communicator, error, |_| status::SUCCESS) }
}

fn end(communicator: Communicator) -> i32 {
    match COMMUNICATORS.remove(communicator as usize) {
        Some(_) => status::SUCCESS,
        None => status::INVALID_ARGUMENT,
    }
}

/// Waits for what was called: a collective that others never call keeps a real job here.
#[unsafe(no_mangle)]
pub extern "C" fn ncclCommFinalize(communicator: Communicator) -> i32 {
    log_call!(ncclCommFinalize, communicator);
    ranks::finish(communicator as usize)
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclCommDestroy(communicator: Communicator) -> i32 {
    log_call!(ncclCommDestroy, communicator);
    end(communicator)
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclCommAbort(communicator: Communicator) -> i32 {
    log_call!(ncclCommAbort, communicator);
    end(communicator)
}

fn nothing_more() {}

// Stopping and resuming work of which there is none.
device_work! {
    before: nothing_more;
    (communicator: Communicator) => ncclCommResume;
    (communicator: Communicator, flags: c_int) => ncclCommRevoke, ncclCommSuspend;
}

/// Registering a buffer only speeds up transfers between ranks.
///
/// # Safety
/// `registration` points to writable memory for a handle, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommRegister(
    communicator: Communicator,
    buffer: *mut c_void,
    bytes: usize,
    registration: *mut *mut c_void,
) -> i32 {
    log_call!(ncclCommRegister, communicator, buffer, bytes, registration);
    // SAFETY: promised by the caller.
    if unsafe { opaque_objects::create(registration) } {
        status::SUCCESS
    } else {
        status::INVALID_ARGUMENT
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclCommDeregister(communicator: Communicator, registration: *mut c_void) -> i32 {
    log_call!(ncclCommDeregister, communicator, registration);
    if opaque_objects::destroy(registration) {
        status::SUCCESS
    } else {
        status::INVALID_ARGUMENT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_communicator_of_one_rank_knows_its_size_and_ends_once() {
        let mut communicator: Communicator = std::ptr::null_mut();
        let (mut count, mut rank) = (0, -1);
        // SAFETY: all pointers are to locals.
        unsafe {
            assert_eq!(
                ncclCommInitRank(&raw mut communicator, 1, UniqueId([0; 128]), 0),
                0
            );
            assert_eq!(ncclCommCount(communicator, &raw mut count), 0);
            assert_eq!(ncclCommUserRank(communicator, &raw mut rank), 0);
        }
        assert_eq!((count, rank), (1, 0));
        assert_eq!(ncclCommDestroy(communicator), status::SUCCESS);
        assert_eq!(ncclCommDestroy(communicator), status::INVALID_ARGUMENT);
    }

    #[test]
    fn several_ranks_without_a_run_are_an_error_and_no_communicator() {
        let mut communicator: Communicator = std::ptr::null_mut();
        // SAFETY: the pointer is to a local.
        let code = unsafe { ncclCommInitRank(&raw mut communicator, 8, UniqueId([0; 128]), 3) };
        assert_ne!(code, status::SUCCESS);
        assert!(communicator.is_null());
    }
}
