//! Tracebacks of Python, IPython and rich, collected frame by frame.

use std::collections::VecDeque;

use serde::Serialize;

use crate::families::{Pattern, cased_pattern, number};

/// The calls that led to a failure, outermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Traceback {
    pub frames: Vec<Frame>,
    /// Frames in the middle that were dropped.
    pub left_out: u64,
}

/// One call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Frame {
    pub file: String,
    pub line: u64,
    pub function: String,
    /// The line of source, where the traceback shows it.
    pub code: String,
}

/// How many frames are kept, and how many of them from the outer end.
const MOST_FRAMES: usize = 48;
const FIRST_FRAMES: usize = 12;
const LONGEST_WORDS: usize = 300;
const LONGEST_LINE: usize = 800;

impl Frame {
    /// The user's own code, judging by the path.
    pub fn is_user_code(&self) -> bool {
        let file = self.file.replace('\\', "/").to_lowercase();
        let is_library = [
            "site-packages/",
            "dist-packages/",
            "/lib/python",
            "/lib64/python",
            "/envs/",
            "<frozen",
            "<string>",
            "<decorator",
            "<__array_function__",
            "/torchinductor_",
            // In the log of a rehearsal.
            "/ghostgpu/agent/",
            "/ghostgpu/tricks/",
        ]
        .iter()
        .any(|part| file.contains(part));
        !is_library && !file.starts_with("torch/") && !file.ends_with("/bin/torchrun")
    }

    /// The file or the function has a name that scripts have, and the file none that modules have.
    fn is_named_like_a_script(&self) -> bool {
        let file = self.file.replace('\\', "/").to_lowercase();
        let name = file.rsplit('/').next().unwrap_or_default();
        let stem = name.trim_end_matches(".py");
        let is_module = stem.starts_with("__")
            || ["util", "utils", "trainer", "engine", "module", "base"]
                .iter()
                .any(|word| stem.split(['_', '-']).any(|part| part == *word));
        let words = [
            "train", "main", "run", "test", "eval", "infer", "predict", "generate", "finetune",
            "fine", "sample", "demo", "app", "script", "launch", "pretrain", "sft",
        ];
        // A path without a folder is what was typed.
        let is_typed = !file.contains('/');
        let is_known = |text: &str| words.iter().any(|word| text.starts_with(word));
        !is_module && (is_typed || is_known(stem) || is_known(&self.function.to_lowercase()))
    }
}

impl Traceback {
    /// The innermost call in user code, else the innermost call.
    pub fn place(&self) -> Option<&Frame> {
        let mut own = self
            .frames
            .iter()
            .rev()
            .filter(|frame| frame.is_user_code());
        own.next().or_else(|| self.frames.last())
    }

    /// The script: the file of the outermost call in user code. Where the outer calls are missing, that may be a
    /// module of a program, which nobody can start.
    pub fn script(&self) -> Option<&str> {
        let first = self.frames.iter().find(|frame| frame.is_user_code())?;
        let is_script = first.function == "<module>" || first.is_named_like_a_script();
        (is_script && first.file.ends_with(".py")).then_some(first.file.as_str())
    }

    fn push(&mut self, frame: Frame) {
        if self.frames.len() == MOST_FRAMES {
            self.frames.remove(FIRST_FRAMES);
            self.left_out += 1;
        }
        self.frames.push(frame);
    }
}

/// Keeps the lines of one writer's last traceback until a message needs them.
#[derive(Debug, Default)]
pub struct Collector {
    lines: VecDeque<String>,
    left_out: u64,
    /// The next line is the source of the last frame.
    expects_code: bool,
    /// The log line of the last frame.
    last_seen: u64,
}

/// A frame takes two lines, or a few more in a rich box.
const MOST_LINES: usize = 256;

/// The collector needs lines with any of these.
pub const NEEDLES: [&str; 10] = [
    "File \"",
    "File /",
    "File ~/",
    "Traceback",
    "--> ",
    "❱",
    ".py in ",
    ".py](http",
    "<ipython-input",
    "Cell In[",
];

cased_pattern!(
    PYTHON,
    r#"File "([^"]{1,400})", line (\d+)(?:, in (.{1,200}))?"#
);
cased_pattern!(
    IPYTHON,
    r"^\s*File ([^\s\[:]{1,400}\.py):(\d+), in ([^(\s]{1,100})"
);
cased_pattern!(
    IPYTHON_LINK,
    r"^\s*File \[?([^\s\[:]{1,400}\.py):(\d+)\]\([^)]*\), in ([^(\s]{1,100})"
);
cased_pattern!(
    CELL,
    r"Cell In\[(\d+)\], line (\d+)(?:, in ([^(\s]{1,100}))?"
);
cased_pattern!(
    IPYTHON_OLD,
    r"^\s*\[?(\S{1,400}?\.py|<ipython-input[^>]{1,80}>)(?:\]\([^)]{1,200}\))? in ([^(\s]{1,100})"
);
cased_pattern!(ARROW, r"^\s*-+> ?(\d+) (.{0,300})");
cased_pattern!(
    RICH,
    r"^[│\s]*((?:/|[A-Za-z]:\\|\./|<ipython)[^\s│]{1,400}?):(\d+) in ([^\s│]{1,100})"
);
cased_pattern!(RICH_ARROW, r"❱\s*(\d+)\s*│?([^\n]{0,300})");

impl Collector {
    pub fn expects_code(&self) -> bool {
        self.expects_code
    }

