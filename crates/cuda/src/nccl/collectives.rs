//! Collectives and messages. With one rank they copy device memory at most; with several, each rank
//! writes down what it calls, and goes on. What is known of the memory that goes into a collective
//! goes along (see `handed_on`), and nothing else is done.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use ghostgpu_rendezvous::{Call, Communicator as Meeting, Function, Ticket, element_bytes};

use super::communicator::is_alone;
use super::result::Collective;
use super::{Communicator, ranks, status};
use crate::runtime::graph::Node;
use crate::runtime::stream::{awaited_by, capture_on, on_timeline, submit};
use crate::{clock, device_work, handed_on, log_call, observer, state, write_out};

type Data = *const c_void;

/// The context exists as soon as something is to run in it.
fn begin_work() {
    state::current_with_context();
}

/// What is to be done, as NCCL is told.
struct Work {
    function: Function,
    count: usize,
    data_type: c_int,
    operation: Option<c_int>,
    root: Option<c_int>,
    source: Data,
    target: Data,
    communicator: Communicator,
    stream: Data,
}

impl Work {
    /// What this rank puts in, in bytes.
    fn bytes(&self, ranks: usize) -> usize {
        let bytes = self.count.saturating_mul(element_bytes(self.data_type));
        match self.function {
            // Their counts are those of one rank's part.
            Function::ReduceScatter | Function::AllToAll | Function::Scatter => {
                bytes.saturating_mul(ranks)
            }
            _ => bytes,
        }
    }

    fn hand_in(self) -> i32 {
        begin_work();
        let Some(meeting) = ranks::meeting(self.communicator as usize) else {
            return self.hand_in_alone();
        };
        observer::exchanged(self.source);
        observer::exchanged(self.target);
        let bytes = self.bytes(meeting.size() as usize);
        submit(
            self.stream as usize,
            Node::Kernel,
            clock::KERNEL + clock::copy_between_cards(bytes),
        );
        match self.post(&meeting, bytes) {
            Ok((ticket, is_awaited)) => {
                self.follow(meeting, ticket, is_awaited, bytes);
                status::SUCCESS
            }
            Err(trouble) => ranks::report(&trouble),
        }
    }

    fn hand_in_alone(&self) -> i32 {
        let bytes = self.count.saturating_mul(element_bytes(self.data_type));
        let duration = clock::KERNEL + clock::copy_on_card(bytes);
        submit(self.stream as usize, Node::Kernel, duration);
        match is_alone(self.communicator) && !self.source.is_null() && !self.target.is_null() {
            true => handed_on::handed_on(self.source as u64, self.target as u64, bytes),
            false => handed_on::forget_all(),
        }
        status::SUCCESS
    }

    /// Returns the call, and whether this rank waits for others in it.
    fn post(
        &self,
        meeting: &Meeting,
        bytes: usize,
    ) -> Result<(Ticket, bool), ghostgpu_rendezvous::Trouble> {
        let stream = self.stream as usize;
        let call = Call {
            function: self.function,
            count: self.count as u64,
            data_type: self.data_type,
            operation: self.operation,
            root: self.root.map(c_int::unsigned_abs),
            part: None,
            line: ranks::users_line(),
            after: match capture_on(stream) {
                None => ranks::dependencies(&awaited_by(stream), meeting.name()),
                Some(_) => Vec::new(),
            },
        };
        let is_awaited = self.function != Function::Send || call.needs_receiver();
        let is_small = bytes <= handed_on::MAX_BYTES && !self.source.is_null();
        let values = is_small.then(|| handed_on::read_at_once(self.source as u64, bytes));
        let ticket = meeting.post(call, values.flatten().as_deref())?;
        Ok((ticket, is_awaited))
    }

    /// Remembers who has to wait for this, and what comes of it.
    fn follow(&self, meeting: Arc<Meeting>, ticket: Ticket, is_awaited: bool, bytes: usize) {
        let stream = self.stream as usize;
        // What a graph captures is not run, and its collectives are made without values.
        if is_awaited && capture_on(stream).is_none() {
            ranks::hand_in(on_timeline(stream), self.communicator as usize, ticket);
        }
        let collective = Collective {
            function: self.function,
            data_type: self.data_type,
            operation: self.operation.unwrap_or(0),
            root: self.root.unwrap_or(0).unsigned_abs(),
            bytes,
        };
        let result_bytes = match self.function {
            Function::Receive => bytes,
            _ => collective.result_bytes(meeting.size() as usize),
        };
        if self.target.is_null() {
            return;
        }
        if result_bytes > handed_on::MAX_BYTES {
            return handed_on::forget_all();
        }
        let coming = OfRanks {
            meeting,
            ticket,
            collective,
        };
        handed_on::comes(self.target as u64, result_bytes, Arc::new(coming));
    }
}

