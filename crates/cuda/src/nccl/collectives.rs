//! Collectives and messages. With one rank they copy device memory at most, so nothing is done.

use std::ffi::{c_int, c_void};

use super::{Communicator, status};
use crate::{device_work, state, trace_call, write_out};

type Data = *const c_void;

/// The context exists as soon as something is to run in it.
fn begin_work() {
    state::current_with_context();
}

device_work! {
    before: begin_work;
    () => ncclGroupStart, ncclGroupEnd;
    (
        send: Data, receive: Data, count: usize, data_type: c_int, operation: c_int,
        communicator: Communicator, stream: Data
    ) => ncclAllReduce, ncclReduceScatter;
    (
        send: Data, receive: Data, count: usize, data_type: c_int, operation: c_int, root: c_int,
        communicator: Communicator, stream: Data
    ) => ncclReduce;
    (
        send: Data, receive: Data, count: usize, data_type: c_int, root: c_int,
        communicator: Communicator, stream: Data
    ) => ncclBroadcast, ncclGather, ncclScatter;
    (
        send: Data, receive: Data, count: usize, data_type: c_int, communicator: Communicator,
        stream: Data
    ) => ncclAllGather, ncclAlltoAll;
    (
        buffer: Data, count: usize, data_type: c_int, peer_or_root: c_int,
        communicator: Communicator, stream: Data
    ) => ncclSend, ncclRecv, ncclBcast;
    (operation: c_int, communicator: Communicator) => ncclRedOpDestroy;
}

/// The first number after the built-in operations (sum, product, maximum, minimum, average).
const FIRST_OWN_OPERATION: c_int = 5;

/// An operation of the user's: sum with a factor. Its number is only handed back to us.
///
/// # Safety
/// `operation` points to a writable integer or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclRedOpCreatePreMulSum(
    operation: *mut c_int,
    scalar: Data,
    data_type: c_int,
    residence: c_int,
    communicator: Communicator,
) -> i32 {
    trace_call!(
        ncclRedOpCreatePreMulSum,
        operation,
        scalar,
        data_type,
        residence,
        communicator,
    );
    if operation.is_null() {
        return status::INVALID_ARGUMENT;
    }
    // SAFETY: promised by the caller.
    unsafe { write_out(operation, FIRST_OWN_OPERATION) };
    status::SUCCESS
}
