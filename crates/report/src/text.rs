//! Pools and frames as readable text.

use ghostgpu_recording::{Frame, Names, Pool, StackId};

/// Shown if no stack was recorded.
pub(crate) const NO_STACK: &str = "(no stack recorded)";
/// Shown for allocations that are older than the recording.
pub(crate) const OLDER: &str = "(allocated before the recording)";

/// The name of a pool, from PyTorch's number.
pub(crate) fn pool(pool: Pool) -> Option<String> {
    match pool.number {
        None => None,
        Some((0, 0)) => Some("default".to_owned()),
        Some((graph, user)) => Some(format!("private ({graph}, {user})")),
    }
}

/// The frames of a stack, innermost first.
pub(crate) fn frames(names: &Names, stack: StackId) -> impl DoubleEndedIterator<Item = &Frame> {
    let ids = names
        .stacks
        .get(stack.0 as usize)
        .map_or(&[][..], |all| all);
    ids.iter().filter_map(|id| names.frames.get(id.0 as usize))
}

/// A frame in one line: `function (file:line)`, as far as they are known.
pub(crate) fn frame(frame: &Frame) -> String {
    match (frame.function.as_str(), frame.file.as_str()) {
        ("", "") => "(unknown)".to_owned(),
        (function, "") => function.to_owned(),
        ("", file) => format!("({file}:{})", frame.line),
        (function, file) => format!("{function} ({file}:{})", frame.line),
    }
}

/// A frame in few characters: `function file.py:line`.
pub(crate) fn short_frame(frame: &Frame) -> String {
    let file = frame.file.rsplit(['/', '\\']).next().unwrap_or(&frame.file);
    match file {
        "" => frame.function.clone(),
        file => format!("{} {file}:{}", frame.function, frame.line),
    }
}

/// Folders that hold installed packages.
const PACKAGE_FOLDERS: [&str; 2] = ["/site-packages/", "/dist-packages/"];

/// A file of an installed package without the folders above it.
pub(crate) fn shown_file(file: &str) -> &str {
    let mut folders = PACKAGE_FOLDERS.iter();
    folders
        .find_map(|folder| Some(file.rsplit_once(folder)?.1))
        .unwrap_or(file)
}

/// The package that a file belongs to; empty if it is not a Python file.
pub(crate) fn package(file: &str) -> &str {
    let below = shown_file(file);
    if below.len() < file.len() {
        return below.split(['/', '.']).next().unwrap_or_default();
    }
    match file {
        file if file.contains("/ghostgpu/agent/") || file.contains("/ghostgpu/tricks/") => {
            "ghostgpu"
        }
        file if file.contains("/lib/python3") || file.starts_with('<') => "Python",
        file if file.ends_with(".py") => "a package",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use ghostgpu_recording::FrameOwner;

    use super::*;

    #[test]
    fn a_file_of_a_package_is_shown_relative_to_the_packages_folder() {
        for (file, shown, whose) in [
            (
                "/v/lib/python3.11/site-packages/timm/vit.py",
                "timm/vit.py",
                "timm",
            ),
            ("/usr/lib/python3/dist-packages/six.py", "six.py", "six"),
            (
                "/usr/lib/python3.11/runpy.py",
                "/usr/lib/python3.11/runpy.py",
                "Python",
            ),
            ("<frozen runpy>", "<frozen runpy>", "Python"),
            ("/opt/own/model.py", "/opt/own/model.py", "a package"),
            ("", "", ""),
        ] {
            assert_eq!((shown_file(file), package(file)), (shown, whose));
        }
    }

    #[test]
    fn a_frame_shows_what_is_known_about_it() {
        let whole = Frame {
            file: "/home/me/train.py".to_owned(),
            function: "forward".to_owned(),
            line: 7,
            owner: FrameOwner::User,
        };
        assert_eq!(frame(&whole), "forward (/home/me/train.py:7)");
        assert_eq!(short_frame(&whole), "forward train.py:7");
        let text_only = Frame {
            file: String::new(),
            line: 0,
            ..whole
        };
        assert_eq!(frame(&text_only), "forward");
        assert_eq!(short_frame(&text_only), "forward");
    }
}
