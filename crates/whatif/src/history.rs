//! The recorded history of one device, for what-if questions.

use ghostgpu_allocator::replay::{
    Choices, Difference, Environment, ExactReplay, Program, Warning, WhatIf, exact, what_if,
};
use ghostgpu_allocator::{Outside, Release, Settings, SettingsError, SnapshotSettings};
use ghostgpu_device::HostLayout;
use ghostgpu_snapshot::{AllocatorSettings, Snapshot};

use crate::card_driver::CardDriver;
use crate::card_size::largest_total_bytes;
use crate::convert::DeviceRecording;
use crate::recorded::Recorded;

/// One release for each set of rules, the likeliest first.
const REPRESENTATIVES: [Release; 5] = [
    Release::new(2, 11),
    Release::new(2, 15),
    Release::new(2, 12),
    Release::new(2, 9),
    Release::new(2, 7),
];

/// Far more than any card has, but still a valid address range.
const UNLIMITED_BYTES: u64 = 1 << 42;

/// Why a release was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The caller named it.
    Named,
    /// Its rules, and not those of every other release, lead to the recorded addresses.
    Reproduced,
    /// No release's rules lead to all recorded addresses; these went furthest.
    Nearest,
    /// There is nothing to replay.
    Assumed,
}

/// Why a snapshot cannot be replayed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryError {
    #[error("device {device} has no recorded events, so there is nothing to replay")]
    NoEvents { device: usize },
    #[error("this history comes from the cudaMallocAsync allocator, which is part of the driver")]
    DriverAllocator,
}

/// What the user knows about the recorded process that a snapshot does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Without it, the one is found whose rules lead to the recorded addresses.
    pub release: Option<Release>,
    /// The limit from a memory fraction.
    pub limit_bytes: Option<u64>,
}

/// A what-if question.
#[derive(Clone, Debug)]
pub struct Question {
    pub release: Release,
    pub settings: Settings,
    /// How much the allocator can get from the driver; `None` for unlimited memory.
    pub capacity_bytes: Option<u64>,
    /// The limit from a memory fraction.
    pub limit_bytes: Option<u64>,
    /// The layout of the process's own memory, which decides where the driver puts segments.
    pub layout: HostLayout,
    /// If this is `n`, the driver takes a page for kernel code before every `n`-th segment, which moves segments too.
    pub code_before_every: Option<u64>,
}

/// A recorded history of one device.
#[derive(Debug)]
pub struct History {
    pub device: usize,
    pub release: Release,
    pub basis: Basis,
    /// The settings it was recorded under.
    pub settings: Settings,
    /// Why the recorded settings text could not be read, if so.
    pub settings_trouble: Option<SettingsError>,
    /// The limit from a memory fraction, if known.
    pub limit_bytes: Option<u64>,
    /// The outcome of the recorded run.
    pub recorded: Recorded,
    /// The recording, repeated under its own settings.
    repeated: ExactReplay,
    program: Program,
    recording: DeviceRecording,
    /// The size of the context, if others' memory is known.
    context_bytes: Option<u64>,
}

/// Memory that others than PyTorch took from the driver while a history was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OthersMemory {
    pub context_bytes: u64,
    /// What was taken, each before an event of the file, in order.
    pub taken: Vec<(usize, Outside)>,
}

impl History {
    /// Extracts one device from a snapshot.
    pub fn of(snapshot: &Snapshot, device: usize, known: Known) -> Result<Self, HistoryError> {
        let recording = DeviceRecording::of(snapshot, device);
        if recording.recording.operations.is_empty() {
            return Err(HistoryError::NoEvents { device });
        }
        let recorded = recorded_settings(&snapshot.settings);
        let total_bytes = largest_total_bytes(&recording.recording);
        let try_release = |release: Release| {
            let (settings, trouble) = Settings::from_snapshot(&recorded, release);
            let environment = Environment {
                total_bytes,
                limit_bytes: known.limit_bytes,
                ..Environment::new(release, settings)
            };
            let repeated = exact(&recording.recording, &environment);
            (environment, trouble, repeated)
        };
        let (basis, (environment, settings_trouble, repeated)) = match known.release {
            Some(named) => (Basis::Named, try_release(named)),
            None => {
                let mut furthest = None;
                for candidate in REPRESENTATIVES {
                    let tried = try_release(candidate);
                    if tried.2.difference.is_none() {
                        furthest = Some((Basis::Reproduced, tried));
                        break;
                    }
                    let is_further =
                        furthest
                            .as_ref()
                            .is_none_or(|(_, best): &(Basis, (_, _, ExactReplay))| {
                                tried.2.entries > best.2.entries
                            });
                    if is_further {
                        furthest = Some((Basis::Nearest, tried));
                    }
                }
                // There is at least one representative.
                furthest.unwrap_or_else(|| (Basis::Assumed, try_release(Release::REFERENCE)))
            }
        };
        if environment.settings.uses_malloc_async {
            return Err(HistoryError::DriverAllocator);
        }
        let program = Program::of(&recording.recording, &environment);
        Ok(Self {
            device,
            release: environment.release,
            basis,
            settings: environment.settings,
            settings_trouble,
            limit_bytes: known.limit_bytes,
            recorded: Recorded::of(&recording.recording, &repeated),
            repeated,
            program,
            recording,
            context_bytes: None,
        })
    }

