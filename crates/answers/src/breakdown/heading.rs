//! What was recorded, and the answer that was found.

use ghostgpu_recording::{Recording, Source};
use ghostgpu_text::Sheet;

use crate::headline::VerdictHeadline;

/// What was rehearsed: the command, torch, steps.
pub(super) fn rehearsed(recording: &Recording) -> String {
    let about = &recording.about;
    if about.source == Source::Snapshot {
        let settings = match about.allocator_settings.as_str() {
            "" => String::new(),
            settings => format!(", {settings}"),
        };
        return format!("{}{settings}", about.command.join(" "));
    }
    let steps = match about.steps {
        1 => "1 optimizer step".to_owned(),
        steps => format!("{steps} optimizer steps"),
    };
    let torch = match about.torch.as_str() {
        "" => String::new(),
        version => format!(" with torch {version}"),
    };
    format!("{}{torch}, {steps}", about.command.join(" "))
}

/// What the line about the recording is called.
pub(super) fn label(recording: &Recording) -> &'static str {
    match recording.about.source {
        Source::Rehearsal => "recorded",
        Source::Snapshot => "snapshot",
    }
}

pub(super) fn add(sheet: &mut Sheet, recording: &Recording) {
    sheet.paragraph(label(recording), &rehearsed(recording));
}

/// The headline of `ghostgpu run`, from the answer inside the recording.
pub(super) fn headline(recording: &Recording) -> Option<VerdictHeadline> {
    recording.about.answer.as_ref().map(VerdictHeadline::of)
}
