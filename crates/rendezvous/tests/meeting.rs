//! Ranks that meet, in threads of one process: who agrees goes on, and who cannot is told why.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use ghostgpu_rendezvous::{
    Call, Communicator, Function, Member, ProcessId, Surroundings, Ticket, Trouble,
};

/// A machine on which processes end when the test says so.
#[derive(Default)]
struct Made {
    ended: Mutex<BTreeSet<u32>>,
}

impl Surroundings for Made {
    fn pause(&self, _: Duration) -> bool {
        thread::sleep(Duration::from_millis(1));
        true
    }

    fn is_alive(&self, process: ProcessId) -> bool {
        !self.ended.lock().expect("lock").contains(&process.pid)
    }

    fn processor_ticks(&self, _: ProcessId) -> u64 {
        0
    }
}

fn member(rank: u32, size: u32) -> Member {
    Member {
        process: ProcessId {
            pid: 100 + rank,
            began: 1,
        },
        job_rank: None,
        size,
        host: String::new(),
        bus: format!("{rank}000"),
        line: "train.py:3".to_owned(),
    }
}

fn join_without<const N: usize>(
    folder: &Path,
    rank: u32,
    size: u32,
    absent: [u32; N],
) -> Communicator {
    let absent = BTreeSet::from(absent);
    Communicator::join(folder, "world", rank, member(rank, size), absent).expect("joined")
}

fn join(folder: &Path, rank: u32, size: u32) -> Communicator {
    join_without(folder, rank, size, [])
}

fn call(function: Function, count: u64, root: Option<u32>) -> Call {
    Call {
        function,
        count,
        data_type: 7,
        operation: (function == Function::AllReduce).then_some(0),
        root,
        part: None,
        line: format!("train.py:{count}"),
        after: Vec::new(),
    }
}

/// Lets each rank do something in a thread of its own; returns what came of it.
fn each<R: Send>(
    size: u32,
    machine: &Made,
    act: impl Fn(u32, &Communicator, &Made) -> R + Sync,
) -> Vec<R> {
    let folder = tempfile::tempdir().expect("folder");
    thread::scope(|scope| {
        let ranks: Vec<_> = (0..size)
            .map(|rank| {
                let (folder, act) = (folder.path(), &act);
                scope.spawn(move || {
                    let communicator = join(folder, rank, size);
                    communicator.meet(machine).expect("met");
                    act(rank, &communicator, machine)
                })
            })
            .collect();
        ranks
            .into_iter()
            .map(|rank| rank.join().expect("a thread"))
            .collect()
    })
}

#[test]
fn values_reach_every_rank_and_unknown_ones_stay_unknown() {
    let seen = each(3, &Made::default(), |rank, communicator, machine| {
        let values = (rank != 1).then(|| vec![rank as u8; 4]);
        let ticket = communicator
            .post(call(Function::AllGather, 4, None), values.as_deref())
            .expect("posted");
        communicator.wait(ticket, machine).expect("everybody came");
        [0, 1, 2].map(|other| communicator.values(ticket, other))
    });
    for of_rank in seen {
        assert_eq!(of_rank, [Some(vec![0; 4]), None, Some(vec![2; 4])]);
    }
}

#[test]
fn ranks_that_are_not_run_are_not_waited_for_and_put_in_what_the_one_before_them_does() {
    let folder = tempfile::tempdir().expect("folder");
    let machine = Made::default();
    let [first, second] = [1, 4].map(|rank| join_without(folder.path(), rank, 6, [0, 2, 3, 5]));
    let tickets = [&first, &second].map(|each| {
        each.meet(&machine).expect("met");
        let values = [each.rank() as u8; 4];
        let call = call(Function::AllGather, 4, None);
        each.post(call, Some(&values)).expect("posted")
    });
    for (each, ticket) in [&first, &second].into_iter().zip(tickets) {
        each.wait(ticket, &machine).expect("those who are run came");
        let seen: Vec<u8> = (0..6)
            .map(|rank| each.values(ticket, rank).expect("known")[0])
            .collect();
        assert_eq!(seen, [1, 1, 1, 1, 4, 4]);
    }
    let from_absent = call(Function::Receive, 4, Some(3));
    let ticket = second.post(from_absent, None).expect("posted");
    second.wait(ticket, &machine).expect("nobody to wait for");
    assert_eq!(second.values(ticket, 3), None);
}