    /// The question with the same settings and enough memory.
    pub fn question(&self) -> Question {
        Question {
            release: self.release,
            settings: self.settings.clone(),
            capacity_bytes: None,
            limit_bytes: self.limit_bytes,
            layout: HostLayout::default(),
            code_before_every: None,
        }
    }

    /// Answers a question.
    pub fn ask(&self, question: &Question) -> WhatIf {
        let capacity = question.capacity_bytes.unwrap_or(UNLIMITED_BYTES);
        let card = match self.context_bytes {
            Some(bytes) => CardDriver::with_context(capacity, bytes, question.layout),
            None => CardDriver::new(capacity, question.layout),
        };
        let card = match question.code_before_every {
            Some(segments) => card.with_code_before_every(segments),
            None => card,
        };
        what_if(
            &self.program,
            question.release,
            question.settings.clone(),
            question.limit_bytes,
            card,
        )
    }

    /// Makes the context and libraries take memory when they did in the recording, which decides where segments go.
    pub fn beside(&mut self, others: OthersMemory) {
        self.context_bytes = Some(others.context_bytes);
        let recording = &self.recording;
        let taken = others.taken.into_iter();
        self.program
            .with_outside(taken.map(|(event, taken)| (recording.operation_of(event), taken)));
    }

    /// Replaces the context by that of another card: its size decides where segments go. False if the sizes of the
    /// recorded context are not known.
    pub fn move_beside_context(&mut self, context_bytes: u64, first_kernel_bytes: u64) -> bool {
        if self.context_bytes.is_none() {
            return false;
        }
        self.context_bytes = Some(context_bytes);
        for taken in self.program.outside_mut() {
            if let Outside::FirstKernel { bytes } = taken {
                *bytes = first_kernel_bytes;
            }
        }
        true
    }

    /// Gives the program other sizes to request where there is no memory for what it requested at events of the
    /// file: see [`Program::choose`].
    pub fn choose(
        &mut self,
        choices: Vec<Choices>,
        mut number_of: impl FnMut(usize) -> Option<u32>,
    ) {
        let recording = &self.recording;
        self.program
            .choose(choices, |entry| number_of(recording.event_of(entry)));
    }

    /// The first place where the replica did something else than was recorded, in the file's own
    /// numbers.
    pub fn difference(&self) -> Option<Difference> {
        let mut difference = self.repeated.difference?;
        difference.index = self.event_of(difference.index);
        Some(difference)
    }

    /// The number in the file of an entry that an answer names.
    pub fn event_of(&self, entry: usize) -> usize {
        self.recording.event_of(entry)
    }

    /// How many entries the recording has.
    pub fn entries(&self) -> usize {
        self.recording.recording.operations.len()
    }

    /// What the recording does not say, and what was assumed for it.
    pub fn warnings(&self) -> Vec<Warning> {
        let mut warnings = self.repeated.warnings.clone();
        for warning in self.program.warnings() {
            if !warnings.contains(warning) {
                warnings.push(*warning);
            }
        }
        warnings
    }
}

fn recorded_settings(recorded: &AllocatorSettings) -> SnapshotSettings {
    SnapshotSettings {
        text: recorded.text.clone(),
        max_split_size: recorded
            .max_split_bytes
            .map(|limit| limit.map_or(-1, |bytes| i64::try_from(bytes).unwrap_or(-1))),
        garbage_collection_threshold: recorded.garbage_collection_threshold,
        expandable_segments: recorded.expandable_segments,
        release_lock_on_cudamalloc: recorded.release_lock_on_cudamalloc,
        graph_capture_record_stream_reuse: recorded.graph_capture_record_stream_reuse,
        roundup_power2_divisions: recorded.roundup_power2_divisions.clone(),
    }
}
