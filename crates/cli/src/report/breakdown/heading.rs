//! What was rehearsed, and the answer that was found.

use ghostgpu_recording::Recording;
use ghostgpu_text::Sheet;
use serde_json::Value;

use crate::report::verdict::Headline;

/// What was rehearsed: the command, torch, steps.
pub(super) fn rehearsed(recording: &Recording) -> String {
    let about = &recording.about;
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

pub(super) fn add(sheet: &mut Sheet, recording: &Recording) {
    sheet.paragraph("recorded", &rehearsed(recording));
}

/// The headline of `ghostgpu run`, from the answer inside the recording.
pub(super) fn headline(recording: &Recording) -> Option<Headline> {
    let about = &recording.about;
    let answer: Value = serde_json::from_str(&about.answer_json).ok()?;
    let bytes = |name: &str| answer.get(name).and_then(Value::as_u64);
    let count = recording.cards.len();
    Some(match answer.get("fits")?.as_bool()? {
        true => Headline::fitting(
            bytes("peak_device_bytes")?,
            &about.gpu,
            about.gpu_total_bytes,
            count,
        ),
        false => Headline::not_fitting(
            bytes("needed_device_bytes"),
            &about.gpu,
            about.gpu_total_bytes,
            count,
        ),
    })
}
