//! Pools and frames as people read them.

use ghostgpu_trace::{Frame, Names, PoolId};

/// A pool as people name it.
pub(crate) fn pool(id: PoolId) -> String {
    match id {
        PoolId::DEFAULT => "default".to_owned(),
        PoolId(graph, user) => format!("private ({graph}, {user})"),
    }
}

/// A frame in one line: `function (file:line)`, as far as they are known.
pub(crate) fn frame(frame: &Frame, names: &Names) -> String {
    let function = names.text(frame.function);
    let file = names.text(frame.file);
    match (function, file) {
        ("", "") => "(unknown)".to_owned(),
        (function, "") => function.to_owned(),
        ("", file) => format!("({file}:{})", frame.line),
        (function, file) => format!("{function} ({file}:{})", frame.line),
    }
}

/// A frame in few characters: `function file.py:line`.
pub(crate) fn short_frame(frame: &Frame, names: &Names) -> String {
    let function = names.text(frame.function);
    let file = names.text(frame.file);
    let file = file.rsplit(['/', '\\']).next().unwrap_or(file);
    match file {
        "" => function.to_owned(),
        file => format!("{function} {file}:{}", frame.line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_named_by_what_is_known_of_it() {
        let mut names = Names::default();
        let function = names.intern("forward");
        let file = names.intern("/home/me/train.py");
        let empty = names.intern("");
        let whole = Frame {
            file,
            function,
            line: 7,
            fx: None,
        };
        assert_eq!(frame(&whole, &names), "forward (/home/me/train.py:7)");
        assert_eq!(short_frame(&whole, &names), "forward train.py:7");
        let text_only = Frame {
            file: empty,
            line: 0,
            ..whole
        };
        assert_eq!(frame(&text_only, &names), "forward");
        assert_eq!(short_frame(&text_only, &names), "forward");
    }
}
