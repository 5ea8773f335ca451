//! What one rehearsal does differently from the script as it is.

use std::path::{Path, PathBuf};

use ghostgpu_device::DeviceSheet;
use ghostgpu_session::SizePointRequest;

use crate::in_place_of::in_place_of_the_script;
use crate::prepare::{Prepared, settings_from_environment};
use crate::words::with_value;
use crate::{SizePoint, TrickRequest};

/// One thing that a rehearsal does differently.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A variable of the script's environment, such as a setting of PyTorch's allocator.
    Variable { name: String, value: String },
    /// An argument of the script gets this number.
    Argument { option: String, value: u64 },
    /// One more word at the end of the script's arguments.
    Word(String),
    /// Other sizes, set at a size point.
    Sizes { point: SizePoint, sizes: Sizes },
    /// This text is run instead of the script's own.
    Text(String),
    /// A trick, which the agent applies while the script runs.
    Trick(TrickRequest),
    /// Another card.
    Card(Box<DeviceSheet>),
    /// Cards with exactly this much memory.
    Memory(u64),
    /// Cards on which allocation never fails.
    UnlimitedMemory,
    /// Cards with this many bytes less.
    LessMemory(u64),
    /// Sizes that depend on unknown values are half as large as usually assumed.
    HalfOfAssumedSizes,
    /// Skips later epochs, which another rehearsal has shown to be like the first ones.
    WithoutLaterPasses,
    /// Runs only the first and last batches of a pass, evaluation, and one step after it. Another rehearsal has shown
    /// that this gives the same figures.
    Briefly,
    /// Runs only this many optimizer steps, whatever the job's extent.
    Steps(u64),
}

/// Sizes that replace the script's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    pub batch: Option<u64>,
    /// Tokens of a sample.
    pub sequence: Option<u64>,
}

impl Sizes {
    pub fn batch(size: u64) -> Self {
        Self {
            batch: Some(size),
            sequence: None,
        }
    }

    pub fn sequence(size: u64) -> Self {
        Self {
            batch: None,
            sequence: Some(size),
        }
    }

    /// The names under which a fork receives them.
    pub(crate) fn named(self) -> impl Iterator<Item = (&'static str, u64)> {
        let named = [("batch", self.batch), ("seq", self.sequence)];
        named
            .into_iter()
            .filter_map(|(name, size)| Some((name, size?)))
    }
}

impl Prepared {
    /// This job with changes; files that the changes need are written to `folder`.
    pub(crate) fn with(&self, changes: &[Change], folder: &Path) -> std::io::Result<Self> {
        let mut changed = self.clone();
        for change in changes {
            changed.apply(change, folder)?;
        }
        let has_text = changes
            .iter()
            .any(|change| matches!(change, Change::Text(_)));
        if self.is_notebook && !has_text {
            let notebook = PathBuf::from(&self.words[0]);
            changed.words = in_place_of_the_script(&changed.words, &notebook);
        }
        Ok(changed)
    }

