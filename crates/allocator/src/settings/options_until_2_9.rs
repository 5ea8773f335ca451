//! The options as releases up to 2.9 read them: every separator is checked.

use super::tokens::{self, BadNumber};
use super::{PythonException, Settings, SettingsError};
use crate::release::Release;
use crate::rounding::Divisions;

const MIB: u64 = 1 << 20;
const MAX_MIB: u64 = u64::MAX / MIB;
const MIN_SPLIT_MIB: u64 = 20;

fn refuse(reason: impl Into<String>) -> SettingsError {
    SettingsError {
        exception: PythonException::RuntimeError,
        reason: reason.into(),
    }
}

struct Reader<'a> {
    tokens: &'a [String],
    at: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let token = self.tokens.get(self.at)?;
        self.at += 1;
        Some(token)
    }

    fn peek(&self) -> Option<&'a str> {
        self.tokens.get(self.at).map(String::as_str)
    }

    fn expect(&mut self, separator: &str) -> Result<(), SettingsError> {
        match self.next() {
            Some(token) if token == separator => Ok(()),
            _ => Err(refuse(format!(
                "Error parsing CachingAllocator settings, expected {separator}"
            ))),
        }
    }

    fn value(&mut self, key: &str) -> Result<&'a str, SettingsError> {
        self.expect(":")?;
        self.next()
            .ok_or_else(|| refuse(format!("Error, expecting {key} value")))
    }

    fn boolean(&mut self, key: &str) -> Result<bool, SettingsError> {
        self.expect(":")?;
        match self.next() {
            Some("True") => Ok(true),
            Some("False") => Ok(false),
            _ => Err(refuse(format!(
                "Expected a single True/False argument for {key}"
            ))),
        }
    }

    fn mebibytes(&mut self, key: &str) -> Result<u64, SettingsError> {
        let value = integer(self.value(key)?)?;
        if value <= MIN_SPLIT_MIB {
            return Err(refuse(format!(
                "CachingAllocator option {key} too small, must be > {MIN_SPLIT_MIB}"
            )));
        }
        Ok(value.min(MAX_MIB) * MIB)
    }
}

fn integer(text: &str) -> Result<u64, SettingsError> {
    tokens::int_as_size(text).map_err(|_: BadNumber| refuse("stoi"))
}

pub(super) fn apply(
    settings: &mut Settings,
    text: &str,
    release: Release,
) -> Result<(), SettingsError> {
    let tokens = tokens::cut(text, |letter| letter == ' ');
    let mut reader = Reader {
        tokens: &tokens,
        at: 0,
    };
    while let Some(key) = reader.next() {
        option(settings, key, &mut reader, release)?;
        if reader.peek().is_some() {
            reader.expect(",")?;
        }
    }
    Ok(())
}

fn option(
    settings: &mut Settings,
    key: &str,
    reader: &mut Reader<'_>,
    release: Release,
) -> Result<(), SettingsError> {
    match key {
        "max_split_size_mb" => settings.max_split_size = reader.mebibytes(key)?,
        "max_non_split_rounding_mb" if release.at_least(6) => {
            settings.max_non_split_rounding = reader.mebibytes(key)?;
        }
        "garbage_collection_threshold" => {
            let value =
                tokens::double(reader.value(key)?).map_err(|_: BadNumber| refuse("stod"))?;
            if value <= 0.0 {
                return Err(refuse(
                    "garbage_collect_threshold too small, set it 0.0~1.0",
                ));
            }
            if value >= 1.0 {
                return Err(refuse("garbage_collect_threshold too big, set it 0.0~1.0"));
            }
            settings.garbage_collection_threshold = value;
        }
        "roundup_power2_divisions" => divisions(settings, reader, release)?,
        "backend" => {
            reader.expect(":")?;
            settings.uses_malloc_async = match reader.next() {
                Some("native") => false,
                Some("cudaMallocAsync") => true,
                Some(_) => {
                    return Err(refuse(
                        "Unknown allocator backend, options are native and cudaMallocAsync",
                    ));
                }
                None => return Err(refuse("Error parsing backend value")),
            };
        }
        "expandable_segments" if release.at_least(1) => {
            settings.expandable_segments = reader.boolean(key)?;
        }
        "release_lock_on_cudamalloc" | "release_lock_on_hipmalloc" if release.at_least(2) => {
            settings.release_lock_on_cudamalloc = reader.boolean("release_lock_on_cudamalloc")?;
        }
        "pinned_use_cuda_host_register" | "pinned_use_hip_host_register" if release.at_least(2) => {
            settings.pinned.use_cuda_host_register =
                reader.boolean("pinned_use_cuda_host_register")?;
        }
        "pinned_num_register_threads" if release.at_least(2) => {
            let count = integer(reader.value(key)?)?;
            if !count.is_power_of_two() {
                return Err(refuse("Number of register threads has to be power of 2 "));
            }
            if count > 128 {
                return Err(refuse(
                    "Number of register threads should be less than or equal to 128",
                ));
            }
            settings.pinned.num_register_threads = count;
        }
        "pinned_use_background_threads" if release.at_least(6) => {
            settings.pinned.use_background_threads = reader.boolean(key)?;
        }
        "graph_capture_record_stream_reuse" if release.at_least(9) => {
            settings.graph_capture_record_stream_reuse = reader.boolean(key)?;
        }
        _ => {
            return Err(refuse(format!(
                "Unrecognized CachingAllocator option: {key}"
            )));
        }
    }
    Ok(())
}

fn divisions(
    settings: &mut Settings,
    reader: &mut Reader<'_>,
    release: Release,
) -> Result<(), SettingsError> {
    let key = "roundup_power2_divisions";
    let table = &mut settings.roundup_power2_divisions.0;
    let value = reader.value(key)?;
    if value != "[" {
        let count = integer(value)?;
        if !count.is_power_of_two() {
            return Err(refuse("For roundups, the divisions has to be power of 2 "));
        }
        *table = [count; Divisions::ENTRIES];
        return Ok(());
    }
    let zero_allowed = release.at_least(5);
    let mut last_index = None;
    loop {
        let Some(interval) = reader.next().filter(|&token| token != "]") else {
            return Ok(());
        };
        reader.expect(":")?;
        let Some(value) = reader.next() else {
            return Err(refuse("Error parsing roundup_power2_divisions value"));
        };
        let count = integer(value)?;
        if !(count.is_power_of_two() || (zero_allowed && count == 0)) {
            return Err(refuse(if zero_allowed {
                "For roundups, the divisions has to be power of 2 or 0 to disable roundup "
            } else {
                "For roundups, the divisons has to be power of 2 "
            }));
        }
        if interval == ">" {
            // The last numeric key is overwritten too, which 2.10 corrected.
            table[last_index.unwrap_or(0)..].fill(count);
        } else {
            let mebibytes = tokens::unsigned(interval).map_err(|_: BadNumber| refuse("stoul"))?;
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
        if reader.peek() != Some("]") {
            reader.expect(",")?;
        }
    }
}
