//! Whose code a frame is, by its file.

use ghostgpu_recording::FrameOwner;

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
    match kind_of(file) {
        Kind::User => FrameOwner::User,
        Kind::Native => FrameOwner::Native,
        Kind::Library if is_torch(file) => FrameOwner::Torch,
        Kind::Library => FrameOwner::Package,
    }
}

/// PyTorch itself, what it generates, and Python's own library.
fn is_torch(file: &str) -> bool {
    let file = file.replace('\\', "/");
    match file.rsplit_once("-packages/") {
        Some((_, inside)) => inside.starts_with("torch/"),
        None => true,
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    /// Python outside every library.
    User,
    /// An installed package, PyTorch or Python's own library.
    Library,
    /// C++, or anything that is no Python file.
    Native,
}

fn kind_of(file: &str) -> Kind {
    // Cells of notebooks and `python -c` are the user's code; `<frozen runpy>` and generated code are not.
    if file.starts_with('<') {
        let own = file.starts_with("<ipython") || file == "<stdin>" || file == "<string>";
        return if own { Kind::User } else { Kind::Library };
    }
    let file = file.replace('\\', "/");
    let is_python = [".py", ".pyw", ".ipynb"]
        .iter()
        .any(|ending| file.ends_with(ending));
    // `train.ipynb (cell 3)`: a cell of a notebook that is rehearsed.
    let is_cell = file.contains(".ipynb (cell ") && file.ends_with(')');
    if !is_python && !is_cell {
        return Kind::Native;
    }
    let mut parts = file.split('/').peekable();
    while let Some(part) = parts.next() {
        let next = parts.peek().copied();
        let is_library = match part {
            "site-packages" | "dist-packages" => true,
            // Compiled by Inductor or Triton.
            folder if folder.starts_with("torchinductor_") => true,
            // The same in a rehearsal, which has its own caches.
            "cache" => next.is_some_and(|next| next == "inductor" || next.starts_with("triton")),
            // /usr/lib/python3.11/threading.py, and the same in every environment.
            "lib" | "lib64" => next.is_some_and(is_python_folder),
            // GhostGPU's own code between the script and torch.
            "ghostgpu" => next.is_some_and(|next| next == "agent" || next == "tricks"),
            "torch" => next.is_some_and(|next| TORCH_FOLDERS.contains(&next)),
            _ => false,
        };
        if is_library {
            return Kind::Library;
        }
    }
    Kind::User
}

fn is_python_folder(folder: &str) -> bool {
    folder
        .strip_prefix("python")
        .is_some_and(|version| version.starts_with(|digit: char| digit.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_belong_to_the_user_a_package_torch_or_c_plus_plus() {
        for file in [
            "/home/me/train.py",
            "train.py",
            "/home/me/torch/train.py",
            "C:\\work\\train.py",
            "<ipython-input-3-abc>",
            "/tmp/ipykernel_123/456.py",
            "/home/me/train.ipynb (cell 3)",
            "/home/me/lib/data.py",
        ] {
            assert_eq!(owner_of(file), FrameOwner::User, "{file}");
        }
        for file in [
            "/v/lib/python3.11/site-packages/transformers/trainer.py",
            "/v/lib/python3.11/site-packages/torchvision/models/vgg.py",
            "/usr/lib/python3/dist-packages/numpy/core.py",
            "C:\\Python\\Lib\\site-packages\\x.py",
        ] {
            assert_eq!(owner_of(file), FrameOwner::Package, "{file}");
        }
        for file in [
            "/usr/lib/python3.11/threading.py",
            "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py",
            "/src/pytorch/torch/nn/modules/module.py",
            "<frozen runpy>",
            "/src/ghostgpu/agent/values/known_values.py",
            "/src/ghostgpu/tricks/checkpointing.py",
            "/tmp/torchinductor_me/ab/cab.py",
            "/tmp/ghostgpu-1/cache/inductor/ab/cab.py",
        ] {
            assert_eq!(owner_of(file), FrameOwner::Torch, "{file}");
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
