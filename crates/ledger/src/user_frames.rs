//! Which frame of a stack is the user's own.

use ghostgpu_trace::{Frame, FrameId, Names, Snapshot, StackId};

/// Whose code a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FrameOwner {
    /// Python outside every library.
    User,
    /// An installed package, PyTorch or Python's own library.
    Library,
    /// C++, or anything that is no Python file.
    Native,
}

/// Folders of PyTorch's package, for checkouts that are not installed.
const TORCH_FOLDERS: [&str; 14] = [
    "nn",
    "optim",
    "autograd",
    "utils",
    "cuda",
    "distributed",
    "_dynamo",
    "_inductor",
    "_functorch",
    "ao",
    "fx",
    "amp",
    "jit",
    "_prims",
];

/// Whose code is in a file.
pub fn owner_of(file: &str) -> FrameOwner {
    // A notebook's cell and `python -c` are the user's; `<frozen runpy>` and generated code are not.
    if file.starts_with('<') {
        let own = file.starts_with("<ipython") || file == "<stdin>" || file == "<string>";
        return if own {
            FrameOwner::User
        } else {
            FrameOwner::Library
        };
    }
    let file = file.replace('\\', "/");
    let is_python = [".py", ".pyw", ".ipynb"]
        .iter()
        .any(|ending| file.ends_with(ending));
    if !is_python {
        return FrameOwner::Native;
    }
    let mut parts = file.split('/').peekable();
    while let Some(part) = parts.next() {
        let next = parts.peek().copied();
        let is_library = match part {
            "site-packages" | "dist-packages" => true,
            // Compiled by Inductor or Triton.
            folder if folder.starts_with("torchinductor_") => true,
            // The same in a rehearsal, whose caches are its own.
            "cache" => next.is_some_and(|next| next == "inductor" || next.starts_with("triton")),
            // /usr/lib/python3.11/threading.py, and the same in every environment.
            "lib" | "lib64" => next.is_some_and(is_python_folder),
            // What GhostGPU puts between the script and torch in a rehearsal.
            "ghostgpu" => next == Some("agent"),
            "torch" => next.is_some_and(|next| TORCH_FOLDERS.contains(&next)),
            _ => false,
        };
        if is_library {
            return FrameOwner::Library;
        }
    }
    FrameOwner::User
}

fn is_python_folder(folder: &str) -> bool {
    folder
        .strip_prefix("python")
        .is_some_and(|version| version.starts_with(|digit: char| digit.is_ascii_digit()))
}

/// Parts of C++ names that say how memory is allocated and stacks are recorded, not what for.
const PLUMBING: [&str; 9] = [
    "unwind",
    "CapturedTraceback",
    "gather",
    "CachingAllocator",
    "c10::",
    "at::detail::empty",
    "at::empty",
    "empty_strided",
    "empty_memory_format",
];

/// The frame that stands for each stack of a snapshot: the innermost of the user's own, else the
/// innermost of a library, else the function of the backward pass, else the innermost of C++ that is not
/// about allocating itself.
#[derive(Debug)]
pub struct UserFrames {
    by_stack: Vec<Option<FrameId>>,
}

impl UserFrames {
    pub fn of(snapshot: &Snapshot) -> Self {
        let ranks: Vec<u8> = (0..snapshot.stacks.frame_count() as u32)
            .map(|id| rank(&snapshot.names, snapshot.stacks.frame(FrameId(id))))
            .collect();
        let by_stack = (0..snapshot.stacks.len() as u32)
            .map(|stack| {
                let frames = snapshot.stacks.frames_of(StackId(stack));
                frames
                    .iter()
                    .copied()
                    .min_by_key(|frame| ranks[frame.0 as usize])
            })
            .collect();
        Self { by_stack }
    }

    /// The frame that stands for a stack; none for the empty one.
    pub fn frame(&self, stack: StackId) -> Option<FrameId> {
        self.by_stack.get(stack.0 as usize).copied().flatten()
    }
}

/// How well a frame tells what memory is for: the lowest of a stack stands for it.
fn rank(names: &Names, frame: &Frame) -> u8 {
    let function = names.text(frame.function);
    match owner_of(names.text(frame.file)) {
        FrameOwner::User => 0,
        FrameOwner::Library => 1,
        FrameOwner::Native if function.contains("Backward") => 2,
        FrameOwner::Native
            if function == "??" || PLUMBING.iter().any(|part| function.contains(part)) =>
        {
            4
        }
        FrameOwner::Native => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_libraries_are_told_from_the_users_own() {
        for file in [
            "/home/me/train.py",
            "train.py",
            "/home/me/torch/train.py",
            "C:\\work\\train.py",
            "<ipython-input-3-abc>",
            "/tmp/ipykernel_123/456.py",
            "/home/me/lib/data.py",
        ] {
            assert_eq!(owner_of(file), FrameOwner::User, "{file}");
        }
        for file in [
            "/usr/lib/python3.11/threading.py",
            "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py",
            "/usr/lib/python3/dist-packages/numpy/core.py",
            "/src/pytorch/torch/nn/modules/module.py",
            "<frozen runpy>",
            "/src/ghostgpu/agent/known_values.py",
            "/tmp/torchinductor_me/ab/cab.py",
            "C:\\Python\\Lib\\site-packages\\x.py",
        ] {
            assert_eq!(owner_of(file), FrameOwner::Library, "{file}");
        }
        for file in [
            "??",
            "CUDACachingAllocator.cpp",
            "/opt/torch/lib/libtorch_cpu.so",
            "",
        ] {
            assert_eq!(owner_of(file), FrameOwner::Native, "{file}");
        }
    }
}
