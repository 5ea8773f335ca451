//! pprof: a heap profile of what is live at a moment, as `profile.proto` packed with gzip.
//!
//! Written from the published schema (github.com/google/pprof, `proto/profile.proto`); field numbers
//! stand beside their names below. Sample types and their order are those of Go's heap profiles, so
//! that tools choose `inuse_space` by themselves.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use ghostgpu_trace::{NameId, Snapshot};

use crate::error::ReportError;
use crate::holdings::{DeviceHoldings, Held, Owner, Selection, holdings};
use crate::origin::{OriginFrame, frames_from_innermost};
use crate::protobuf::{Message, write_number, write_text};
use crate::text;

/// Writes a profile of what is live at a moment, and of all allocations of the trace.
pub fn write_pprof(
    snapshot: &Snapshot,
    selection: Selection,
    out: impl Write,
) -> Result<(), ReportError> {
    let devices = holdings(snapshot, selection)?;
    // No time and no name in the header: the same snapshot gives the same bytes.
    let packed = GzEncoder::new(out, Compression::default());
    let mut profile = Profile {
        snapshot,
        out: BufWriter::new(packed),
        texts: Numbered::default(),
        locations: Numbered::default(),
        functions: Numbered::default(),
    };
    profile.texts.number(String::new());
    profile.head(&devices)?;
    for device in &devices {
        for (owner, held) in &device.by_owner {
            profile.sample(device.device, owner, held)?;
        }
    }
    profile.tables()?;
    let packed = profile
        .out
        .into_inner()
        .map_err(io::IntoInnerError::into_error)?;
    packed.finish()?.flush()?;
    Ok(())
}

/// Things with numbers in the order in which they were first seen.
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
    /// The thing's number, counted from 0.
    fn number(&mut self, thing: T) -> u64 {
        if let Some(number) = self.numbers.get(&thing) {
            return *number;
        }
        let number = self.in_order.len() as u64;
        self.in_order.push(thing.clone());
        self.numbers.insert(thing, number);
        number
    }

    /// The thing's number, counted from 1, as ids are.
    fn id(&mut self, thing: T) -> u64 {
        self.number(thing) + 1
    }
}

struct Profile<'a, W: Write> {
    snapshot: &'a Snapshot,
    out: W,
    texts: Numbered<String>,
    locations: Numbered<OriginFrame>,
    /// By name and file.
    functions: Numbered<(u64, u64)>,
}

/// All frames are said to be of this one program, so that no tool looks for symbols.
const MAPPING_ID: u64 = 1;

impl<W: Write> Profile<'_, W> {
    fn text(&mut self, text: &str) -> u64 {
        self.texts.number(text.to_owned())
    }

    fn head(&mut self, devices: &[DeviceHoldings]) -> io::Result<()> {
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
        mapping.number(5, self.text("PyTorch CUDA memory")); // filename
        for has_functions_filenames_lines in [7, 8, 9] {
            mapping.number(has_functions_filenames_lines, 1);
        }
        mapping.write_as_field(3, &mut self.out)?;
        if let Some(time_us) = devices.iter().filter_map(|device| device.time_us).max() {
            // time_nanos = 9
            write_number(9, time_us.saturating_mul(1000) as u64, &mut self.out)?;
        }
        // period_type = 11, period = 12
        self.value_type("space", "bytes")
            .write_as_field(11, &mut self.out)?;
        write_number(12, 1, &mut self.out)?;
        for warning in &self.snapshot.warnings {
            // comment = 13
            let comment = self.texts.number(warning.to_string());
            write_number(13, comment, &mut self.out)?;
        }
        // default_sample_type = 14
        let default = self.text("inuse_space");
        write_number(14, default, &mut self.out)
    }

    fn value_type(&mut self, kind: &str, unit: &str) -> Message {
        let mut message = Message::default();
        message
            .number(1, self.text(kind))
            .number(2, self.text(unit));
        message
    }

    fn sample(&mut self, device: usize, owner: &Owner, held: &Held) -> io::Result<()> {
        let mut sample = Message::default();
        let locations = &mut self.locations;
        sample.packed(
            1,
            frames_from_innermost(self.snapshot, owner.origin).map(|frame| locations.id(frame)),
        );
        sample.packed(
            2,
            [
                held.made_blocks,
                held.made_bytes,
                held.live_blocks,
                held.live_bytes,
            ],
        );
        self.label(&mut sample, "device", &device.to_string());
        self.label(&mut sample, "stream", &owner.stream.to_string());
        if let Some(pool) = owner.pool {
            self.label(&mut sample, "pool", &text::pool(pool));
        }
        if owner.category != NameId::EMPTY {
            let snapshot = self.snapshot;
            self.label(&mut sample, "category", snapshot.names.text(owner.category));
        }
        sample.write_as_field(2, &mut self.out)
    }

    fn label(&mut self, sample: &mut Message, key: &str, value: &str) {
        let (key, value) = (self.text(key), self.text(value));
        sample.nested(3, |label| {
            label.number(1, key).number(2, value);
        });
    }

    /// What the samples refer to: locations, functions, and last the texts of all.
    fn tables(&mut self) -> io::Result<()> {
        let snapshot = self.snapshot;
        for (at, frame) in std::mem::take(&mut self.locations.in_order)
            .into_iter()
            .enumerate()
        {
            let function = (
                self.text(frame.function(snapshot)),
                self.text(frame.file(snapshot)),
            );
            let function_id = self.functions.id(function);
            let mut location = Message::default();
            location.number(1, at as u64 + 1).number(2, MAPPING_ID);
            location.nested(4, |line| {
                line.number(1, function_id).number(2, frame.line(snapshot));
            });
            location.write_as_field(4, &mut self.out)?;
        }
        for (at, (name, file)) in self.functions.in_order.iter().enumerate() {
            let mut function = Message::default();
            // id, name, filename. Without a system_name: where it equals the name, pprof takes
            // `<module>` and `<lambda>` for C++ template arguments and drops them.
            function.number(1, at as u64 + 1).number(2, *name);
            function.number(4, *file);
            function.write_as_field(5, &mut self.out)?;
        }
        for text in &self.texts.in_order {
            write_text(6, text, &mut self.out)?;
        }
        Ok(())
    }
}