#[test]
fn messages_find_their_receivers_in_order() {
    let seen = each(2, &Made::default(), |rank, communicator, machine| {
        let post = |call, bytes: &[u8]| communicator.post(call, Some(bytes)).expect("posted");
        if rank == 0 {
            post(call(Function::Send, 1, Some(1)), b"a");
            post(call(Function::Send, 1, Some(1)), b"b");
            return Vec::new();
        }
        let tickets: Vec<Ticket> = (0..2)
            .map(|_| post(call(Function::Receive, 1, Some(0)), b""))
            .collect();
        let arrived = tickets.into_iter().map(|ticket| {
            communicator.wait(ticket, machine).expect("sent");
            communicator.values(ticket, 0)
        });
        arrived.collect()
    });
    assert_eq!(seen[1], [Some(b"a".to_vec()), Some(b"b".to_vec())]);
}

#[test]
fn ranks_that_call_different_things_are_both_told_the_same() {
    let cases = [
        (
            call(Function::AllReduce, 8, None),
            "rank 0 called all_reduce (sum) of 4 × float32 at train.py:4 where rank 1 called \
             all_reduce (sum) of 8 × float32 at train.py:8",
        ),
        (
            call(Function::Broadcast, 4, Some(1)),
            "where rank 1 called broadcast of 4 × float32 from rank 1 at train.py:4",
        ),
    ];
    for (other, words) in cases {
        let told = each(2, &Made::default(), |rank, communicator, machine| {
            let own = match rank {
                0 => call(Function::AllReduce, 4, None),
                _ => other.clone(),
            };
            let ticket = communicator.post(own, None).expect("posted");
            let trouble = communicator
                .wait(ticket, machine)
                .expect_err("they disagree");
            trouble.to_string()
        });
        assert_eq!(told[0], told[1]);
        assert!(told[0].contains(words), "{}", told[0]);
    }
}

#[test]
fn ranks_of_a_group_are_told_as_those_of_the_job() {
    let folder = tempfile::tempdir().expect("folder");
    let join = |rank: u32| {
        let own = Member {
            job_rank: Some(6 + rank),
            ..member(rank, 2)
        };
        Communicator::join(folder.path(), "part", rank, own, BTreeSet::new()).expect("joined")
    };
    let (one, other) = (join(0), join(1));
    let post = |communicator: &Communicator, root| {
        let call = call(Function::Broadcast, 4, Some(root));
        communicator.post(call, None).expect("posted")
    };
    post(&one, 0);
    let ticket = post(&other, 1);
    let trouble = other.wait(ticket, &Made::default()).expect_err("two roots");
    assert_eq!(
        trouble.to_string(),
        "rank 6 called broadcast of 4 × float32 from rank 6 at train.py:4 where rank 7 called broadcast of 4 × \
         float32 from rank 7 at train.py:4: a real job would hang there, or mix up data"
    );
}

#[test]
fn a_rank_that_has_ended_is_not_waited_for() {
    let machine = Made::default();
    let told = each(2, &machine, |rank, communicator, machine| {
        if rank == 1 {
            machine.ended.lock().expect("lock").insert(101);
            return None;
        }
        let ticket = communicator
            .post(call(Function::AllReduce, 4, None), None)
            .expect("posted");
        communicator.wait(ticket, machine).err()
    });
    let trouble = told[0].as_ref().expect("nobody comes");
    assert!(trouble.is_consequence());
    assert_eq!(
        trouble.to_string(),
        "rank 0 waits in all_reduce (sum) of 4 × float32 at train.py:4 for rank 1, which has ended: a real job \
         would hang there"
    );
}

