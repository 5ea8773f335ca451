//! A stack as HTML: the lines of the user's own code, with the frames of frameworks folded between them.

use ghostgpu_recording::{Frame, FrameOwner};
use ghostgpu_session::StackFrame;

use super::escape::Escaped;
use super::push;
use crate::text::{package, shown_file};

/// One frame, of a recording or of an answer.
pub(super) struct Line<'a> {
    file: &'a str,
    line: u64,
    function: &'a str,
    /// Whether it is shown unfolded.
    is_own: bool,
}

/// Frames of a recording, innermost first.
pub(super) fn of_frames<'a>(frames: impl Iterator<Item = &'a Frame>) -> Vec<Line<'a>> {
    let line = |frame: &'a Frame| Line {
        file: &frame.file,
        line: frame.line.into(),
        function: &frame.function,
        is_own: frame.owner == FrameOwner::User,
    };
    frames.map(line).collect()
}

/// Frames of an answer, which are outermost first.
pub(super) fn of_answer(stack: &[StackFrame]) -> Vec<Line<'_>> {
    let line = |frame| {
        let StackFrame {
            file,
            line,
            function,
            is_user_code,
            ..
        }: &StackFrame = frame;
        Line {
            file,
            line: *line,
            function,
            is_own: *is_user_code,
        }
    };
    stack.iter().rev().map(line).collect()
}

/// The stack as a list, innermost first. If it has no line of the user's code, everything is shown.
pub(super) fn html(lines: &[Line<'_>]) -> String {
    let mut html = String::from("<ol class=\"stack\">");
    let shows_all = !lines.iter().any(|line| line.is_own);
    let mut rest = lines;
    while let Some(first) = rest.first() {
        let own = |line: &&Line<'_>| shows_all || line.is_own;
        let folded = rest.iter().take_while(|line| !own(line)).count();
        if folded == 0 {
            html.push_str(if first.is_own {
                "<li class=\"user\">"
            } else {
                "<li>"
            });
            add_line(&mut html, first);
            html.push_str("</li>");
            rest = &rest[1..];
            continue;
        }
        let (inside, after) = rest.split_at(folded);
        let frames = match folded {
            1 => "1 frame".to_owned(),
            folded => format!("{folded} frames"),
        };
        push(
            &mut html,
            format_args!(
                "<li><details class=\"framework\"><summary>{frames} of {}</summary><ol class=\"stack\">",
                Escaped(&packages(inside))
            ),
        );
        for line in inside {
            html.push_str("<li class=\"torch\">");
            add_line(&mut html, line);
            html.push_str("</li>");
        }
        html.push_str("</ol></details></li>");
        rest = after;
    }
    html.push_str("</ol>");
    html
}

/// `train.py:58 in main`, as the terminal writes it.
fn add_line(html: &mut String, line: &Line<'_>) {
    let function = Escaped(line.function);
    match (line.file, line.function) {
        ("", _) => push(html, format_args!("<code>{function}</code>")),
        (file, "" | "<module>") => push(
            html,
            format_args!("<code>{}:{}</code>", Escaped(shown_file(file)), line.line),
        ),
        (file, _) => push(
            html,
            format_args!(
                "<code>{}:{}</code> in {function}",
                Escaped(shown_file(file)),
                line.line
            ),
        ),
    }
}

/// The packages of these frames, each once, in their order.
fn packages(lines: &[Line<'_>]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for line in lines {
        let name = match package(line.file) {
            "" => "C++",
            name => name,
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(file: &str, owner: FrameOwner) -> Frame {
        Frame {
            file: file.to_owned(),
            line: 7,
            function: "forward".to_owned(),
            owner,
        }
    }

    #[test]
    fn frames_of_frameworks_are_folded_between_the_users_own_lines() {
        let frames = [
            frame(
                "/v/lib/python3.11/site-packages/torch/nn/functional.py",
                FrameOwner::Torch,
            ),
            frame(
                "/v/lib/python3.11/site-packages/timm/<vit>.py",
                FrameOwner::Package,
            ),
            frame("train.py", FrameOwner::User),
            frame("/usr/lib/python3.11/runpy.py", FrameOwner::Torch),
        ];
        let html = html(&of_frames(frames.iter()));
        let own = "<li class=\"user\"><code>train.py:7</code> in forward</li>";
        assert!(html.contains(own), "{html}");
        assert!(html.contains("<summary>2 frames of torch, timm</summary>"));
        assert!(html.contains("<code>timm/&lt;vit&gt;.py:7</code>"));
        assert!(html.ends_with("</details></li></ol>"));
        assert!(html.contains("<summary>1 frame of Python</summary>"));
    }

    #[test]
    fn a_stack_without_a_line_of_the_users_is_shown_whole() {
        let frames = [frame("", FrameOwner::Native), frame("", FrameOwner::Native)];
        let html = html(&of_frames(frames.iter()));
        assert_eq!(html.matches("<li><code>forward</code></li>").count(), 2);
        assert!(!html.contains("<details"));
    }
}
