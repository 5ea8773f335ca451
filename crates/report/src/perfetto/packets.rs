//! Perfetto's packets: tracks, slices, counters and interned texts.
//!
//! Written from the published schema (`perfetto_trace.proto`); field numbers are given next to their names.
//! All packets are one sequence, so that texts are written once and then named by number.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, BufWriter, Write};

use ghostgpu_recording::{FrameId, Names, StackId};

use crate::protobuf::Message;
use crate::text;

/// A track of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TrackUuid(u64);

/// The value of an argument of a slice.
#[derive(Debug)]
pub(crate) enum Argument<'a> {
    Number(u64),
    Address(u64),
    Text(Cow<'a, str>),
    /// A stack by its number; innermost frame first.
    Stack(StackId),
}

/// Something that begins or happens on a track.
#[derive(Debug)]
pub(crate) struct Happening<'a> {
    pub(crate) track: TrackUuid,
    pub(crate) time_ns: u64,
    pub(crate) name: &'a str,
    pub(crate) arguments: &'a [(&'static str, Argument<'a>)],
}

/// Writes packets one by one.
pub(crate) struct Packets<'a, W: Write> {
    names: &'a Names,
    out: BufWriter<W>,
    tracks: u64,
    event_names: Interned,
    argument_names: Interned,
    texts: Interned,
    /// Numbers of the frames' texts: a frame is in very many stacks.
    frame_texts: HashMap<FrameId, u64>,
}

const PACKET: u32 = 1;
const SEQUENCE_ID: u64 = 1;
const STATE_CLEARED: u64 = 1;
const NEEDS_STATE: u64 = 2;
const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;
const CLOCK_REALTIME: u64 = 1;
const CLOCK_BOOTTIME: u64 = 6;
const UNIT_SIZE_BYTES: u64 = 3;
const EXPLICIT_ORDER: u64 = 3;

impl<'a, W: Write> Packets<'a, W> {
    /// Begins a trace. Its clock is the wall clock if a time of it is known.
    pub(crate) fn new(names: &'a Names, some_time_us: Option<u64>, out: W) -> io::Result<Self> {
        let mut packets = Self {
            names,
            out: BufWriter::with_capacity(1 << 16, out),
            tracks: 0,
            event_names: Interned::default(),
            argument_names: Interned::default(),
            texts: Interned::default(),
            frame_texts: HashMap::new(),
        };
        let mut first = Message::default();
        first.number(10, SEQUENCE_ID); // trusted_packet_sequence_id
        first.number(13, STATE_CLEARED); // sequence_flags
        first.number(87, 1); // first_packet_on_sequence
        if let Some(time_us) = some_time_us {
            // clock_snapshot = 6 { clocks = 1 { clock_id = 1, timestamp = 2 } }: packets without a
            // clock are of the boot's, which here runs with the wall clock.
            let time_ns = time_us.saturating_mul(1000);
            first.nested(6, |snapshot| {
                for clock in [CLOCK_BOOTTIME, CLOCK_REALTIME] {
                    snapshot.nested(1, |message| {
                        message.number(1, clock).number(2, time_ns);
                    });
                }
            });
        }
        packets.write(&first)?;
        Ok(packets)
    }

    /// A track that only holds others.
    pub(crate) fn group_track(&mut self, name: &str) -> io::Result<TrackUuid> {
        self.track(name, "", None, 0, |track| {
            track.number(11, EXPLICIT_ORDER); // child_ordering
        })
    }

    pub(crate) fn slice_track(
        &mut self,
        name: &str,
        description: &str,
        parent: TrackUuid,
        rank: u64,
    ) -> io::Result<TrackUuid> {
        self.track(name, description, Some(parent), rank, |_| {})
    }

    /// A track of a number of bytes.
    pub(crate) fn byte_counter_track(
        &mut self,
        name: &str,
        description: &str,
        parent: TrackUuid,
        rank: u64,
    ) -> io::Result<TrackUuid> {
        self.track(name, description, Some(parent), rank, |track| {
            // counter = 8 { unit = 3 }
            track.nested(8, |counter| {
                counter.number(3, UNIT_SIZE_BYTES);
            });
        })
    }

