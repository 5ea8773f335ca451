//! The names of the memory log and of the snapshot, in one list.

use std::collections::HashMap;

use crate::frame_owner::owner_of;
use ghostgpu_recording::{Frame, FrameId, Module, NameId, Names, StackId};
use ghostgpu_session::memory_log::{LogEntry, LogReader};
use ghostgpu_snapshot::Snapshot;

/// Texts, operators and modules of the log; its numbers are the indices of the lists.
pub fn names_of_log(log: &[u8]) -> Names {
    let mut names = Names::default();
    for entry in LogReader::new(log).map_while(Result::ok) {
        match entry {
            LogEntry::Operator { number, name } => {
                put(&mut names.operators, number, name.to_owned());
            }
            LogEntry::Text { number, text } => put(&mut names.texts, number, text.to_owned()),
            LogEntry::Module {
                number,
                path,
                class,
            } => put(
                &mut names.modules,
                number,
                Module {
                    path: path.to_owned(),
                    class: class.to_owned(),
                    output_bytes: 0,
                },
            ),
            LogEntry::ModuleOutput { number, bytes } => {
                if let Some(module) = names.modules.get_mut(number as usize) {
                    module.output_bytes = module.output_bytes.max(bytes);
                }
            }
            _ => {}
        }
    }
    names
}

/// Numbers are consecutive. If one is much larger than the last, the log is damaged and the name is ignored.
const MAX_GAP: usize = 1 << 16;

fn put<T: Clone + Default>(list: &mut Vec<T>, number: u32, value: T) {
    let place = number as usize;
    if place == 0 || place > list.len() + MAX_GAP {
        return;
    }
    if place >= list.len() {
        list.resize(place + 1, T::default());
    }
    list[place] = value;
}

/// Adds stacks of a snapshot to a recording's names, each once, without the agent's own frames.
#[derive(Debug)]
pub struct Stacks {
    /// By the snapshot's numbers.
    stacks: Vec<Option<StackId>>,
    frames: HashMap<ghostgpu_snapshot::FrameId, Option<FrameId>>,
}

impl Stacks {
    /// For a snapshot with this many stacks.
    pub fn new(count: usize) -> Self {
        Self {
            stacks: vec![None; count],
            frames: HashMap::new(),
        }
    }

    pub fn bring(
        &mut self,
        stack: ghostgpu_snapshot::StackId,
        snapshot: &Snapshot,
        names: &mut Names,
    ) -> StackId {
        let known = self.stacks.get(stack.0 as usize).copied().flatten();
        if let Some(known) = known {
            return known;
        }
        let frames: Vec<FrameId> = snapshot
            .stacks
            .frames_of(stack)
            .iter()
            .filter_map(|&frame| self.bring_frame(frame, snapshot, names))
            .collect();
        let id = if frames.is_empty() {
            StackId::default()
        } else {
            names.stacks.push(frames);
            StackId(names.stacks.len() as u32 - 1)
        };
        if let Some(place) = self.stacks.get_mut(stack.0 as usize) {
            *place = Some(id);
        }
        id
    }

    fn bring_frame(
        &mut self,
        id: ghostgpu_snapshot::FrameId,
        snapshot: &Snapshot,
        names: &mut Names,
    ) -> Option<FrameId> {
        if let Some(&known) = self.frames.get(&id) {
            return known;
        }
        let frame = snapshot.stacks.frame(id);
        let file = snapshot.names.text(frame.file);
        let brought = (!is_agent(file)).then(|| {
            names.frames.push(Frame {
                file: file.to_owned(),
                line: u32::try_from(frame.line).unwrap_or(0),
                function: snapshot.names.text(frame.function).to_owned(),
                owner: owner_of(file),
            });
            FrameId(names.frames.len() as u32 - 1)
        });
        self.frames.insert(id, brought);
        brought
    }
}

/// Adds texts of a snapshot to a recording's names, each once.
#[derive(Debug, Default)]
pub struct Texts {
    known: HashMap<ghostgpu_snapshot::NameId, NameId>,
}

impl Texts {
    pub fn bring(
        &mut self,
        name: ghostgpu_snapshot::NameId,
        from: &ghostgpu_snapshot::Names,
        names: &mut Names,
    ) -> NameId {
        if name == ghostgpu_snapshot::NameId::EMPTY {
            return NameId(0);
        }
        *self.known.entry(name).or_insert_with(|| {
            names.texts.push(from.text(name).to_owned());
            NameId(names.texts.len() as u32 - 1)
        })
    }
}

/// Whether a file belongs to GhostGPU's agent or tricks.
fn is_agent(file: &str) -> bool {
    file.contains("/ghostgpu/agent/") || file.contains("/ghostgpu/tricks/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_out_of_all_proportion_gets_no_name() {
        let mut list = vec![String::new()];
        put(&mut list, u32::MAX, "far".to_owned());
        put(&mut list, 2, "near".to_owned());
        assert_eq!(list, ["", "", "near"]);
    }
}
