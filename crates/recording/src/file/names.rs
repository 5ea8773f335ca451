//! The sections with what was rehearsed, and with everything that has a name.

use std::io::{self, BufRead};

use super::error::FileError;
use super::packed::Packed;
use super::unpacked::Unpacked;
use crate::names::{Frame, FrameId, FrameOwner, Module, Names};
use crate::recording::{About, Source};

const OWNERS: [FrameOwner; 4] = [
    FrameOwner::User,
    FrameOwner::Package,
    FrameOwner::Torch,
    FrameOwner::Native,
];

const SOURCES: [Source; 2] = [Source::Rehearsal, Source::Snapshot];

pub(super) fn write_about(about: &About, warnings: &[String], out: &mut Packed) -> io::Result<()> {
    write_texts(&about.command, out)?;
    for text in [
        &about.torch,
        &about.gpu,
        &about.capability,
        &about.allocator_settings,
    ] {
        out.text(text)?;
    }
    out.text(&match &about.answer {
        Some(answer) => serde_json::to_string(answer)?,
        None => String::new(),
    })?;
    out.byte(about.source as u8)?;
    out.number(about.gpu_total_bytes)?;
    out.number(about.steps.into())?;
    write_texts(warnings, out)
}

pub(super) fn read_about(
    input: &mut Unpacked<'_, impl BufRead>,
) -> Result<(About, Vec<String>), FileError> {
    let command = input.list(|input| input.text())?;
    let torch = input.text()?;
    let gpu = input.text()?;
    let capability = input.text()?;
    let allocator_settings = input.text()?;
    let answer = match input.text()?.as_str() {
        "" => None,
        text => Some(
            serde_json::from_str(text)
                .map_err(|error| input.wrong(format!("the answer cannot be read: {error}")))?,
        ),
    };
    let source = usize::from(input.byte()?);
    let source = *SOURCES
        .get(source)
        .ok_or_else(|| input.wrong(format!("no source has number {source}")))?;
    let about = About {
        command,
        torch,
        gpu,
        capability,
        allocator_settings,
        answer,
        source,
        gpu_total_bytes: input.number()?,
        steps: input.short()?,
    };
    Ok((about, input.list(|input| input.text())?))
}

fn write_texts(texts: &[String], out: &mut Packed) -> io::Result<()> {
    out.number(texts.len() as u64)?;
    texts.iter().try_for_each(|text| out.text(text))
}

pub(super) fn write_names(names: &Names, out: &mut Packed) -> io::Result<()> {
    write_texts(&names.texts, out)?;
    write_texts(&names.operators, out)?;
    out.number(names.modules.len() as u64)?;
    for module in &names.modules {
        out.text(&module.path)?;
        out.text(&module.class)?;
        out.number(module.output_bytes)?;
    }
    out.number(names.frames.len() as u64)?;
    for frame in &names.frames {
        out.text(&frame.file)?;
        out.number(frame.line.into())?;
        out.text(&frame.function)?;
        out.byte(frame.owner as u8)?;
    }
    out.number(names.stacks.len() as u64)?;
    for stack in &names.stacks {
        out.number(stack.len() as u64)?;
        let mut before = 0;
        for frame in stack {
            out.difference(frame.0.into(), before)?;
            before = frame.0.into();
        }
    }
    Ok(())
}

pub(super) fn read_names(input: &mut Unpacked<'_, impl BufRead>) -> Result<Names, FileError> {
    let texts = input.list(|input| input.text())?;
    let operators = input.list(|input| input.text())?;
    let modules = input.list(|input| {
        Ok(Module {
            path: input.text()?,
            class: input.text()?,
            output_bytes: input.number()?,
        })
    })?;
    let frames = input.list(|input| {
        Ok(Frame {
            file: input.text()?,
            line: input.short()?,
            function: input.text()?,
            owner: {
                let owner = usize::from(input.byte()?);
                *OWNERS
                    .get(owner)
                    .ok_or_else(|| input.wrong(format!("no owner of frames has number {owner}")))?
            },
        })
    })?;
    let frame_count = frames.len();
    let stacks = input.list(|input| {
        let mut before = 0;
        input.list(|input| {
            before = input.short_difference(before)?;
            match before as usize {
                frame if frame < frame_count => Ok(FrameId(before)),
                frame => Err(input.wrong(format!("there is no frame {frame}"))),
            }
        })
    })?;
    Ok(Names {
        texts,
        operators,
        modules,
        frames,
        stacks,
    })
}
