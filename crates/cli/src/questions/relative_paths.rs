//! Files in a recording, as the user knows them: from the folder in which the script was started.
//!
//! A page or a recording is passed on to others, for whom the folders above that are noise.

use std::path::Path;

use ghostgpu_recording::Names;
use serde_json::Value;

/// Takes the folder off every file below it: in stacks of allocations and in those of the answer.
pub fn shorten(names: &mut Names, answer: &mut Value, folder: &Path) {
    for frame in &mut names.frames {
        if let Some(below) = below(&frame.file, folder) {
            frame.file = below;
        }
    }
    shorten_files(answer, folder);
}

/// Wherever a frame stands in the answer.
fn shorten_files(value: &mut Value, folder: &Path) {
    match value {
        Value::Array(values) => values
            .iter_mut()
            .for_each(|each| shorten_files(each, folder)),
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                match field {
                    Value::String(file) if name == "file" => {
                        if let Some(below) = below(file, folder) {
                            *file = below;
                        }
                    }
                    field => shorten_files(field, folder),
                }
            }
        }
        _ => {}
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
    use serde_json::json;

    #[test]
    fn files_below_the_folder_lose_it_wherever_they_stand() {
        let mut answer = json!({
            "oom": {"stack": [{"file": "/home/me/job/train.py", "line": 3}]},
            "refused": [{"stack": [{"file": "/home/me/jobs/train.py"}]}],
            "notes": ["/home/me/job/train.py"],
        });
        shorten(
            &mut Names::default(),
            &mut answer,
            Path::new("/home/me/job"),
        );
        assert_eq!(answer["oom"]["stack"][0]["file"], "train.py");
        assert_eq!(
            answer["refused"][0]["stack"][0]["file"],
            "/home/me/jobs/train.py"
        );
        assert_eq!(answer["notes"][0], "/home/me/job/train.py");
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
