//! What was rehearsed, and the answer that was found.

use ghostgpu_recording::Recording;
use ghostgpu_text::{Sheet, human};
use serde_json::Value;

pub(super) fn add(sheet: &mut Sheet, recording: &Recording) {
    let about = &recording.about;
    if let Some(answer) = answer_in_words(recording) {
        sheet.section("fits", [answer]);
    }
    let steps = match about.steps {
        1 => "1 optimizer step".to_owned(),
        steps => format!("{steps} optimizer steps"),
    };
    let torch = match about.torch.as_str() {
        "" => String::new(),
        version => format!(" with torch {version}"),
    };
    let text = format!("{}{torch}, {steps}", about.command.join(" "));
    sheet.paragraph("recorded", &text);
}

/// The headline of `ghostgpu run`, from the answer inside the recording.
fn answer_in_words(recording: &Recording) -> Option<String> {
    let about = &recording.about;
    let answer: Value = serde_json::from_str(&about.answer_json).ok()?;
    let fits = answer.get("fits")?.as_bool()?;
    let need = match fits {
        true => answer.get("peak_device_bytes")?.as_u64(),
        false => answer.get("needed_device_bytes")?.as_u64(),
    };
    Some(format!(
        "{}: {} has {}, the job needs {}",
        if fits { "yes" } else { "no" },
        about.gpu,
        human(about.gpu_total_bytes),
        need.map_or_else(|| "more".to_owned(), human),
    ))
}
