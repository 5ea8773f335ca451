//! The command to type next.

use ghostgpu_device::Catalogue;

use ghostgpu_recording::NextCommand;

use crate::fits::Answer;
use ghostgpu_recording::Verdict;

/// Commands that may follow an answer, as words; `None` for those that make no sense here.
#[derive(Clone, Debug, Default)]
pub struct FollowUps {
    /// Finds the tricks that make the job fit.
    pub plan: Option<Vec<String>>,
    /// Finds the largest batch that fits.
    pub largest_batch: Option<Vec<String>>,
    /// Writes the report page.
    pub page: Option<Vec<String>>,
    /// Reads the script.
    pub lint: Option<Vec<String>>,
    /// Goes further into the training.
    pub longer: Option<Vec<String>>,
    /// The same without the variable that hides the cards, if one does.
    pub unhidden: Option<Vec<String>>,
    /// What follows `ghostgpu run --gpu NAME` to rehearse the same on another card.
    pub rehearsed: Option<Vec<String>>,
}

/// A command, and what it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Next {
    pub words: Vec<String>,
    pub finds: &'static str,
}

impl From<Next> for NextCommand {
    fn from(next: Next) -> Self {
        let words: Vec<String> = next.words.iter().map(|word| quoted(word)).collect();
        Self {
            command: words.join(" "),
            finds: next.finds.to_owned(),
        }
    }
}

impl FollowUps {
    /// The command to follow this answer.
    pub fn choose(&self, answer: &Answer, grows: bool) -> Option<Next> {
        let lint = || next(self.lint.clone(), "finds what keeps the memory");
        let plan = || next(self.plan.clone(), "what makes it fit");
        let batch = || next(self.largest_batch.clone(), "the largest batch that fits");
        let page = || next(self.page.clone(), "where every byte goes");
        match answer.verdict {
            Verdict::Fits if grows => lint().or_else(page),
            Verdict::Fits => page().or_else(batch),
            Verdict::FitsTightly => batch().or_else(|| self.on_a_larger_card(answer)),
            Verdict::WillRunOut => lint().or_else(page),
            Verdict::DoesNotFit => {
                // No batch is small enough for a model that is too large.
                let is_the_model = answer
                    .oom
                    .as_ref()
                    .is_some_and(|oom| matches!(oom.stage.as_str(), "setup" | "moving the model"));
                match is_the_model {
                    true => self.on_a_larger_card(answer),
                    false => plan()
                        .or_else(batch)
                        .or_else(|| self.on_a_larger_card(answer)),
                }
            }
            Verdict::DidNotUseCard => next(self.unhidden.clone(), "with the card in sight"),
            Verdict::NotKnown if !answer.not_reached.is_empty() => {
                next(self.longer.clone(), "with more time to reach it")
            }
            Verdict::NotKnown
            | Verdict::CannotRun
            | Verdict::ScriptFailed
            | Verdict::ScriptKilled
            | Verdict::TimedOut
            | Verdict::Refused
            | Verdict::PreloadBlocked => None,
        }
    }

    /// Rehearses on the smallest card with enough memory; if known, enough to run without flushes of PyTorch's cache.
    fn on_a_larger_card(&self, answer: &Answer) -> Option<Next> {
        let needed = answer
            .comfortable_device_bytes
            .or(answer.needed_device_bytes)?;
        let needed = needed.saturating_add(answer.reserve_bytes);
        let rehearsed = self.rehearsed.as_ref()?;
        let cards = Catalogue::builtin().cards().iter();
        let card = cards
            .filter(|card| card.total_bytes > needed && card.total_bytes > answer.gpu.total_bytes)
            .min_by_key(|card| card.total_bytes)?;
        let names = std::iter::once(card.name).chain(card.aliases.iter().copied());
        let name = names.min_by_key(|name| (name.len(), *name))?;
        let mut words: Vec<String> = ["ghostgpu", "run", "--gpu", name]
            .map(str::to_owned)
            .to_vec();
        words.extend(rehearsed.iter().cloned());
        next(Some(words), "the smallest card that has enough")
    }
}

fn next(words: Option<Vec<String>>, finds: &'static str) -> Option<Next> {
    words.map(|words| Next { words, finds })
}

/// The command, ready to be copied, with what it does if that fits on the same line.
pub fn lines(next: &Next, width: usize) -> Vec<String> {
    let quoted: Vec<String> = next.words.iter().map(|word| quoted(word)).collect();
    let mut lines = wrapped(&quoted, width);
    if let [only] = lines.as_mut_slice() {
        let comment = format!("   # {}", next.finds);
        if only.chars().count() + comment.chars().count() <= width {
            only.push_str(&comment);
        }
    }
    lines
}

/// A command over as many lines as necessary, because a shortened one could not be copied.
pub fn wrapped(words: &[String], width: usize) -> Vec<String> {
    const CONTINUED: &str = " \\";
    let whole = words.join(" ");
    if whole.chars().count() <= width {
        return vec![whole];
    }
    let mut lines = vec![String::new()];
    for (index, word) in words.iter().enumerate() {
        let is_last = index + 1 == words.len();
        let room = width.saturating_sub(if is_last { 0 } else { CONTINUED.len() });
        let Some(line) = lines.last_mut() else { break };
        let longer = match line.trim().is_empty() {
            true => format!("{line}{word}"),
            false => format!("{line} {word}"),
        };
        // A word that is wider than a line gets its own.
        if longer.chars().count() <= room || line.trim().is_empty() {
            *line = longer;
        } else {
            line.push_str(CONTINUED);
            lines.push(format!("  {word}"));
        }
    }
    lines
}

/// A word quoted for a shell.
pub fn quoted(word: &str) -> String {
    let is_plain =
        |character: char| character.is_ascii_alphanumeric() || "_@%+=:,./-".contains(character);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_long_command_is_broken_so_that_it_can_be_copied() {
        for (command, expected) in [
            ("a b c", &["a b c"][..]),
            ("aaaa bbbb cccc", &["aaaa bbbb \\", "  cccc"]),
            (
                "aaaa bbbb cccc dddd eeee",
                &["aaaa bbbb \\", "  cccc \\", "  dddd eeee"],
            ),
            // Words are never split.
            ("run a-long-script.py", &["run \\", "  a-long-script.py"]),
            (
                "a-long-program.sh --flag",
                &["a-long-program.sh \\", "  --flag"],
            ),
        ] {
            assert_eq!(wrapped(&words(command), 12), expected);
        }
    }

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        assert_eq!(quoted("--lr=1e-4"), "--lr=1e-4");
        assert_eq!(quoted("my script.py"), "'my script.py'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }
}