/// The result of a collective, or a message.
struct OfRanks {
    meeting: Arc<Meeting>,
    ticket: Ticket,
    collective: Collective,
}

impl handed_on::Coming for OfRanks {
    fn arrive(&self) -> Option<Vec<u8>> {
        ranks::wait_for(&self.meeting, self.ticket).ok()?;
        if let Ticket::Message { from, .. } = self.ticket {
            return self.meeting.values(self.ticket, from);
        }
        let (rank, size) = (self.meeting.rank() as usize, self.meeting.size() as usize);
        self.collective.result(rank, size, |rank| {
            self.meeting.values(self.ticket, rank as u32)
        })
    }
}

/// Defines exported functions that hand in work.
macro_rules! collectives {
    ($(
        $name:ident($($argument:ident: $type:ty),+ $(,)?) => $work:expr;
    )+) => {
        $(
            #[allow(clippy::too_many_arguments)] // NVIDIA's interface, not ours.
            #[unsafe(no_mangle)]
            pub extern "C" fn $name($($argument: $type),+) -> i32 {
                log_call!($name $(, $argument)+);
                $work.hand_in()
            }
        )+
    };
}

collectives! {
    ncclAllReduce(
        source: Data, target: Data, count: usize, data_type: c_int, operation: c_int,
        communicator: Communicator, stream: Data,
    ) => Work {
        function: Function::AllReduce, operation: Some(operation), root: None,
        source, target, count, data_type, communicator, stream,
    };
    ncclReduceScatter(
        source: Data, target: Data, count: usize, data_type: c_int, operation: c_int,
        communicator: Communicator, stream: Data,
    ) => Work {
        function: Function::ReduceScatter, operation: Some(operation), root: None,
        source, target, count, data_type, communicator, stream,
    };
    ncclReduce(
        source: Data, target: Data, count: usize, data_type: c_int, operation: c_int, root: c_int,
        communicator: Communicator, stream: Data,
    ) => Work {
        function: Function::Reduce, operation: Some(operation), root: Some(root),
        source, target, count, data_type, communicator, stream,
    };
    ncclBroadcast(
        source: Data, target: Data, count: usize, data_type: c_int, root: c_int,
        communicator: Communicator, stream: Data,
    ) => Work {
        function: Function::Broadcast, operation: None, root: Some(root),
        source, target, count, data_type, communicator, stream,
    };
    ncclBcast(
        buffer: Data, count: usize, data_type: c_int, root: c_int, communicator: Communicator,
        stream: Data,
    ) => Work {
        function: Function::Broadcast, operation: None, root: Some(root),
        source: buffer, target: buffer, count, data_type, communicator, stream,
    };
    ncclGather(
        source: Data, target: Data, count: usize, data_type: c_int, root: c_int,
        communicator: Communicator, stream: Data,
    ) => Work {
        function: Function::Gather, operation: None, root: Some(root),
        source, target, count, data_type, communicator, stream,
    };
    ncclScatter(
        source: Data, target: Data, count: usize, data_type: c_int, root: c_int,
        communicator: Communicator, stream: Data,
    ) => Work {
        function: Function::Scatter, operation: None, root: Some(root),
        source, target, count, data_type, communicator, stream,
    };
    ncclAllGather(
        source: Data, target: Data, count: usize, data_type: c_int, communicator: Communicator,
        stream: Data,
    ) => Work {
        function: Function::AllGather, operation: None, root: None,
        source, target, count, data_type, communicator, stream,
    };
    ncclAlltoAll(
        source: Data, target: Data, count: usize, data_type: c_int, communicator: Communicator,
        stream: Data,
    ) => Work {
        function: Function::AllToAll, operation: None, root: None,
        source, target, count, data_type, communicator, stream,
    };
    ncclSend(
        buffer: Data, count: usize, data_type: c_int, peer: c_int, communicator: Communicator,
        stream: Data,
    ) => Work {
        function: Function::Send, operation: None, root: Some(peer),
        source: buffer, target: std::ptr::null(), count, data_type, communicator, stream,
    };
    ncclRecv(
        buffer: Data, count: usize, data_type: c_int, peer: c_int, communicator: Communicator,
        stream: Data,
    ) => Work {
        function: Function::Receive, operation: None, root: Some(peer),
        source: std::ptr::null(), target: buffer, count, data_type, communicator, stream,
    };
}

device_work! {
    before: begin_work;
    (operation: c_int, communicator: Communicator) => ncclRedOpDestroy;
}

/// A group is only a way to start several collectives at once, or to make several communicators. It needs no
/// context: threads that have not chosen a card end communicators in one.
#[unsafe(no_mangle)]
pub extern "C" fn ncclGroupStart() -> i32 {
    log_call!(ncclGroupStart);
    ranks::begin_group();
    status::SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclGroupEnd() -> i32 {
    log_call!(ncclGroupEnd);
    ranks::end_group()
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
