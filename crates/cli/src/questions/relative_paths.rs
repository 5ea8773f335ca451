//! Files in a recording, as the user knows them: from the folder in which the script was started.
//!
//! A page or a recording is passed on to others, for whom the folders above that are noise.

use std::path::Path;

use ghostgpu_recording::{Answer, Names};

/// Removes the folder from every file below it, in the stacks of allocations and of the answer.
pub fn shorten(names: &mut Names, answer: &mut Answer, folder: &Path) {
    let allocations = names.frames.iter_mut().map(|frame| &mut frame.file);
    let ooms = answer.oom.iter_mut().chain(&mut answer.recovered_ooms);
    let stacks = ooms.map(|oom| &mut oom.stack);
    let stacks = stacks.chain(answer.refused.iter_mut().map(|call| &mut call.stack));
    let answers = stacks.flatten().map(|frame| &mut frame.file);
    for file in allocations.chain(answers) {
        if let Some(below) = below(file, folder) {
            *file = below;
        }
    }
}

/// The same in a sentence.
pub fn in_sentence(sentence: &str, folder: &Path) -> String {
    match (folder.parent(), folder.to_str()) {
        (Some(_), Some(name)) => sentence.replace(&format!("{name}/"), ""),
        // Everything is below the root.
        _ => sentence.to_owned(),
    }
}

fn below(file: &str, folder: &Path) -> Option<String> {
    // Everything is below the root.
    folder.parent()?;
    let rest = Path::new(file).strip_prefix(folder).ok()?;
    rest.to_str()
        .filter(|rest| !rest.is_empty())
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ghostgpu_session::{OomReport, RefusedCall, StackFrame};

    fn stack(file: &str) -> Vec<StackFrame> {
        vec![StackFrame {
            file: file.to_owned(),
            line: 3,
            function: "main".to_owned(),
            source: None,
            is_user_code: true,
        }]
    }

    #[test]
    fn a_sentence_names_files_as_the_user_does() {
        let folder = Path::new("/home/me/job");
        for (sentence, expected) in [
            ("kept by /home/me/job/a/train.py:3", "kept by a/train.py:3"),
            ("kept by /home/me/train.py:3", "kept by /home/me/train.py:3"),
        ] {
            assert_eq!(in_sentence(sentence, folder), expected);
            assert_eq!(in_sentence(sentence, Path::new("/")), sentence);
        }
    }

    #[test]
    fn files_below_the_folder_lose_it_wherever_they_are() {
        let oom = |file| OomReport {
            device: 0,
            requested_bytes: 1,
            message: String::new(),
            step: 0,
            stage: "forward".to_owned(),
            stack: stack(file),
            is_fatal: true,
            moment: None,
        };
        let mut answer = Answer {
            oom: Some(oom("/home/me/job/train.py")),
            recovered_ooms: vec![oom("/home/me/job/src/model.py")],
            refused: vec![RefusedCall {
                function: "cudaA".to_owned(),
                stack: stack("/home/me/jobs/train.py"),
            }],
            notes: vec!["/home/me/job/train.py".to_owned()],
            ..Answer::default()
        };
        let folder = Path::new("/home/me/job");
        shorten(&mut Names::default(), &mut answer, folder);
        let file = |oom: &OomReport| oom.stack[0].file.clone();
        assert_eq!(answer.oom.as_ref().map(file), Some("train.py".to_owned()));
        assert_eq!(file(&answer.recovered_ooms[0]), "src/model.py");
        assert_eq!(answer.refused[0].stack[0].file, "/home/me/jobs/train.py");
        assert_eq!(answer.notes[0], "/home/me/job/train.py");
    }

    #[test]
    fn nothing_is_taken_off_at_the_root() {
        assert_eq!(below("/train.py", Path::new("/")), None);
        assert_eq!(
            below("/a/train.py", Path::new("/a")),
            Some("train.py".to_owned())
        );
    }
}
