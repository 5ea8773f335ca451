//! The options as releases from 2.10 on read them: a wrong separator is passed over unseen, and the
//! text is read several times: for the segment size, for the options of every accelerator,
//! and for CUDA's own. So the error that comes first in the text is not always the one reported.

use super::tokens::{self, BadNumber};
use super::{PythonException, ReserveSize, Settings, SettingsError};
use crate::release::Release;
use crate::rounding::{Divisions, MIN_LARGE_BYTES};

const MIB: u64 = 1 << 20;
const MAX_MIB: u64 = u64::MAX / MIB;

/// A key, and the minor release that introduced it.
type Keys = [(&'static str, u16)];

const SHARED_KEYS: &Keys = &[
    ("large_segment_size_mb", 11),
    ("max_split_size_mb", 0),
    ("max_non_split_rounding_mb", 0),
    ("garbage_collection_threshold", 0),
    ("roundup_power2_divisions", 0),
    ("expandable_segments", 0),
    ("pinned_use_background_threads", 0),
    ("pinned_max_round_threshold_mb", 13),
    ("pinned_max_cached_size_mb", 13),
];

const CUDA_KEYS: &Keys = &[
    ("backend", 0),
    ("release_lock_on_cudamalloc", 0),
    ("release_lock_on_hipmalloc", 0),
    ("pinned_use_cuda_host_register", 0),
    ("pinned_use_hip_host_register", 0),
    ("pinned_num_register_threads", 0),
    ("pinned_reserve_segment_size_mb", 0),
    ("graph_capture_record_stream_reuse", 0),
    ("per_process_memory_fraction", 0),
    ("throw_on_cudamalloc_oom", 12),
    ("pinned_free_catch_all", 12),
    ("expandable_segments_reserve", 15),
    ("expandable_segments_reserve_by_class", 15),
];

fn is_in(keys: &Keys, key: &str, release: Release) -> bool {
    keys.iter()
        .any(|&(name, since)| name == key && release.at_least(since))
}

fn refuse(reason: impl Into<String>) -> SettingsError {
    SettingsError {
        exception: PythonException::ValueError,
        reason: reason.into(),
    }
}

fn past_the_end() -> SettingsError {
    SettingsError {
        exception: PythonException::RuntimeError,
        reason: "Index out of bounds in ConfigTokenizer".to_owned(),
    }
}

fn number<T>(result: Result<T, BadNumber>, function: &str) -> Result<T, SettingsError> {
    result.map_err(|trouble| SettingsError {
        exception: match trouble {
            BadNumber::None => PythonException::ValueError,
            BadNumber::OutOfRange => PythonException::IndexError,
        },
        reason: function.to_owned(),
    })
}

struct Reader {
    tokens: Vec<String>,
    at: usize,
}

impl Reader {
    fn new(text: &str) -> Self {
        Self {
            tokens: tokens::cut(text, |letter| {
                letter.is_ascii_whitespace() || letter == '\u{b}'
            }),
            at: 0,
        }
    }

    fn is_done(&self) -> bool {
        self.at >= self.tokens.len()
    }

    fn next(&mut self) -> Result<String, SettingsError> {
        let token = self.tokens.get(self.at).ok_or_else(past_the_end)?;
        self.at += 1;
        Ok(token.clone())
    }

    /// The token after the separator, whatever that is.
    fn value(&mut self) -> Result<String, SettingsError> {
        self.next()?;
        self.next()
    }

    fn size(&mut self) -> Result<u64, SettingsError> {
        number(tokens::unsigned(&self.value()?), "stoull")
    }

    fn double(&mut self) -> Result<f64, SettingsError> {
        number(tokens::double(&self.value()?), "stod")
    }

    fn boolean(&mut self) -> Result<bool, SettingsError> {
        let value = self.value()?;
        match value.as_str() {
            "True" => Ok(true),
            "False" => Ok(false),
            _ => Err(refuse(format!(
                "Expected 'True' or 'False' at index {} in ConfigTokenizer but got '{value}'",
                self.at - 1
            ))),
        }
    }

    fn skip_value(&mut self) -> Result<(), SettingsError> {
        if self.value()? == "[" {
            while self.tokens.get(self.at).is_some_and(|token| token != "]") {
                self.at += 1;
            }
            if self.is_done() {
                return Err(missing_bracket());
            }
            self.at += 1;
        }
        Ok(())
    }

    /// Calls `option` for every key; anything after its value counts as a comma.
    fn each_option(
        &mut self,
        mut option: impl FnMut(&str, &mut Self) -> Result<(), SettingsError>,
    ) -> Result<(), SettingsError> {
        while !self.is_done() {
            let key = self.next()?;
            option(&key, self)?;
            if !self.is_done() {
                self.at += 1;
            }
        }
        Ok(())
    }
}

fn missing_bracket() -> SettingsError {
    SettingsError {
        exception: PythonException::RuntimeError,
        reason: "Expected closing bracket ']' in ConfigTokenizer but reached end of config"
            .to_owned(),
    }
}

pub(super) fn apply(
    settings: &mut Settings,
    text: &str,
    release: Release,
) -> Result<(), SettingsError> {
    if release.at_least(11) {
        segment_size(settings, text)?;
        settings.max_non_split_rounding = settings.large_segment_size;
    }
    Reader::new(text).each_option(|key, reader| {
        if is_in(SHARED_KEYS, key, release) {
            shared_option(settings, key, reader)
        } else if is_in(CUDA_KEYS, key, release) {
            reader.skip_value()
        } else {
            Err(refuse(format!(
                "Unrecognized key '{key}' in Accelerator allocator config."
            )))
        }
    })?;
    Reader::new(text).each_option(|key, reader| {
        if is_in(CUDA_KEYS, key, release) {
            cuda_option(settings, key, reader)
        } else {
            reader.skip_value()
        }
    })
}

/// The first pass: only the segment size, since bounds of other options depend on it.
fn segment_size(settings: &mut Settings, text: &str) -> Result<(), SettingsError> {
    let mut reader = Reader::new(text);
    while let Ok(key) = reader.next() {
        if key == "large_segment_size_mb" {
            let mebibytes = reader.size()?;
            let least = MIN_LARGE_BYTES / MIB;
            if mebibytes <= least {
                return Err(refuse(format!(
                    "CachingAllocator option large_segment_size_mb must be > {least} MB"
                )));
            }
            settings.large_segment_size = mebibytes.min(MAX_MIB) * MIB;
        }
    }
    Ok(())
}

fn bounded_mebibytes(
    settings: &Settings,
    key: &str,
    reader: &mut Reader,
) -> Result<u64, SettingsError> {
    let least = settings.large_segment_size / MIB;
    let mebibytes = reader.size()?;
    if mebibytes < least {
        return Err(refuse(format!(
            "CachingAllocator option {key} too small, must be >= {least}"
        )));
    }
    Ok(mebibytes.min(MAX_MIB) * MIB)
}

fn shared_option(
    settings: &mut Settings,
    key: &str,
    reader: &mut Reader,
) -> Result<(), SettingsError> {
    match key {
        "max_split_size_mb" => settings.max_split_size = bounded_mebibytes(settings, key, reader)?,
        "max_non_split_rounding_mb" => {
            settings.max_non_split_rounding = bounded_mebibytes(settings, key, reader)?;
        }
        "garbage_collection_threshold" => {
            let value = reader.double()?;
            if !(value > 0.0 && value < 1.0) {
                return Err(refuse(
                    "garbage_collect_threshold is invalid, set it in (0.0, 1.0)",
                ));
            }
            settings.garbage_collection_threshold = value;
        }
        "roundup_power2_divisions" => divisions(settings, reader)?,
        "expandable_segments" => settings.expandable_segments = reader.boolean()?,
        "pinned_use_background_threads" => {
            settings.pinned.use_background_threads = reader.boolean()?;
        }
        "pinned_max_round_threshold_mb" => {
            settings.pinned.max_round_threshold_mb = Some(reader.size()?);
        }
        "pinned_max_cached_size_mb" => settings.pinned.max_cached_size_mb = Some(reader.size()?),
        // The segment size was read in the first pass.
        _ => reader.skip_value()?,
    }
    Ok(())
}

fn cuda_option(
    settings: &mut Settings,
    key: &str,
    reader: &mut Reader,
) -> Result<(), SettingsError> {
    match key {
        "backend" => {
            settings.uses_malloc_async = match reader.value()?.as_str() {
                "native" => false,
                "cudaMallocAsync" => true,
                _ => {
                    return Err(refuse(
                        "Unknown allocator backend, options are native and cudaMallocAsync",
                    ));
                }
            };
        }
        "release_lock_on_cudamalloc" | "release_lock_on_hipmalloc" => {
            settings.release_lock_on_cudamalloc = reader.boolean()?;
        }
        "pinned_use_cuda_host_register" | "pinned_use_hip_host_register" => {
            settings.pinned.use_cuda_host_register = reader.boolean()?;
        }
        "pinned_num_register_threads" => {
            let count = reader.size()?;
            if !count.is_power_of_two() {
                return Err(refuse(format!(
                    "Number of register threads has to be power of 2, got {count}"
                )));
            }
            if count > 128 {
                return Err(refuse(format!(
                    "Number of register threads should be less than or equal to 128, got {count}"
                )));
            }
            settings.pinned.num_register_threads = count;
        }
        "pinned_reserve_segment_size_mb" => {
            let size = reader.size()?;
            if size == 0 {
                return Err(refuse(
                    "Pinned reserve segment size has to be greater than 0",
                ));
            }
            settings.pinned.reserve_segment_size_mb = size;
        }
        "graph_capture_record_stream_reuse" => {
            settings.graph_capture_record_stream_reuse = reader.boolean()?;
        }
        "per_process_memory_fraction" => {
            let value = reader.double()?;
            if !(0.0..=1.0).contains(&value) {
                return Err(refuse(
                    "per_process_memory_fraction is invalid, set it in [0.0, 1.0]",
                ));
            }
            settings.per_process_memory_fraction = value;
        }
        "throw_on_cudamalloc_oom" => settings.throw_on_cudamalloc_oom = reader.boolean()?,
        "pinned_free_catch_all" => settings.pinned.free_catch_all = reader.boolean()?,
        "expandable_segments_reserve" => {
            // An invalid value is logged and ignored.
            if let Some(size) = reserve_size(&reader.value()?) {
                settings.expandable_segments_reserve = Some(size);
            }
        }
        _ => by_class(reader)?,
    }
    Ok(())
}

/// `expandable_segments_reserve_by_class:[name:value,...]`. Classes are names that a program gives to
/// its streams; nothing in a trace tells them, so the list is read and left.
fn by_class(reader: &mut Reader) -> Result<(), SettingsError> {
    if reader.value()? != "[" {
        return Err(past_the_end());
    }
    while reader.next()? != "]" {}
    Ok(())
}

fn reserve_size(text: &str) -> Option<ReserveSize> {
    let (digits, gibibytes) = match text.strip_suffix('G') {
        Some(digits) => (digits, true),
        None => (text, false),
    };
    let value = digits.parse::<f64>().ok().filter(|value| *value > 0.0)?;
    Some(if gibibytes {
        ReserveSize::Gibibytes(value)
    } else {
        ReserveSize::FractionOfCard(value)
    })
}

fn divisions(settings: &mut Settings, reader: &mut Reader) -> Result<(), SettingsError> {
    let table = &mut settings.roundup_power2_divisions.0;
    let value = reader.value()?;
    if value != "[" {
        let count = number(tokens::unsigned(&value), "stoull")?;
        if !count.is_power_of_two() {
            return Err(refuse("For roundups, the divisions has to be power of 2 "));
        }
        *table = [count; Divisions::ENTRIES];
        return Ok(());
    }
    let mut last_index = None;
    while !reader.is_done() {
        let interval = reader.next()?;
        if interval == "]" {
            return Ok(());
        }
        let count = reader.size()?;
        if !(count == 0 || count.is_power_of_two()) {
            return Err(refuse(
                "For roundups, the divisions has to be power of 2 or 0 to disable roundup ",
            ));
        }
        if interval == ">" {
            let from = last_index
                .map_or(1, |index| index + 1)
                .min(Divisions::ENTRIES);
            table[from..].fill(count);
        } else {
            let mebibytes = number(tokens::unsigned(&interval), "stoull")?;
            if !mebibytes.is_power_of_two() {
                return Err(refuse("For roundups, the intervals have to be power of 2 "));
            }
            let index = (mebibytes.trailing_zeros() as usize).min(Divisions::ENTRIES - 1);
            if last_index.is_none() {
                table[..index].fill(count);
            }
            table[index] = count;
            last_index = Some(index);
        }
        // A comma, or the bracket, which the next round sees.
        if reader.tokens.get(reader.at).ok_or_else(past_the_end)? != "]" {
            reader.at += 1;
        }
    }
    Err(missing_bracket())
}