    pub fn note(&mut self, number_of_line: u64, line: &str) {
        if line.contains("Traceback (most recent call last)") {
            self.lines.clear();
            self.left_out = 0;
            self.expects_code = false;
            self.last_seen = number_of_line;
            return;
        }
        if self.lines.len() == MOST_LINES {
            // The outermost frames stay.
            self.lines.remove(MOST_LINES / 8);
            self.left_out += 1;
        }
        let is_code = std::mem::take(&mut self.expects_code);
        self.expects_code = line.contains("File \"");
        if !is_code {
            self.last_seen = number_of_line;
        }
        self.lines
            .push_back(line.chars().take(LONGEST_LINE).collect());
    }

    /// The collected traceback, if it ended at most `most_lines` lines ago.
    pub fn recent(&self, number_of_line: u64, most_lines: u64) -> Option<Traceback> {
        if number_of_line.saturating_sub(self.last_seen) > most_lines {
            return None;
        }
        let mut found = Traceback {
            left_out: self.left_out / 2,
            ..Traceback::default()
        };
        let mut expects_code = false;
        for line in &self.lines {
            if let Some(frame) = frame_of(line) {
                found.push(frame);
                expects_code = line.contains("File \"");
            } else if let Some((number, code)) = arrow_of(line) {
                if let Some(last) = found.frames.last_mut() {
                    last.line = number;
                    last.code = short(code.trim().trim_end_matches('│').trim());
                }
            } else if std::mem::take(&mut expects_code)
                && let Some(last) = found.frames.last_mut()
            {
                last.code = short(line.trim());
            }
        }
        (!found.frames.is_empty()).then_some(found)
    }
}

fn frame_of(line: &str) -> Option<Frame> {
    let numbered = |pattern: &Pattern| {
        let found = pattern.captures(line)?;
        Some(Frame {
            file: short(&found[1]),
            line: number(&found, 2)?,
            function: short(found.get(3).map_or("", |name| name.as_str()).trim()),
            code: String::new(),
        })
    };
    if line.contains("File ") {
        let found = numbered(&PYTHON)
            .or_else(|| numbered(&IPYTHON))
            .or_else(|| numbered(&IPYTHON_LINK));
        if found.is_some() {
            return found;
        }
    }
    if let Some(found) = CELL.captures(line) {
        return Some(Frame {
            file: format!("cell {}", &found[1]),
            line: number(&found, 2)?,
            function: short(found.get(3).map_or("", |name| name.as_str())),
            code: String::new(),
        });
    }
    if let Some(found) = IPYTHON_OLD.captures(line) {
        return Some(Frame {
            file: short(&found[1]),
            line: 0,
            function: short(&found[2]),
            code: String::new(),
        });
    }
    if line.contains(" in ") {
        return numbered(&RICH);
    }
    None
}

/// The source line that IPython or rich marks with an arrow.
fn arrow_of(line: &str) -> Option<(u64, &str)> {
    let found = match line.contains('❱') {
        true => RICH_ARROW.captures(line)?,
        false => ARROW.captures(line)?,
    };
    let code = found.get(2)?;
    Some((number(&found, 1)?, code.as_str().trim_matches(['│', ' '])))
}

fn short(text: &str) -> String {
    text.chars().take(LONGEST_WORDS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traceback(text: &str) -> Traceback {
        let mut collector = Collector::default();
        for (number, line) in (1..).zip(text.lines()) {
            if collector.expects_code()
                || NEEDLES.iter().any(|needle| line.contains(needle))
                || line.contains('│')
            {
                collector.note(number, line);
            }
        }
        collector
            .recent(1, 0)
            .or_else(|| collector.recent(99, 99))
            .unwrap_or_default()
    }

    #[test]
    fn python_shows_files_lines_functions_and_source() {
        let found = traceback(
            "Traceback (most recent call last):\n  File \"train.py\", line 12, in main\n    loss = model(x)\n  \
             File \"/v/lib/python3.11/site-packages/torch/nn/modules/module.py\", line 9, in _call\n    return f(x)\n     ^^^\n",
        );
        let place = found.place().expect("a place");
        assert_eq!((place.file.as_str(), place.line), ("train.py", 12));
        assert_eq!(place.code, "loss = model(x)");
        assert_eq!(found.frames.len(), 2);
        assert_eq!(found.script(), Some("train.py"));
    }

    #[test]
    fn notebooks_show_cells_and_arrows() {
        let new = traceback(
            "Cell In[3], line 5\n      3 a\n----> 5 loss.backward()\nFile ~/venv/lib/python3.10/site-packages/torch/_tensor.py:522, in Tensor.backward(self)\n--> 522 torch.autograd.backward(\n",
        );
        assert_eq!(new.place().map(|frame| frame.file.as_str()), Some("cell 3"));
        assert_eq!(new.frames[0].code, "loss.backward()");
        assert_eq!(new.frames[1].function, "Tensor.backward");
        let old = traceback("<ipython-input-7-abc> in <module>\n      1 x\n----> 2 model.cuda()\n");
        assert_eq!(old.frames[0].line, 2);
        assert_eq!(old.frames[0].code, "model.cuda()");
    }

    #[test]
    fn rich_shows_boxes() {
        let found = traceback(
            "│ /home/me/train.py:31 in step                         │\n│   30 │   x = y                     │\n│ ❱ 31 │   probs = scores.softmax(dim=-1)         │\n",
        );
        let frame = &found.frames[0];
        assert_eq!((frame.file.as_str(), frame.line), ("/home/me/train.py", 31));
        assert_eq!(frame.code, "probs = scores.softmax(dim=-1)");
    }

    #[test]
    fn deep_recursion_is_bounded() {
        let text = "  File \"a.py\", line 1, in f\n    f()\n".repeat(5000);
        let found = traceback(&text);
        assert_eq!(found.frames.len(), MOST_FRAMES);
        assert!(found.left_out > 4900, "{}", found.left_out);
    }
}
