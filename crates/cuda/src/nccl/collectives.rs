//! Collectives and messages. With one rank they copy device memory at most: what is known of that
//! memory goes along (see `handed_on`), and nothing else is done.

use std::ffi::{c_int, c_void};

use super::communicator::is_alone;
use super::{Communicator, status};
use crate::runtime::graph::Node;
use crate::runtime::stream::submit;
use crate::{clock, device_work, handed_on, log_call, state, write_out};

type Data = *const c_void;

/// The context exists as soon as something is to run in it.
fn begin_work() {
    state::current_with_context();
}

/// Size of an element of `ncclDataType_t`: four kinds of integers in two signs, then floats.
fn element_bytes(data_type: c_int) -> usize {
    match data_type {
        2 | 3 | 7 => 4,
        4 | 5 | 8 => 8,
        6 | 9 => 2,
        _ => 1,
    }
}

/// Defines exported functions that copy `count` elements from one place on the card to another.
macro_rules! copying {
    ($(
        ($($argument:ident: $type:ty),+),
        $count:ident of $kind:ident, $source:ident to $target:ident in $ranks:ident on $stream:ident
        => $($name:ident),+;
    )+) => {
        $(copying!(
            @all ($($argument: $type),+), [$count $kind $source $target $ranks $stream], [$($name),+]
        );)+
    };
    (@all $parameters:tt, $copy:tt, [$($name:ident),+]) => {
        $(copying!(@define $name, $parameters, $copy);)+
    };
    (
        @define $name:ident, ($($argument:ident: $type:ty),+),
        [$count:ident $kind:ident $source:ident $target:ident $ranks:ident $stream:ident]
    ) => {
        #[allow(clippy::too_many_arguments)] // NVIDIA's interface, not ours.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($argument: $type),+) -> i32 {
            log_call!($name $(, $argument)+);
            begin_work();
            let bytes = $count.saturating_mul(element_bytes($kind));
            submit($stream as usize, Node::Kernel, clock::KERNEL + clock::copy_on_card(bytes));
            match is_alone($ranks) {
                true => handed_on::handed_on($source as u64, $target as u64, bytes),
                false => handed_on::forget_all(),
            }
            status::SUCCESS
        }
    };
}

copying! {
    (
        send: Data, receive: Data, count: usize, data_type: c_int, operation: c_int,
        communicator: Communicator, stream: Data
    ), count of data_type, send to receive in communicator on stream => ncclAllReduce, ncclReduceScatter;
    (
        send: Data, receive: Data, count: usize, data_type: c_int, operation: c_int, root: c_int,
        communicator: Communicator, stream: Data
    ), count of data_type, send to receive in communicator on stream => ncclReduce;
    (
        send: Data, receive: Data, count: usize, data_type: c_int, root: c_int,
        communicator: Communicator, stream: Data
    ), count of data_type, send to receive in communicator on stream => ncclBroadcast, ncclGather, ncclScatter;
    (
        send: Data, receive: Data, count: usize, data_type: c_int, communicator: Communicator,
        stream: Data
    ), count of data_type, send to receive in communicator on stream => ncclAllGather, ncclAlltoAll;
    (
        buffer: Data, count: usize, data_type: c_int, root: c_int, communicator: Communicator,
        stream: Data
    ), count of data_type, buffer to buffer in communicator on stream => ncclBcast;
}

device_work! {
    before: begin_work;
    (
        buffer: Data, count: usize, data_type: c_int, peer: c_int, communicator: Communicator,
        stream: Data
    ) => ncclSend, ncclRecv;
    (operation: c_int, communicator: Communicator) => ncclRedOpDestroy;
}

/// A group is only a way to start several collectives at once.
#[unsafe(no_mangle)]
pub extern "C" fn ncclGroupStart() -> i32 {
    log_call!(ncclGroupStart);
    begin_work();
    status::SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclGroupEnd() -> i32 {
    log_call!(ncclGroupEnd);
    begin_work();
    status::SUCCESS
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
    log_call!(
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
