//! Writes a synthetic recording: `made_up OUT training LAYERS STEPS` or `made_up OUT random SEED EVENTS`.

use std::fs::File;
use std::io::BufWriter;

use anyhow::{Context, bail};
use ghostgpu_recording::file::write;
use ghostgpu_recording::made_up::{MadeUp, recording, recording_at_random};

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [out, kind, first, second] = &words[..] else {
        bail!("made_up OUT training LAYERS STEPS, or made_up OUT random SEED EVENTS");
    };
    let made_up = match kind.as_str() {
        "training" => recording(MadeUp {
            layers: first.parse()?,
            steps: second.parse()?,
        }),
        "random" => recording_at_random(first.parse()?, second.parse()?),
        other => bail!("no kind of recording is called `{other}`"),
    };
    let file = File::create(out).with_context(|| format!("cannot write to {out}"))?;
    write(&made_up, BufWriter::new(file))?;
    Ok(())
}
