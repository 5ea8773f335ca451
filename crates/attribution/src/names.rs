//! Names of both witnesses, brought into one list.

use std::collections::HashMap;

use ghostgpu_ledger::owner_of;
use ghostgpu_recording::{Frame, FrameId, FrameOwner, Module, Names, StackId};
use ghostgpu_session::memory_log::{LogEntry, LogReader};
use ghostgpu_trace::Snapshot;

/// Texts, operators and modules as the log numbers them: its numbers are the places in the lists.
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

/// Numbers come one after the other; one that leaps far ahead is damage, and its name is left out.
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

/// Brings stacks of a snapshot into a recording's names, each once, without the agent's own frames.
pub struct Stacks<'a> {
    snapshot: &'a Snapshot,
    stacks: HashMap<ghostgpu_trace::StackId, StackId>,
    frames: HashMap<ghostgpu_trace::FrameId, Option<FrameId>>,
}

impl<'a> Stacks<'a> {
    pub fn new(snapshot: &'a Snapshot) -> Self {
        Self {
            snapshot,
            stacks: HashMap::new(),
            frames: HashMap::new(),
        }
    }

    pub fn bring(&mut self, stack: ghostgpu_trace::StackId, names: &mut Names) -> StackId {
        if let Some(&known) = self.stacks.get(&stack) {
            return known;
        }
        let frames: Vec<FrameId> = self
            .snapshot
            .stacks
            .frames_of(stack)
            .iter()
            .filter_map(|&frame| self.bring_frame(frame, names))
            .collect();
        let id = if frames.is_empty() {
            StackId::default()
        } else {
            names.stacks.push(frames);
            StackId(names.stacks.len() as u32 - 1)
        };
        self.stacks.insert(stack, id);
        id
    }

    fn bring_frame(&mut self, id: ghostgpu_trace::FrameId, names: &mut Names) -> Option<FrameId> {
        if let Some(&known) = self.frames.get(&id) {
            return known;
        }
        let frame = self.snapshot.stacks.frame(id);
        let file = self.snapshot.names.text(frame.file);
        let brought = (!is_agent(file)).then(|| {
            names.frames.push(Frame {
                file: file.to_owned(),
                line: u32::try_from(frame.line).unwrap_or(0),
                function: self.snapshot.names.text(frame.function).to_owned(),
                owner: owner(file),
            });
            FrameId(names.frames.len() as u32 - 1)
        });
        self.frames.insert(id, brought);
        brought
    }
}

/// What GhostGPU puts between the script and torch.
fn is_agent(file: &str) -> bool {
    file.contains("/ghostgpu/agent/")
}

fn owner(file: &str) -> FrameOwner {
    match owner_of(file) {
        ghostgpu_ledger::FrameOwner::User => FrameOwner::User,
        _ if is_torch(file) => FrameOwner::Torch,
        _ => FrameOwner::Package,
    }
}

/// PyTorch itself, what it generates, and Python's own library.
fn is_torch(file: &str) -> bool {
    match file.rsplit_once("-packages/") {
        Some((_, inside)) => inside.starts_with("torch/"),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_belong_to_the_user_a_package_or_torch() {
        for (file, expected) in [
            ("/home/me/train.py", FrameOwner::User),
            (
                "/v/lib/python3.11/site-packages/torch/nn/modules/linear.py",
                FrameOwner::Torch,
            ),
            (
                "/v/lib/python3.11/site-packages/transformers/trainer.py",
                FrameOwner::Package,
            ),
            (
                "/v/lib/python3.11/site-packages/torchvision/models/vgg.py",
                FrameOwner::Package,
            ),
            ("/usr/lib/python3.11/runpy.py", FrameOwner::Torch),
            (
                "/tmp/ghostgpu-1/cache/inductor/ab/cab.py",
                FrameOwner::Torch,
            ),
        ] {
            assert_eq!(owner(file), expected, "{file}");
        }
    }

    #[test]
    fn a_number_out_of_all_proportion_gets_no_name() {
        let mut list = vec![String::new()];
        put(&mut list, u32::MAX, "far".to_owned());
        put(&mut list, 2, "near".to_owned());
        assert_eq!(list, ["", "", "near"]);
    }
}