    fn track(
        &mut self,
        name: &str,
        description: &str,
        parent: Option<TrackUuid>,
        rank: u64,
        fill: impl FnOnce(&mut Message),
    ) -> io::Result<TrackUuid> {
        self.tracks += 1;
        let uuid = TrackUuid(self.tracks);
        let mut packet = Message::default();
        packet.number(10, SEQUENCE_ID);
        packet.nested(60, |track| {
            track.number(1, uuid.0).text(2, name); // uuid, name
            if let Some(parent) = parent {
                track.number(5, parent.0); // parent_uuid
                track.number(12, rank); // sibling_order_rank
            }
            if !description.is_empty() {
                track.text(14, description);
            }
            fill(track);
        });
        self.write(&packet)?;
        Ok(uuid)
    }

    /// A counter's new value.
    pub(crate) fn count(&mut self, track: TrackUuid, time_ns: u64, value: i64) -> io::Result<()> {
        let mut event = Message::default();
        event.number(9, COUNTER); // type
        event.number(11, track.0); // track_uuid
        event.signed(30, value); // counter_value
        self.event(time_ns, &event, &Message::default())
    }

    pub(crate) fn begin(&mut self, happening: &Happening) -> io::Result<()> {
        self.happen(SLICE_BEGIN, happening)
    }

    pub(crate) fn instant(&mut self, happening: &Happening) -> io::Result<()> {
        self.happen(INSTANT, happening)
    }

    /// Ends the innermost slice of a track.
    pub(crate) fn end(&mut self, track: TrackUuid, time_ns: u64) -> io::Result<()> {
        let mut event = Message::default();
        event.number(9, SLICE_END).number(11, track.0);
        self.event(time_ns, &event, &Message::default())
    }

    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn happen(&mut self, kind: u64, happening: &Happening) -> io::Result<()> {
        // interned_data: event_names = 2, debug_annotation_names = 3,
        // debug_annotation_string_values = 29; in each, iid = 1 and the text = 2.
        let mut interned = Message::default();
        let mut event = Message::default();
        event.number(9, kind).number(11, happening.track.0);
        let name = self.event_names.number(happening.name, 2, &mut interned);
        event.number(10, name); // name_iid
        for (name, value) in happening.arguments {
            let name = self.argument_names.number(name, 3, &mut interned);
            let mut annotation = Message::default();
            annotation.number(1, name); // name_iid
            match value {
                Argument::Number(number) => annotation.number(3, *number), // uint_value
                Argument::Address(address) => annotation.number(7, *address), // pointer_value
                // string_value_iid
                Argument::Text(text) => {
                    annotation.number(17, self.texts.number(text, 29, &mut interned))
                }
                Argument::Stack(stack) => {
                    let frames = self.names.stacks.get(stack.0 as usize);
                    for frame in frames.into_iter().flatten() {
                        let text = self.frame_text(*frame, &mut interned);
                        // array_values = 12 { string_value_iid = 17 }
                        annotation.nested(12, |value| {
                            value.number(17, text);
                        });
                    }
                    &mut annotation
                }
            };
            event.message(4, &annotation); // debug_annotations
        }
        self.event(happening.time_ns, &event, &interned)
    }

    fn frame_text(&mut self, id: FrameId, interned: &mut Message) -> u64 {
        if let Some(number) = self.frame_texts.get(&id) {
            return *number;
        }
        let frame = self.names.frames.get(id.0 as usize);
        let text = frame.map_or_else(String::new, text::frame);
        let number = self.texts.number(&text, 29, interned);
        self.frame_texts.insert(id, number);
        number
    }

    fn event(&mut self, time_ns: u64, event: &Message, interned: &Message) -> io::Result<()> {
        let mut packet = Message::default();
        packet.number(8, time_ns); // timestamp
        packet.number(10, SEQUENCE_ID);
        packet.number(13, NEEDS_STATE); // sequence_flags
        if !interned.is_empty() {
            packet.message(12, interned); // interned_data
        }
        packet.message(11, event); // track_event
        self.write(&packet)
    }

    fn write(&mut self, packet: &Message) -> io::Result<()> {
        packet.write_as_field(PACKET, &mut self.out)
    }
}

/// Texts of one kind with their numbers, which begin at 1.
#[derive(Debug, Default)]
struct Interned {
    numbers: HashMap<String, u64>,
}

impl Interned {
    /// The number of a text; a new one is added to the packet's interned data.
    fn number(&mut self, text: &str, field: u32, interned: &mut Message) -> u64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.numbers.len() as u64 + 1;
        self.numbers.insert(text.to_owned(), number);
        interned.nested(field, |entry| {
            entry.number(1, number).text(2, text);
        });
        number
    }
}
