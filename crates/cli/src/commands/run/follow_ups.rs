//! Commands that may follow `run`, with the arguments that the user typed.

use super::Arguments;
use ghostgpu_answers::fits::FollowUps;
use ghostgpu_rehearse::{Extent, hides_every_card};

const PAGE: &str = "report.html";

/// How many times longer a rehearsal should run if it did not reach everything.
const TIMES_LONGER: u32 = 10;

const VARIABLE: &str = "CUDA_VISIBLE_DEVICES";

/// The options about the cards of a job with several ranks.
fn cards(arguments: &Arguments) -> Vec<String> {
    let mut words = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        words.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
    };
    let if_several = |number: u32| (number > 1).then(|| number.to_string());
    add("--count", if_several(arguments.cards.count));
    add("--nodes", if_several(arguments.nodes));
    add("--ranks", arguments.ranks.word());
    let nccl = arguments.nccl_memory.map(|bytes| bytes.to_string());
    add("--nccl-memory", nccl);
    words
}

/// Whether the user's environment hides all cards from the script.
fn hides_cards(count: u32) -> bool {
    let value = std::env::var_os(VARIABLE);
    value.is_some_and(|value| hides_every_card(&value.to_string_lossy(), count as usize))
}

pub fn follow_ups(arguments: &Arguments) -> FollowUps {
    let Some(gpu) = &arguments.options.gpu else {
        return FollowUps::default();
    };
    let job = arguments.script.typed();
    let extent = arguments.extent.words();
    let with_extent = |command: &str, more: &[&str], extent: &[String]| {
        let mut words: Vec<String> = ["ghostgpu", command, "--gpu", gpu]
            .map(str::to_owned)
            .to_vec();
        words.extend(arguments.options.memory_words());
        words.extend(more.iter().map(|&word| word.to_owned()));
        words.extend(arguments.options.words());
        words.extend(arguments.tricks.words());
        words.extend(extent.iter().cloned());
        words.extend(job.iter().cloned());
        words
    };
    let on_this_card = |command: &str, more: &[&str]| with_extent(command, more, &extent);
    let cards = cards(arguments);
    let cards: Vec<&str> = cards.iter().map(String::as_str).collect();
    let cards = cards.as_slice();
    let script = job
        .first()
        .filter(|word| word.ends_with(".py") || word.ends_with(".ipynb"));
    let mut rehearsed: Vec<String> = cards.iter().map(|&word| word.to_owned()).collect();
    rehearsed.extend(arguments.options.words());
    rehearsed.extend(arguments.tricks.words());
    rehearsed.extend(extent.iter().cloned());
    rehearsed.extend(job.iter().cloned());
    let has_tricks = !arguments.tricks.words().is_empty();
    FollowUps {
        // Both searches need a single card, and a plan starts without tricks.
        plan: (cards.is_empty() && !has_tricks).then(|| on_this_card("plan", &[])),
        largest_batch: cards.is_empty().then(|| on_this_card("max-batch", &[])),
        page: arguments
            .breakdown
            .report
            .is_none()
            .then(|| on_this_card("run", &[cards, &["--report", PAGE]].concat())),
        longer: match arguments.extent.extent() {
            Extent::Coverage { budget } => {
                let budget = format!("{}s", (budget * TIMES_LONGER).as_secs_f64());
                Some(with_extent("run", cards, &["--budget".to_owned(), budget]))
            }
            Extent::Steps(_) | Extent::Whole => None,
        },
        unhidden: hides_cards(arguments.cards.count).then(|| {
            [
                &["env", "-u", VARIABLE].map(str::to_owned)[..],
                &on_this_card("run", cards),
            ]
            .concat()
        }),
        lint: script.map(|script| ["ghostgpu", "lint", script].map(str::to_owned).to_vec()),
        rehearsed: Some(rehearsed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn typed(line: &str) -> FollowUps {
        follow_ups(&Line::parse_from(line.split(' ')).arguments)
    }

    fn joined(words: Option<Vec<String>>) -> String {
        words.unwrap_or_default().join(" ")
    }

    #[test]
    fn commands_repeat_what_was_typed() {
        let next = typed("run --gpu 3060 train.py --lr 1e-4");
        assert_eq!(
            joined(next.plan),
            "ghostgpu plan --gpu 3060 train.py --lr 1e-4"
        );
        assert_eq!(
            joined(next.largest_batch),
            "ghostgpu max-batch --gpu 3060 train.py --lr 1e-4"
        );
        assert_eq!(
            joined(next.page),
            "ghostgpu run --gpu 3060 --report report.html train.py --lr 1e-4"
        );
        assert_eq!(joined(next.lint), "ghostgpu lint train.py");
        assert_eq!(joined(next.rehearsed), "train.py --lr 1e-4");
    }

    #[test]
    fn modules_notebooks_and_shell_scripts_need_no_dashes() {
        for job in ["-m pkg.train --lr 1", "train.ipynb", "train.sh 3"] {
            let next = typed(&format!("run --gpu 3060 {job}"));
            assert_eq!(joined(next.rehearsed), job);
        }
    }

    #[test]
    fn options_that_change_the_figures_are_kept_and_others_are_not() {
        let next = typed(
            "run --gpu h200 --memory 11GiB --reserve 1GiB --margin 5% --steps 5 --no-cudnn --json out.json -- python -m a.b",
        );
        assert_eq!(
            joined(next.largest_batch),
            "ghostgpu max-batch --gpu h200 --memory 11264MiB --reserve 1024MiB --margin 5% --no-cudnn --steps 5 -- python -m a.b"
        );
        assert_eq!(next.lint, None);
        assert_eq!(next.longer, None, "so many steps were asked for");
        let hurried = typed("run --gpu 3060 --budget 90s --no-cudnn train.py");
        assert_eq!(
            joined(hurried.longer),
            "ghostgpu run --gpu 3060 --no-cudnn --budget 900s train.py"
        );
        let several = typed("run --gpu h100 --count 8 --report x.html -- torchrun train.py");
        assert_eq!(several.plan, None);
        assert_eq!(several.largest_batch, None);
        assert_eq!(several.page, None);
        assert_eq!(joined(several.rehearsed), "--count 8 -- torchrun train.py");
        let nodes = typed(
            "run --gpu h100 --count 8 --nodes 2 --ranks 0,3-5 --nccl-memory 1GiB -- torchrun train.py",
        );
        assert_eq!(
            joined(nodes.rehearsed),
            "--count 8 --nodes 2 --ranks 0,3,4,5 --nccl-memory 1073741824 -- torchrun train.py"
        );
    }
}
