//! The processes below this one, read from `/proc`.

use std::collections::BTreeMap;

/// Ids of all living descendants of this process, zombies left out.
pub fn living_descendants() -> Vec<i32> {
    let own_pid = std::process::id() as i32;
    let mut children_of: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    for entry in entries.flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<i32>().ok())
        else {
            continue;
        };
        // A process may end between the listing and the reading.
        let Ok(stat) = std::fs::read(entry.path().join("stat")) else {
            continue;
        };
        if let Some(parent) = living_parent(&String::from_utf8_lossy(&stat)) {
            children_of.entry(parent).or_default().push(pid);
        }
    }
    descendants_of(own_pid, &children_of)
}

/// The parent's id in a `/proc/<pid>/stat` line, if the process is not a zombie.
fn living_parent(stat: &str) -> Option<i32> {
    // The program's name is in parentheses and may itself contain parentheses and spaces.
    let (_, after_name) = stat.rsplit_once(") ")?;
    let mut fields = after_name.split(' ');
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(parent)
}

fn descendants_of(root: i32, children_of: &BTreeMap<i32, Vec<i32>>) -> Vec<i32> {
    let mut found = Vec::new();
    let mut open = vec![root];
    while let Some(parent) = open.pop() {
        for &child in children_of.get(&parent).into_iter().flatten() {
            found.push(child);
            open.push(child);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_with_brackets_does_not_hide_its_parent() {
        assert_eq!(living_parent("12 (a) (b c) S 7 12 12 0"), Some(7));
        assert_eq!(living_parent("12 (python) Z 7 12"), None);
        assert_eq!(living_parent("nonsense"), None);
    }

    #[test]
    fn grandchildren_are_descendants() {
        let tree = BTreeMap::from([(1, vec![2, 3]), (3, vec![4]), (9, vec![10])]);
        let mut found = descendants_of(1, &tree);
        found.sort_unstable();
        assert_eq!(found, [2, 3, 4]);
    }
}
