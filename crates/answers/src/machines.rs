//! One job on several machines: joins the recordings that each machine made of its own ranks.

use ghostgpu_recording::{Answer, Recording, Verdict};

use crate::ranks::{NotRun, grounds_in_words};

/// Joins the recordings of all machines, each with the name of its file, into that of the whole job. The error is a
/// sentence that says which files do not belong together.
pub fn joined(machines: Vec<(String, Recording)>) -> Result<Recording, String> {
    let mut answers = Vec::new();
    let mut job: Option<(String, Recording)> = None;
    for (name, recording) in machines {
        let answer = answer_of(&name, &recording)?;
        answers.push(answer.clone());
        match &mut job {
            None => job = Some((name, recording)),
            Some((first, job)) => {
                check(first, job, &name, &recording)?;
                job.join(recording);
            }
        }
    }
    let (_, mut job) = job.ok_or("there is no recording")?;
    job.about.answer = answer_of_all(answers);
    Ok(job)
}

fn answer_of<'a>(name: &str, recording: &'a Recording) -> Result<&'a Answer, String> {
    let answer = recording.about.answer.as_ref();
    answer
        .filter(|answer| !answer.ranks.is_empty())
        .ok_or_else(|| format!("`{name}` does not record a job with several ranks"))
}

/// Whether another recording is of the same job, with other ranks.
fn check(first: &str, job: &Recording, name: &str, other: &Recording) -> Result<(), String> {
    let size = |recording: &Recording| -> u32 {
        let answer = recording.about.answer.as_ref();
        let rank = answer.and_then(|answer| answer.ranks.first());
        rank.map_or(0, |rank| rank.world_size)
    };
    let (ours, theirs) = (size(job), size(other));
    if ours != theirs {
        return Err(format!(
            "`{first}` records a job with {ours} ranks, `{name}` one with {theirs}"
        ));
    }
    if job.about.gpu != other.about.gpu {
        return Err(format!(
            "`{first}` is of {}, `{name}` of {}: one job has cards of one kind",
            job.about.gpu, other.about.gpu
        ));
    }
    let known: Vec<Option<u32>> = job.cards.iter().map(|card| card.rank).collect();
    let twice = other.cards.iter().find(|card| known.contains(&card.rank));
    match twice.and_then(|card| card.rank) {
        Some(rank) => Err(format!(
            "rank {rank} is in `{name}` and in a file before it: each file is of ranks of its own"
        )),
        None => Ok(()),
    }
}

/// Ranks verdicts, the worst highest.
fn severity(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Fits => 0,
        Verdict::FitsTightly => 1,
        Verdict::NotKnown | Verdict::DidNotUseCard => 2,
        Verdict::WillRunOut => 3,
        Verdict::DoesNotFit => 4,
        _ => 5,
    }
}