    fn apply(&mut self, change: &Change, folder: &Path) -> std::io::Result<()> {
        match change {
            Change::Variable { name, value } => {
                self.variables.push((name.into(), value.into()));
            }
            Change::Argument { option, value } => {
                self.words = with_value(&self.words, option, *value);
            }
            Change::Word(word) => self.words.push(word.into()),
            Change::Sizes { point, sizes } => match (point, sizes.batch) {
                (SizePoint::Option(option), Some(size)) => {
                    self.words = with_value(&self.words, option, size);
                }
                (SizePoint::Option(_), None) => {}
                (point, batch) => {
                    self.session.size_point = Some(SizePointRequest {
                        place: point.clone(),
                        batch,
                        seq: sizes.sequence,
                        socket: None,
                    });
                }
            },
            Change::Text(contents) => {
                let file = folder.join("script-with-changes.py");
                std::fs::write(&file, contents)?;
                self.words = in_place_of_the_script(&self.words, &file);
            }
            Change::Trick(request) => {
                self.session.tricks.push(request.clone());
                self.variables
                    .extend(settings_from_environment(std::slice::from_ref(request)));
            }
            Change::Card(sheet) => self.session.devices = vec![(**sheet).clone()],
            Change::Memory(bytes) => {
                // The job gets all of it: what others use is not part of the job's need.
                self.reserve_bytes = 0;
                for card in &mut self.session.devices {
                    card.total_bytes = *bytes;
                }
            }
            Change::UnlimitedMemory => self.session.unlimited_memory = true,
            Change::HalfOfAssumedSizes => self.session.halves_sizes = true,
            Change::LessMemory(bytes) => {
                for device in &mut self.session.devices {
                    device.total_bytes = device.total_bytes.saturating_sub(*bytes);
                }
            }
            Change::WithoutLaterPasses => {
                if let Some(coverage) = &mut self.session.coverage {
                    coverage.skips_later_passes = true;
                }
            }
            Change::Briefly => {
                if let Some(coverage) = &mut self.session.coverage {
                    coverage.is_brief = true;
                }
            }
            Change::Steps(steps) => {
                self.session.steps = *steps;
                self.session.coverage = None;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use ghostgpu_device::Catalogue;
    use ghostgpu_session::Session;

    use super::*;
    use crate::layout::Layout;

    fn sheet(card: &str) -> DeviceSheet {
        Catalogue::builtin().find(card).expect("a card").sheet()
    }

    fn prepared() -> Prepared {
        Prepared {
            program: "python".into(),
            words: words("train.py --batch-size 8"),
            layout: Layout {
                program: PathBuf::new(),
                library: PathBuf::new(),
                cudnn_program: None,
                inject_dir: PathBuf::new(),
            },
            session: Session {
                steps: 3,
                ..Session::plain(PathBuf::new(), vec![sheet("3060")])
            },
            timeout: None,
            is_notebook: false,
            ignores_python_variables: false,
            variables: Vec::new(),
            reserve_bytes: 0,
            uncertainty: None,
            torch: None,
            assumptions: Vec::new(),
            remarks: Vec::new(),
        }
    }

    fn words(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    fn with(changes: &[Change]) -> Prepared {
        let folder = tempfile::tempdir().expect("folder");
        prepared().with(changes, folder.path()).expect("applied")
    }

    #[test]
    fn changes_of_arguments_reach_the_command_line() {
        let sizes = |point, sizes| Change::Sizes { point, sizes };
        let option = SizePoint::Option("--batch-size".to_owned());
        let cases = [
            (
                Change::Word("--amp".to_owned()),
                "train.py --batch-size 8 --amp",
            ),
            (
                Change::Argument {
                    option: "--seq-len".to_owned(),
                    value: 64,
                },
                "train.py --batch-size 8 --seq-len 64",
            ),
            (
                sizes(option.clone(), Sizes::batch(16)),
                "train.py --batch-size 16",
            ),
            (sizes(option, Sizes::default()), "train.py --batch-size 8"),
            (Change::UnlimitedMemory, "train.py --batch-size 8"),
            (Change::Memory(1), "train.py --batch-size 8"),
        ];
        for (change, expected) in cases {
            assert_eq!(
                with(std::slice::from_ref(&change)).words,
                words(expected),
                "{change:?}"
            );
        }
    }

    #[test]
    fn other_changes_reach_the_session() {
        let changed = with(&[
            Change::UnlimitedMemory,
            Change::HalfOfAssumedSizes,
            Change::Card(Box::new(sheet("h200"))),
            Change::Trick(TrickRequest::named("autocast")),
            Change::Sizes {
                point: SizePoint::TrainingLoader,
                sizes: Sizes::sequence(64),
            },
        ]);
        let session = changed.session;
        assert!(session.unlimited_memory && session.halves_sizes);
        assert_eq!(session.devices, [sheet("h200")]);
        assert_eq!(session.tricks, [TrickRequest::named("autocast")]);
        let request = session.size_point.expect("sizes are set");
        assert_eq!((request.batch, request.seq), (None, Some(64)));
        assert_eq!(changed.words, prepared().words);
    }

    #[test]
    fn another_memory_applies_to_every_card() {
        let mut two = prepared();
        two.session.devices.push(sheet("3060"));
        let folder = tempfile::tempdir().expect("folder");
        let changed = two.with(&[Change::Memory(5 << 30)], folder.path());
        let devices = changed.expect("applied").session.devices;
        assert_eq!(devices.len(), 2);
        for device in devices {
            assert_eq!(device.total_bytes, 5 << 30);
            assert_eq!(device.name, sheet("3060").name);
        }
    }

    #[test]
    fn another_text_runs_in_place_of_the_script() {
        let folder = tempfile::tempdir().expect("folder");
        let change = Change::Text("print()".to_owned());
        let changed = prepared().with(&[change], folder.path()).expect("applied");
        assert_eq!(changed.words[0], "-c");
        assert_eq!(changed.words[3..], prepared().words);
        let text = std::fs::read_to_string(&changed.words[2]).expect("the text");
        assert_eq!(text, "print()");
    }

    #[test]
    fn a_notebook_is_run_in_every_rehearsal_also_with_another_text() {
        let folder = tempfile::tempdir().expect("folder");
        let notebook = Prepared {
            words: words("train.ipynb --epochs 3"),
            is_notebook: true,
            ..prepared()
        };
        let argument = Change::Argument {
            option: "--epochs".to_owned(),
            value: 1,
        };
        let plain = notebook.with(&[argument], folder.path()).expect("applied");
        assert_eq!(
            plain.words[2..],
            words("train.ipynb train.ipynb --epochs 1")
        );
        let text = Change::Text("{}".to_owned());
        let fixed = notebook.with(&[text], folder.path()).expect("applied");
        assert_eq!(fixed.words[..2], plain.words[..2], "by the same program");
        assert_eq!(fixed.words[2], folder.path().join("script-with-changes.py"));
        assert_eq!(fixed.words[3..], notebook.words);
    }
}
