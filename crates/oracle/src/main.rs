//! `ghostgpu-cudnn cudnn-oracle --library PATH`: the process that holds the real cuDNN.
//!
//! Not for people: the stand-in library starts it. See [`ghostgpu_oracle`].

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let library = arguments
        .iter()
        .position(|argument| argument == "--library")
        .and_then(|place| arguments.get(place + 1));
    let Some(library) = library.map(PathBuf::from) else {
        eprintln!("usage: ghostgpu-cudnn cudnn-oracle --library PATH/libcudnn.so.9");
        return ExitCode::from(2);
    };
    let code = ghostgpu_oracle::serve(&library, std::io::stdin().lock(), std::io::stdout().lock());
    ExitCode::from(u8::try_from(code).unwrap_or(2))
}