/// A job fits only if it fits on every machine, so this is the worst answer, with the ranks of all machines.
fn answer_of_all(answers: Vec<Answer>) -> Option<Answer> {
    let weight = |answer: &&Answer| (severity(answer.verdict), answer.peak_device_bytes);
    // The first of equals.
    let mut all = answers.iter().rev().max_by_key(weight)?.clone();
    all.ranks = answers.iter().flat_map(|one| one.ranks.clone()).collect();
    all.ranks.sort_by_key(|rank| rank.rank);
    let most = |of: fn(&Answer) -> Option<u64>| answers.iter().filter_map(of).max();
    all.peak_allocated_bytes = most(|one| one.peak_allocated_bytes);
    all.peak_reserved_bytes = most(|one| one.peak_reserved_bytes);
    all.peak_device_bytes = most(|one| Some(one.peak_device_bytes)).unwrap_or(0);
    all.needed_device_bytes = most(|one| one.needed_device_bytes);
    all.headroom_bytes = answers.iter().filter_map(|one| one.headroom_bytes).min();
    // Device numbers are only valid within one machine.
    all.devices.clear();
    let mut sentences: Vec<String> = Vec::new();
    for one in &answers {
        let own = NotRun::ALL.map(|not_run| grounds_in_words(&one.ranks, not_run));
        for sentence in &one.assumptions {
            let is_of_one_machine = own.iter().flatten().any(|grounds| grounds == sentence);
            if !is_of_one_machine && !sentences.contains(sentence) {
                sentences.push(sentence.clone());
            }
        }
    }
    sentences.splice(0..0, grounds_in_words(&all.ranks, NotRun::NotAsked));
    all.assumptions = sentences;
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ghostgpu_recording::RankPeak;
    use ghostgpu_recording::made_up::{MadeUp, recording};

    fn machine(ranks: [u32; 2], verdict: Verdict, peak: u64) -> Recording {
        let of_rank = |rank: u32| {
            let mut made = recording(MadeUp {
                layers: 2,
                steps: 1,
            });
            made.cards[0].rank = Some(rank);
            made
        };
        let mut made = of_rank(ranks[0]);
        made.join(of_rank(ranks[1]));
        let peaks = ranks.map(|rank| RankPeak {
            rank,
            world_size: 4,
            ..RankPeak::default()
        });
        made.about.answer = Some(Answer {
            verdict,
            fits: verdict.fits(),
            peak_device_bytes: peak,
            ranks: peaks.to_vec(),
            assumptions: vec![
                "2 of 4 ranks were run: the others are taken to be like them (--ranks)".to_owned(),
                "values read as ordinary ones".to_owned(),
            ],
            ..Answer::default()
        });
        made
    }

    fn put_together(machines: Vec<Recording>) -> Result<Recording, String> {
        let names = (0..).map(|number| format!("run-{number}.ghost"));
        joined(names.zip(machines).collect())
    }

    #[test]
    fn a_job_fits_if_it_fits_on_every_machine() {
        let job = put_together(vec![
            machine([2, 3], Verdict::Fits, 7),
            machine([0, 1], Verdict::DoesNotFit, 5),
        ]);
        let job = job.expect("two machines of one job");
        assert_eq!(job.check(), Ok(()));
        let ranks: Vec<_> = job.cards.iter().filter_map(|card| card.rank).collect();
        assert_eq!(ranks, [0, 1, 2, 3]);
        let answer = job.about.answer.expect("an answer");
        assert_eq!(
            (answer.verdict, answer.peak_device_bytes),
            (Verdict::DoesNotFit, 7)
        );
        assert_eq!(answer.ranks.len(), 4);
        assert_eq!(answer.assumptions, ["values read as ordinary ones"]);
    }

    #[test]
    fn the_number_of_missing_ranks_is_given() {
        let job = put_together(vec![machine([0, 3], Verdict::Fits, 7)]).expect("one machine");
        let answer = job.about.answer.expect("an answer");
        assert!(answer.assumptions[0].starts_with("2 of 4 ranks were run"));
    }

    #[test]
    fn files_that_do_not_belong_together_are_refused_in_a_sentence() {
        let mut other_card = machine([2, 3], Verdict::Fits, 1);
        other_card.about.gpu = "another".to_owned();
        let mut larger = machine([2, 3], Verdict::Fits, 1);
        if let Some(answer) = &mut larger.about.answer {
            answer.ranks[0].world_size = 8;
        }
        let alone = recording(MadeUp {
            layers: 1,
            steps: 1,
        });
        for (second, sentence) in [
            (
                machine([1, 2], Verdict::Fits, 1),
                "rank 1 is in `run-1.ghost`",
            ),
            (other_card, "one job has cards of one kind"),
            (
                larger,
                "`run-0.ghost` records a job with 4 ranks, `run-1.ghost` one with 8",
            ),
            (
                alone,
                "`run-1.ghost` does not record a job with several ranks",
            ),
        ] {
            let refused = put_together(vec![machine([0, 1], Verdict::Fits, 1), second]);
            let said = refused.expect_err("they do not belong together");
            assert!(said.contains(sentence), "{said}");
        }
    }
}
