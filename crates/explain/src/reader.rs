//! Reads a log chunk by chunk, in bounded memory.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;

use crate::clean::{Cleaner, Writer, escaped_lines, text_of, without_prefixes};
use crate::collected::Collected;
use crate::environment::{self, Environment};
use crate::finding::Finding;
use crate::memory_prints::{Prints, Series};
use crate::needles::{Readers, begins_with_a_family, may_continue, readers_of};
use crate::pending::{Anchor, Pending};
use crate::progress::Progress;
use crate::tail::{Recent, Tail};
use crate::traceback::Collector;

/// Everything a log says about memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Log {
    pub findings: Vec<Finding>,
    /// Further failures, counted but not kept.
    pub left_out: u64,
    pub bytes: u64,
    pub environment: Environment,
    pub memory_prints: Vec<Series>,
}

/// Reads a log in chunks of any size.
///
/// ```
/// use ghostgpu_explain::{Kind, Reader};
///
/// let mut reader = Reader::default();
/// reader.push(b"RuntimeError: CUDA out of memory. Tried to allocate 32.00 MiB (GPU 0; 7.79 GiB ");
/// reader.push(b"total capacity; 6.64 GiB already allocated; 21.00 MiB free; 150.86 MiB cached)\n");
/// let log = reader.finish();
/// assert_eq!(log.findings[0].kind, Kind::CudaAllocator);
/// assert_eq!(log.findings[0].figures.requested.unwrap().bytes, 32 << 20);
/// ```
#[derive(Debug, Default)]
pub struct Reader {
    cleaner: Cleaner,
    scan: Scan,
    bytes: u64,
}

impl Reader {
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        let scan = &mut self.scan;
        self.cleaner
            .push(bytes, &mut |number, line| scan.line(number, line));
    }

    pub fn finish(mut self) -> Log {
        let scan = &mut self.scan;
        self.cleaner
            .finish(&mut |number, line| scan.line(number, line));
        let mut scan = self.scan;
        scan.finish();
        let (findings, left_out) = scan.collected.finish();
        Log {
            findings,
            left_out,
            bytes: self.bytes,
            environment: scan.environment.finish(),
            memory_prints: scan.prints.into_series(),
        }
    }
}

/// Further writers count as one: a line may claim to come from anyone.
const MOST_WRITERS: usize = 1024;

/// A traceback that ends this many lines before a message does not belong to it. Lines of other ranks
/// may come in between.
const FAR_AWAY: u64 = 60;

/// How many bytes of the last line and of this one are searched together, in case a word was cut.
const SEAM: usize = 48;
const SHORTEST_CUT: usize = 40;

#[derive(Debug, Default)]
struct Scan {
    sequence: u64,
    recent: Recent,
    tail: Tail,
    pending: BTreeMap<Writer, Pending>,
    collectors: BTreeMap<Writer, Collector>,
    /// The writer of the last line, if the next line may continue it.
    last: Option<Writer>,
    last_progress: Vec<u8>,
    prints: Prints,
    environment: environment::Reader,
    collected: Collected,
    seam: Vec<u8>,
}

impl Scan {
    fn line(&mut self, number: u64, line: &[u8]) {
        // Markup and special spaces may stand inside the words that are searched for.
        let plain = match std::str::from_utf8(line) {
            Ok(_) => text_of(line),
            Err(_) => Cow::Borrowed(""),
        };
        let line = match &plain {
            Cow::Owned(plain) => plain.as_bytes(),
            Cow::Borrowed(_) => line,
        };
        match escaped_lines(line) {
            Some(lines) => {
                for line in lines {
                    self.plain_line(number, line.as_bytes());
                }
            }
            None => self.plain_line(number, line),
        }
    }

    fn plain_line(&mut self, number: u64, line: &[u8]) {
        self.sequence += 1;
        let is_open = !self.pending.is_empty() || self.last.is_some();
        // Where the next message is only counted, it need not be found across a line break.
        let only_counts = !is_open && self.tail.skips_the_next();
        if only_counts && begins_with_a_family(line) {
            self.tail.is_budget_left(true, &mut self.collected);
        } else {
            let readers = match only_counts {
                true => readers_of(line),
                false => self.with_seam(readers_of(line), line),
            };
            self.sort_line(number, line, readers, is_open);
        }
        self.tail.keep(self.sequence, number, line);
        self.recent.keep(self.sequence, line);
    }

    /// Passes a line on to the readers that need it.
    fn sort_line(&mut self, number: u64, line: &[u8], readers: Readers, is_open: bool) {
        if readers.is_context_only() && !is_open {
            self.note_context(number, line, readers);
        } else if !readers.is_empty() || is_open {
            let is_read = self
                .tail
                .is_budget_left(readers.has_family(), &mut self.collected);
            // In a log full of errors, most are only counted, and the last ones are read at the end.
            let is_skipped =
                self.tail.is_over_budget() && !is_open && (!is_read || !readers.has_family());
            if !is_skipped {
                self.read(self.sequence, number, line, readers, is_read);
            }
        }
    }

    /// Notes a line that matters only if a message follows; cheap until then.
    fn note_context(&mut self, number: u64, line: &[u8], readers: Readers) {
        if readers.has_progress() {
            self.last_progress.clear();
            self.last_progress.extend_from_slice(line);
        }
        if readers.has_memory() && !self.prints.is_skipped() {
            self.prints.note(number, &text_of(line));
        }
        if readers.has_environment() && !self.environment.is_full() {
            self.environment.note(&text_of(line));
        }
    }

