//! A plan as a file: what `ghostgpu launch --plan` reads.

use ghostgpu_text::human;
use ghostgpu_tricks::plan_of_requests;

use super::{Candidate, PlanAnswer};

impl PlanAnswer {
    /// The text of the file: its origin as comments, and the tricks.
    pub fn file(&self, best: &Candidate) -> String {
        let peak = best.peaks.map_or(0, |peaks| peaks.peak_device_bytes);
        let left = best.headroom_bytes.unwrap_or(0);
        let mut text = format!(
            "# Rehearsed by ghostgpu {} on {} ({}): {} on the card, {} left.\n",
            self.versions.ghostgpu,
            self.gpu.name,
            human(self.gpu.total_bytes),
            human(peak),
            human(left)
        );
        text.push_str(&format!("# {}\n\n", self.command.join(" ")));
        text + &plan_of_requests(&best.tricks)
    }
}
