//! No batch fits.

use ghostgpu_device::DeviceSheet;
use ghostgpu_rehearse::{EXIT_DOES_NOT_FIT, Memory, OutOfMemory};
use ghostgpu_text::human;
use serde_json::{Value, json};

use super::SCHEMA;
use crate::fits::{Answer, FollowUps, text_answer};
use crate::style::Style;

/// Not even the smallest batch fits.
#[derive(Clone, Copy, Debug)]
pub struct NotEvenOne<'a> {
    pub batch: u64,
    pub place: &'a OutOfMemory,
    pub card: &'a DeviceSheet,
}

impl NotEvenOne<'_> {
    pub const EXIT_CODE: u8 = EXIT_DOES_NOT_FIT;

    pub fn text(&self) -> String {
        format!(
            "largest batch  none: not even {} fits on {} ({})\n\
             out of memory  {}\n",
            self.batch,
            self.card.name,
            human(self.card.total_bytes),
            self.place
        )
    }

    pub fn json(&self) -> Value {
        json!({
            "schema": SCHEMA,
            "largest_batch": null,
            "smallest_rehearsed": self.batch,
            "out_of_memory": self.place.to_string(),
            "gpu": { "name": self.card.name, "total_bytes": self.card.total_bytes },
            "exit_code": Self::EXIT_CODE,
        })
    }
}

/// The model alone is too large: the answer of `ghostgpu run`, with what would be needed.
#[derive(Clone, Copy, Debug)]
pub struct BeforeFirstBatch<'a>(pub &'a Answer);

impl BeforeFirstBatch<'_> {
    pub const EXIT_CODE: u8 = EXIT_DOES_NOT_FIT;

    pub fn text(&self, style: Style) -> String {
        format!(
            "largest batch  none: the script runs out of memory before its first batch\n{}",
            text_answer(self.0, &Memory::Unwanted, &FollowUps::default(), style)
        )
    }

    pub fn json(&self) -> Value {
        json!({
            "schema": SCHEMA,
            "largest_batch": null,
            "exit_code": Self::EXIT_CODE,
            "answer": self.0,
        })
    }
}
