//! Calls that all ranks have made and that wait for each other on the cards.

use std::collections::BTreeSet;
use std::path::Path;

use ghostgpu_rendezvous::{
    Call, Channel, Communicator, Dependency, Function, Member, ProcessId, find_circle,
};

const LARGE: u64 = 4 << 20;

fn join(folder: &Path, name: &str, rank: u32, size: u32, process: u32) -> Communicator {
    let own = Member {
        process: ProcessId {
            pid: 100 + process,
            began: 1,
        },
        job_rank: Some(process),
        size,
        host: String::new(),
        bus: format!("{process}000"),
        line: String::new(),
    };
    Communicator::join(folder, name, rank, own, BTreeSet::new()).expect("joined")
}

/// The same call as that before it, or another one, of the same or another communicator.
fn after(communicator: Option<&str>, channel: Channel) -> Vec<Dependency> {
    vec![Dependency {
        communicator: communicator.map(str::to_owned),
        channel,
        number: 0,
    }]
}

fn call(function: Function, count: u64, root: Option<u32>, after: Vec<Dependency>) -> Call {
    Call {
        function,
        count,
        data_type: 7,
        operation: None,
        root,
        part: None,
        line: format!(
            "train.py:{}",
            if function == Function::Send { 8 } else { 9 }
        ),
        after,
    }
}

fn circle(post: impl FnOnce(&Path)) -> Option<String> {
    let folder = tempfile::tempdir().expect("folder");
    post(folder.path());
    find_circle(folder.path()).map(|trouble| trouble.to_string())
}

/// Two ranks exchange messages: each makes the first of its calls before the second, or both at once.
fn exchange(count: u64, order: [[Function; 2]; 2], in_order: bool) -> Option<String> {
    circle(|folder| {
        for (rank, functions) in (0u32..).zip(order) {
            let communicator = join(folder, "pair", rank, 2, rank);
            let other = 1 - rank;
            let mut earlier = Vec::new();
            for function in functions {
                let own = call(function, count, Some(other), earlier.clone());
                communicator.post(own, None).expect("posted");
                if in_order {
                    earlier = after(
                        None,
                        match function {
                            Function::Send => Channel::To(other),
                            _ => Channel::From(other),
                        },
                    );
                }
            }
        }
    })
}

const SEND_FIRST: [Function; 2] = [Function::Send, Function::Receive];
const RECEIVE_FIRST: [Function; 2] = [Function::Receive, Function::Send];

#[test]
fn two_ranks_that_send_before_they_receive_wait_for_each_other() {
    let told = exchange(LARGE, [SEND_FIRST, SEND_FIRST], true);
    let expected = "rank 0 waits in send of 4194304 × float32 to rank 1 at train.py:8 for rank 1, rank 1 waits in send of \
                    4194304 × float32 to rank 0 at train.py:8 for rank 0: a real job would hang there, unless NCCL's \
                    buffers hold the messages, which it does not promise (torch.distributed.batch_isend_irecv)";
    assert_eq!(told.as_deref(), Some(expected));
    let told = exchange(4, [RECEIVE_FIRST, RECEIVE_FIRST], true).expect("nobody sends");
    assert!(told.ends_with("a real job would hang there"), "{told}");
}

#[test]
fn messages_in_a_possible_order_in_one_group_or_small_enough_are_fine() {
    assert_eq!(exchange(LARGE, [SEND_FIRST, RECEIVE_FIRST], true), None);
    assert_eq!(exchange(LARGE, [SEND_FIRST, SEND_FIRST], false), None);
    assert_eq!(exchange(LARGE / 4, [SEND_FIRST, SEND_FIRST], true), None);
}

#[test]
fn a_ring_of_ranks_that_all_send_first_is_found_across_communicators() {
    let ring = |last_receives_first: bool| {
        circle(|folder| {
            for rank in 0u32..3 {
                let (next, previous) = ((rank + 1) % 3, (rank + 2) % 3);
                let join_pair = |other: u32| {
                    let (low, high) = (rank.min(other), rank.max(other));
                    let own = u32::from(rank == high);
                    join(folder, &format!("{low}-{high}"), own, 2, rank)
                };
                let (to, from) = (join_pair(next), join_pair(previous));
                let (to_rank, from_rank) = (1 - to.rank(), 1 - from.rank());
                let send = |after| call(Function::Send, LARGE, Some(to_rank), after);
                let receive = |after| call(Function::Receive, LARGE, Some(from_rank), after);
                if last_receives_first && rank == 2 {
                    from.post(receive(Vec::new()), None).expect("posted");
                    let earlier = after(Some(from.name()), Channel::From(from_rank));
                    to.post(send(earlier), None).expect("posted");
                } else {
                    to.post(send(Vec::new()), None).expect("posted");
                    let earlier = after(Some(to.name()), Channel::To(to_rank));
                    from.post(receive(earlier), None).expect("posted");
                }
            }
        })
    };
    let told = ring(false).expect("all of them send");
    for rank in 0..3 {
        let next = (rank + 1) % 3;
        let words = format!(
            "rank {rank} waits in send of 4194304 × float32 to rank {next} at train.py:8 for rank {next}"
        );
        assert!(told.contains(&words), "{told}");
    }
    assert_eq!(ring(true), None);
}

#[test]
fn groups_that_are_used_in_another_order_wait_for_each_other() {
    let used = |orders: [[&str; 2]; 2]| {
        circle(|folder| {
            for (rank, order) in (0u32..).zip(orders) {
                let [first, second] = order.map(|name| join(folder, name, rank, 2, rank));
                let reduce = |after| call(Function::AllReduce, 1, None, after);
                first.post(reduce(Vec::new()), None).expect("posted");
                let earlier = after(Some(first.name()), Channel::Collectives);
                second.post(reduce(earlier), None).expect("posted");
            }
        })
    };
    let told = used([["a", "b"], ["b", "a"]]).expect("a circle");
    assert!(told.starts_with("rank 0 waits in all_reduce"), "{told}");
    assert!(
        told.ends_with("for rank 0: a real job would hang there"),
        "{told}"
    );
    assert_eq!(used([["a", "b"], ["a", "b"]]), None);
}

#[test]
fn the_root_of_a_broadcast_waits_for_nobody() {
    let told = circle(|folder| {
        for rank in 0u32..2 {
            let [first, second] = ["a", "b"].map(|name| join(folder, name, rank, 2, rank));
            let broadcast = |after| call(Function::Broadcast, 1, Some(0), after);
            let (one, other) = match rank {
                0 => (&first, &second),
                _ => (&second, &first),
            };
            one.post(broadcast(Vec::new()), None).expect("posted");
            let earlier = after(Some(one.name()), Channel::Collectives);
            other.post(broadcast(earlier), None).expect("posted");
        }
    });
    assert_eq!(told, None);
}
