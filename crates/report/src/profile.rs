//! A heap profile as `profile.proto`, compressed with gzip and written sample by sample.
//!
//! Written from the published schema (github.com/google/pprof, `proto/profile.proto`); field numbers are given next to
//! their names below. Sample types and their order are those of Go's heap profiles, so that tools choose `inuse_space`
//! by default.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::protobuf::{Message, write_number, write_text};

/// A frame as a profile shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlainFrame<'a> {
    pub(crate) function: &'a str,
    pub(crate) file: &'a str,
    pub(crate) line: u64,
}

/// The values of a sample, in the order of the sample types.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Values {
    pub(crate) made_blocks: u64,
    pub(crate) made_bytes: u64,
    pub(crate) live_blocks: u64,
    pub(crate) live_bytes: u64,
}

/// Assigns numbers to values in the order in which they are first seen.
#[derive(Debug)]
struct Numbered<T> {
    numbers: BTreeMap<T, u64>,
    in_order: Vec<T>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self {
            numbers: BTreeMap::new(),
            in_order: Vec::new(),
        }
    }
}

impl<T: Ord + Clone> Numbered<T> {
    /// The value's id, counted from 1.
    fn id(&mut self, thing: T) -> u64 {
        if let Some(number) = self.numbers.get(&thing) {
            return *number;
        }
        self.in_order.push(thing.clone());
        let number = self.in_order.len() as u64;
        self.numbers.insert(thing, number);
        number
    }
}

/// Assigns numbers to texts; 0 is the empty text.
#[derive(Debug)]
struct Texts {
    numbers: BTreeMap<String, u64>,
    in_order: Vec<String>,
}

impl Texts {
    fn number(&mut self, text: &str) -> u64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.in_order.len() as u64;
        self.in_order.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

/// A profile being written. The locations, functions and texts that samples refer to come at its end.
pub(crate) struct Profile<W: Write> {
    out: BufWriter<GzEncoder<W>>,
    texts: Texts,
    /// By function and line.
    locations: Numbered<(u64, u64)>,
    /// By name and file.
    functions: Numbered<(u64, u64)>,
}

/// All frames belong to this one mapping, so that no tool looks for symbols.
const MAPPING_ID: u64 = 1;

impl<W: Write> Profile<W> {
    /// Begins a profile with its time, if known, and comments.
    pub(crate) fn new(out: W, time_us: Option<i64>, comments: &[String]) -> io::Result<Self> {
        // The gzip header has no time and no name, so that the same input gives the same bytes.
        let packed = GzEncoder::new(out, Compression::default());
        let mut profile = Self {
            out: BufWriter::new(packed),
            texts: Texts {
                numbers: BTreeMap::from([(String::new(), 0)]),
                in_order: vec![String::new()],
            },
            locations: Numbered::default(),
            functions: Numbered::default(),
        };
        profile.head(time_us, comments)?;
        Ok(profile)
    }

    fn head(&mut self, time_us: Option<i64>, comments: &[String]) -> io::Result<()> {
        for (kind, unit) in [
            ("alloc_objects", "count"),
            ("alloc_space", "bytes"),
            ("inuse_objects", "count"),
            ("inuse_space", "bytes"),
        ] {
            // sample_type = 1
            self.value_type(kind, unit)
                .write_as_field(1, &mut self.out)?;
        }
        let mut mapping = Message::default();
        mapping.number(1, MAPPING_ID); // id
        mapping.number(5, self.texts.number("PyTorch CUDA memory")); // filename
        for has_functions_filenames_lines in [7, 8, 9] {
            mapping.number(has_functions_filenames_lines, 1);
        }
        mapping.write_as_field(3, &mut self.out)?;
        if let Some(time_us) = time_us {
            // time_nanos = 9
            write_number(9, time_us.saturating_mul(1000) as u64, &mut self.out)?;
        }
        // period_type = 11, period = 12
        self.value_type("space", "bytes")
            .write_as_field(11, &mut self.out)?;
        write_number(12, 1, &mut self.out)?;
        for comment in comments {
            // comment = 13
            let comment = self.texts.number(comment);
            write_number(13, comment, &mut self.out)?;
        }
        // default_sample_type = 14
        let default = self.texts.number("inuse_space");
        write_number(14, default, &mut self.out)
    }

    fn value_type(&mut self, kind: &str, unit: &str) -> Message {
        let mut message = Message::default();
        message
            .number(1, self.texts.number(kind))
            .number(2, self.texts.number(unit));
        message
    }

    /// Writes one sample: frames, innermost first, values, and labels.
    pub(crate) fn sample<'f>(
        &mut self,
        frames: impl IntoIterator<Item = PlainFrame<'f>>,
        values: Values,
        labels: &[(&str, &str)],
    ) -> io::Result<()> {
        let mut sample = Message::default();
        let places = frames.into_iter().map(|frame| {
            let function = (
                self.texts.number(frame.function),
                self.texts.number(frame.file),
            );
            let function = self.functions.id(function);
            self.locations.id((function, frame.line))
        });
        sample.packed(1, places);
        sample.packed(
            2,
            [
                values.made_blocks,
                values.made_bytes,
                values.live_blocks,
                values.live_bytes,
            ],
        );
        for (key, value) in labels {
            let (key, value) = (self.texts.number(key), self.texts.number(value));
            sample.nested(3, |label| {
                label.number(1, key).number(2, value);
            });
        }
        sample.write_as_field(2, &mut self.out)
    }

    /// Writes what the samples refer to: locations, functions, and finally all texts.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        for (at, (function, line_number)) in self.locations.in_order.iter().enumerate() {
            let mut location = Message::default();
            location.number(1, at as u64 + 1).number(2, MAPPING_ID);
            location.nested(4, |line| {
                line.number(1, *function).number(2, *line_number);
            });
            location.write_as_field(4, &mut self.out)?;
        }
        for (at, (name, file)) in self.functions.in_order.iter().enumerate() {
            let mut function = Message::default();
            // id, name, filename. There is no system_name: if it equals the name, pprof treats `<module>` and `<lambda>`
            // as C++ template arguments and drops them.
            function.number(1, at as u64 + 1).number(2, *name);
            function.number(4, *file);
            function.write_as_field(5, &mut self.out)?;
        }
        for text in &self.texts.in_order {
            write_text(6, text, &mut self.out)?;
        }
        let packed = self
            .out
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        packed.finish()?.flush()
    }
}
