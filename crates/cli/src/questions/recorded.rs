//! The recording of a rehearsal with its answer, as a page and as a `.ghost` file.

use ghostgpu_recording::Answer;
use ghostgpu_rehearse::{Memory, Prepared};
use ghostgpu_report::write_html;

use super::relative_paths;
use crate::exports;
use crate::failure::Failure;
use crate::output::Output;

/// Adds the job, the card and the answer to a recording.
pub fn complete(memory: &mut Memory, answer: &Answer, prepared: &Prepared) {
    let Memory::Recorded(recording) = memory else {
        return;
    };
    let card = prepared.card();
    let about = &mut recording.about;
    about.command = prepared
        .words
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    about.gpu = card.name.clone();
    about.gpu_total_bytes = card.total_bytes;
    about.capability = answer.gpu.capability.clone();
    let mut answer = answer.clone();
    if let Ok(folder) = std::env::current_dir() {
        relative_paths::shorten(&mut recording.names, &mut answer, &folder);
    }
    recording.about.answer = Some(answer);
}

/// Writes the page and the recording, if requested.
pub fn write_recording(
    memory: &Memory,
    page: Option<Output>,
    file: Option<Output>,
) -> anyhow::Result<()> {
    let Some(recording) = memory.recording() else {
        if page.is_some() || file.is_some() {
            let because = memory.missing_because().unwrap_or_default();
            return Err(Failure::new(format!("there is no recording to write: {because}"))
                .with_hint(
                    "a script is recorded when it starts CUDA and ends by itself, with PyTorch's own \
                     allocator (not `cudaMallocAsync`)",
                )
                .into());
        }
        return Ok(());
    };
    if let Some(output) = page {
        exports::write(output, |out| Ok(write_html(recording, out)?))?;
    }
    if let Some(output) = file {
        exports::write(output, |out| {
            Ok(ghostgpu_recording::file::write(recording, out)?)
        })?;
    }
    Ok(())
}
