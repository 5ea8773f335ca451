//! A log, chunk by chunk, to what was found in it. Memory is bounded, whatever comes.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::circumstances::{self, Circumstances};
use crate::clean::{Cleaner, Writer, escaped_lines, text_of, without_prefixes};
use crate::collected::Collected;
use crate::finding::Finding;
use crate::memory_prints::{Prints, Series};
use crate::needles::{Readers, readers_of};
use crate::pending::{Anchor, Pending};
use crate::progress::Progress;
use crate::tail::{Recent, Tail};
use crate::traceback::Collector;

/// Everything that a log says about memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Log {
    pub findings: Vec<Finding>,
    /// Further failures that were counted, but not kept.
    pub left_out: u64,
    pub bytes: u64,
    pub circumstances: Circumstances,
    pub memory_prints: Vec<Series>,
}

/// Reads a log that is given in any chunks.
///
/// ```
/// use ghostgpu_explain::{Kind, Reader};
///
/// let mut reader = Reader::default();
/// reader.push(b"RuntimeError: CUDA out of memory. Tried to allocate 32.00 MiB (GPU 0; 7.79 GiB ");
/// reader.push(b"total capacity; 6.64 GiB already allocated; 21.00 MiB free; 150.86 MiB cached)\n");
/// let log = reader.finish();
/// assert_eq!(log.findings[0].kind, Kind::CudaAllocator);
/// assert_eq!(log.findings[0].figures.asked.unwrap().bytes, 32 << 20);
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
            circumstances: scan.circumstances.finish(),
            memory_prints: scan.prints.into_series(),
        }
    }
}

/// Writers beyond this many are taken for one: a line may claim to come from anybody.
const MOST_WRITERS: usize = 1024;

/// A traceback this many lines before a message is not its own. Ranks that write at once lie between.
const FAR_AWAY: u64 = 60;

/// So much of the last line and of this one is looked at together, in case a word was cut.
const SEAM: usize = 24;
const SHORTEST_CUT: usize = 40;

#[derive(Debug, Default)]
struct Scan {
    sequence: u64,
    recent: Recent,
    tail: Tail,
    pending: BTreeMap<Writer, Pending>,
    collectors: BTreeMap<Writer, Collector>,
    /// The writer of the last line, if the next may belong to it.
    last: Option<Writer>,
    last_progress: Vec<u8>,
    prints: Prints,
    circumstances: circumstances::Reader,
    collected: Collected,
    seam: Vec<u8>,
}

impl Scan {
    fn line(&mut self, number: u64, line: &[u8]) {
        let readers = readers_of(line);
        match readers.has_frame().then(|| escaped_lines(line)).flatten() {
            Some(lines) => {
                for line in lines {
                    self.plain_line(number, line.as_bytes(), readers_of(line.as_bytes()));
                }
            }
            None => self.plain_line(number, line, readers),
        }
    }

    fn plain_line(&mut self, number: u64, line: &[u8], mut readers: Readers) {
        self.sequence += 1;
        if !readers.has_family() {
            readers = self.with_seam(readers, line);
        }
        let is_open = !self.pending.is_empty() || self.last.is_some();
        if readers.is_by_the_way() && !is_open {
            self.by_the_way(number, line, readers);
        } else if !readers.is_empty() || is_open {
            let is_read = self
                .tail
                .is_budget_left(readers.has_family(), &mut self.collected);
            // In a log of nothing but errors, most are counted, and the last are read in the end.
            let is_skipped =
                self.tail.is_over_budget() && !is_open && (!is_read || !readers.has_family());
            if !is_skipped {
                self.read(self.sequence, number, line, readers, is_read);
            }
        }
        self.tail.keep(self.sequence, number, line);
        self.recent.keep(self.sequence, number, line);
    }

    /// A line that may matter when a message comes, and costs next to nothing until then.
    fn by_the_way(&mut self, number: u64, line: &[u8], readers: Readers) {
        if readers.has_progress() {
            self.last_progress.clear();
            self.last_progress.extend_from_slice(line);
        }
        if readers.has_memory() && !self.prints.is_passed_over() {
            self.prints.note(number, &text_of(line));
        }
        if readers.has_circumstance() && !self.circumstances.is_full() {
            self.circumstances.note(&text_of(line));
        }
    }

    /// A message may have been cut in the middle of the word that gives it away.
    fn with_seam(&mut self, readers: Readers, line: &[u8]) -> Readers {
        // What was cut goes on in a line that is no longer than it.
        let before = self
            .recent
            .last()
            .filter(|before| before.len() >= SHORTEST_CUT.max(line.len()));
        let Some(before) = before else {
            return readers;
        };
        self.seam.clear();
        self.seam.extend_from_slice(&before[before.len() - SEAM..]);
        self.seam.extend_from_slice(&line[..line.len().min(SEAM)]);
        let found = readers_of(&self.seam).only_families();
        // What lies before the seam alone was found with its own line.
        match found.has_family() && !readers_of(before).has_family() {
            true => readers.with(found),
            false => readers,
        }
    }

    fn read(&mut self, sequence: u64, number: u64, line: &[u8], readers: Readers, is_read: bool) {
        let text = text_of(line);
        let unprefixed = without_prefixes(&text);
        let writer = self.writer_of(unprefixed.writer);
        let text = unprefixed.text;
        if !readers.has_family() {
            self.by_the_way(number, line, readers);
        } else if readers.has_circumstance() {
            self.circumstances.note(text);
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

    /// A line without a name, directly behind one of a rank whose message goes on, is that rank's.
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
        // Where there were too many messages to read all, the last ones are read after all.
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