#[test]
fn ranks_that_wait_for_each_other_are_told_so() {
    let told = each(2, &Made::default(), |rank, communicator, machine| {
        // Both receive before they send.
        let ticket = communicator
            .post(call(Function::Receive, 4, Some(1 - rank)), None)
            .expect("posted");
        let trouble = communicator.wait(ticket, machine).expect_err("a circle");
        // The other one has to see it, too.
        thread::sleep(Duration::from_millis(100));
        trouble.to_string()
    });
    let circle = "rank 0 waits in recv of 4 × float32 from rank 1 at train.py:4 for rank 1, rank 1 waits in recv of \
                  4 × float32 from rank 0 at train.py:4 for rank 0: a real job would hang there";
    assert!(told.iter().any(|text| text == circle), "{told:?}");
}

#[test]
fn a_rank_that_the_rehearsal_ended_is_silent() {
    let folder = tempfile::tempdir().expect("folder");
    let (one, _other) = (join(folder.path(), 0, 2), join(folder.path(), 1, 2));
    let ranks = folder.path().join("ranks");
    std::fs::write(ranks.join("left-101"), "").expect("written");
    let ticket = one
        .post(call(Function::AllReduce, 4, None), None)
        .expect("posted");
    assert_eq!(one.wait(ticket, &Made::default()), Ok(()));
    assert_eq!(one.values(ticket, 1), None);
}

#[test]
fn ranks_that_cannot_work_together_do_not_begin() {
    type Change = fn(&mut Member);
    let cases: [(Change, &str); 2] = [
        (
            |member| member.size = 4,
            "rank 0 makes a group of 2 ranks at train.py:3 where rank 1 makes one of 4 at train.py:3: a real job would \
             hang there",
        ),
        (
            |member| member.bus = "0000".to_owned(),
            "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 0000 at train.py:3 \
             (torch.cuda.set_device gives each rank its own)",
        ),
    ];
    for (change, words) in cases {
        let folder = tempfile::tempdir().expect("folder");
        let one = join(folder.path(), 0, 2);
        let mut other = member(1, 2);
        change(&mut other);
        let _other =
            Communicator::join(folder.path(), "world", 1, other, BTreeSet::new()).expect("joined");
        let trouble = one.meet(&Made::default()).expect_err("they cannot");
        assert_eq!(trouble.to_string(), words);
    }
    let folder = tempfile::tempdir().expect("folder");
    let _one = join(folder.path(), 0, 2);
    let twin = Communicator::join(folder.path(), "world", 0, member(0, 2), BTreeSet::new());
    assert_eq!(twin.err(), Some(Trouble::SameRank { rank: 0 }));
}

#[test]
fn two_ranks_on_one_card_are_fine_if_they_say_that_they_are_on_two_machines() {
    let folder = tempfile::tempdir().expect("folder");
    let members = [0, 1].map(|rank| {
        let mut member = member(rank, 2);
        (member.host, member.bus) = (format!("machine {rank}"), "1000".to_owned());
        Communicator::join(folder.path(), "world", rank, member, BTreeSet::new()).expect("joined")
    });
    assert_eq!(members[0].meet(&Made::default()), Ok(()));
}

#[test]
fn a_large_message_is_waited_for_until_it_is_received_and_a_small_one_is_not() {
    let machine = Made::default();
    let told = each(2, &machine, |rank, communicator, machine| {
        if rank == 1 {
            machine.ended.lock().expect("lock").insert(101);
            return None;
        }
        let post = |count| communicator.post(call(Function::Send, count, Some(1)), None);
        post(4).expect("posted");
        assert_eq!(communicator.newest(), []);
        let ticket = post(4 << 20).expect("posted");
        assert_eq!(communicator.newest(), [ticket]);
        communicator.wait(ticket, machine).err()
    });
    let trouble = told[0].as_ref().expect("nobody receives it");
    assert_eq!(
        trouble.to_string(),
        "rank 0 waits in send of 4194304 × float32 to rank 1 at train.py:4194304 for rank 1, which has ended: a real \
         job would hang there"
    );
}
