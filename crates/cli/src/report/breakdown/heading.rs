//! What was recorded, and the answer that was found.

use ghostgpu_recording::{Recording, Source};
use ghostgpu_text::{Sheet, human};

pub(super) fn add(sheet: &mut Sheet, recording: &Recording) {
    let about = &recording.about;
    if let Some(answer) = answer_in_words(recording) {
        sheet.section("fits", [answer]);
    }
    if about.source == Source::Snapshot {
        let settings = match about.allocator_settings.as_str() {
            "" => String::new(),
            settings => format!(", {settings}"),
        };
        let text = format!("{}{settings}", about.command.join(" "));
        sheet.paragraph("snapshot", &text);
        return;
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
    let answer = about.answer.as_ref()?;
    let fits = answer.fits?;
    let need = match fits {
        true => Some(answer.peak_device_bytes),
        false => answer.needed_device_bytes,
    };
    Some(format!(
        "{}: {} has {}, the job needs {}",
        if fits { "yes" } else { "no" },
        about.gpu,
        human(about.gpu_total_bytes),
        need.map_or_else(|| "more".to_owned(), human),
    ))
}