    /// Searches across the line break: a message may have been wrapped inside the words that identify it,
    /// at a blank, or by a terminal anywhere.
    fn with_seam(&mut self, readers: Readers, line: &[u8]) -> Readers {
        let Some(before) = self.recent.last() else {
            return readers;
        };
        let (before, line) = (trimmed_end(before), trimmed_start(line));
        let (Some(last), Some(first)) = (before.last(), line.first()) else {
            return readers;
        };
        // The continuation of a cut line is no longer than the line itself.
        let may_be_cut = before.len() >= SHORTEST_CUT.max(line.len());
        let may_be_wrapped = may_continue(*last, *first);
        if !may_be_cut && !may_be_wrapped {
            return readers;
        }
        let mut found = Readers::default();
        for (is_possible, glue) in [(may_be_cut, &b""[..]), (may_be_wrapped, b" ")] {
            if !is_possible {
                continue;
            }
            self.seam.clear();
            let tail = before.len().saturating_sub(SEAM);
            self.seam.extend_from_slice(&before[tail..]);
            self.seam.extend_from_slice(glue);
            self.seam.extend_from_slice(&line[..line.len().min(SEAM)]);
            found = found.with(readers_of(&self.seam).only_families());
        }
        if !found.has_family() {
            return readers;
        }
        // A match before the seam was already found in its own line.
        readers.with(found.without(readers_of(before)))
    }

    fn read(&mut self, sequence: u64, number: u64, line: &[u8], readers: Readers, is_read: bool) {
        let text = text_of(line);
        let unprefixed = without_prefixes(&text);
        let writer = self.writer_of(unprefixed.writer);
        let text = unprefixed.text;
        if !readers.has_family() {
            self.note_context(number, line, readers);
        } else if readers.has_environment() {
            self.environment.note(text);
        }
        let collector = self.collectors.get_mut(&writer);
        let expects_code = collector.as_ref().is_some_and(|each| each.expects_code());
        if readers.has_frame() || expects_code {
            let collector = self.collectors.entry(writer.clone()).or_default();
            collector.note(number, text);
        }
        let is_anchor = readers.has_family() && is_read;
        if is_anchor {
            let anchor = self.anchor(sequence, number, &writer, readers);
            let recent = &self.recent;
            let pending = self.pending.entry(writer.clone());
            let pending = pending.or_insert_with(|| Pending::new(recent.of_writer(&writer)));
            pending.push(sequence, text);
            pending.add_anchor(anchor);
        } else if let Some(pending) = self.pending.get_mut(&writer) {
            pending.push(sequence, text);
        }
        let expects_code = self
            .collectors
            .get(&writer)
            .is_some_and(Collector::expects_code);
        let is_open = self.pending.contains_key(&writer) || expects_code;
        self.last = is_open.then_some(writer);
        self.close_pending(sequence);
    }

    /// A line without a name right after an unfinished message belongs to the same rank.
    fn writer_of(&self, named: Writer) -> Writer {
        let writer = match (named, &self.last) {
            (Writer::Unnamed, Some(last)) => last.clone(),
            (named, _) => named,
        };
        let is_known = self.collectors.contains_key(&writer) || self.pending.contains_key(&writer);
        match is_known || self.collectors.len() + self.pending.len() < MOST_WRITERS {
            true => writer,
            false => Writer::Unnamed,
        }
    }

    fn anchor(&self, sequence: u64, number: u64, writer: &Writer, readers: Readers) -> Anchor {
        let writers = self.collectors.len() as u64;
        let far_away = FAR_AWAY + writers * FAR_AWAY / 2;
        let traceback = self.collectors.get(writer);
        Anchor {
            sequence,
            number,
            readers,
            traceback: traceback.and_then(|collector| collector.recent(number, far_away)),
            progress: Progress::read(&text_of(&self.last_progress)),
        }
    }

    fn close_pending(&mut self, sequence: u64) {
        let collected = &mut self.collected;
        self.pending.retain(|writer, pending| {
            pending.read_complete(sequence, writer, collected);
            !pending.is_done()
        });
    }

    fn finish(&mut self) {
        self.finish_pending();
        // Where there were too many messages to read them all, the last ones are read now.
        for (sequence, number, line) in self.tail.take_unread() {
            let readers = readers_of(&line);
            self.read(sequence, number, &line, readers, true);
        }
        self.finish_pending();
    }

    fn finish_pending(&mut self) {
        for (writer, mut pending) in std::mem::take(&mut self.pending) {
            pending.read_all(&writer, &mut self.collected);
        }
    }
}

/// What boxes, tables, quotations and Markdown put at the ends of lines.
const DRESS: [&[u8]; 12] = [
    b" ",
    b"\t",
    b"|",
    b"`",
    b"*",
    b">",
    b"\\",
    b"\r",
    "│".as_bytes(),
    "┃".as_bytes(),
    "▎".as_bytes(),
    b"\n",
];

fn trimmed_end(mut line: &[u8]) -> &[u8] {
    while let Some(rest) = DRESS.iter().find_map(|dress| line.strip_suffix(*dress)) {
        line = rest;
    }
    line
}

fn trimmed_start(mut line: &[u8]) -> &[u8] {
    while let Some(rest) = DRESS.iter().find_map(|dress| line.strip_prefix(*dress)) {
        line = rest;
    }
    line
}
