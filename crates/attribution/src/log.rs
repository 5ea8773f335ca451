//! The memory log of one card: its allocations and frees, and the remarks between them.

use ghostgpu_session::memory_log::{LogEntry, LogReader};

/// Goes through the log of one card.
#[derive(Debug)]
pub struct CardLog<'a> {
    reader: LogReader<'a>,
    device: u8,
    next: Option<LogEntry<'a>>,
}

impl<'a> CardLog<'a> {
    pub fn new(log: &'a [u8], device: u8) -> Self {
        Self {
            reader: LogReader::new(log),
            device,
            next: None,
        }
    }

    /// The card's next allocation or free, without consuming it. Entries before it that belong to no card are passed to
    /// `remark`, each once; an address in them refers to what is live there at that moment.
    pub fn peek(&mut self, mut remark: impl FnMut(LogEntry<'a>)) -> Option<LogEntry<'a>> {
        while self.next.is_none() {
            match self.reader.next()?.ok()? {
                entry @ (LogEntry::Allocated { device, .. } | LogEntry::Freed { device, .. }) => {
                    if device == self.device {
                        self.next = Some(entry);
                    }
                }
                entry => remark(entry),
            }
        }
        self.next
    }

    /// Moves past the entry that `peek` returned.
    pub fn advance(&mut self) {
        self.next = None;
    }
}
