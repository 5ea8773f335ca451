//! Tables that the user has recorded on a real card, checked before a rehearsal starts.

use std::path::{Path, PathBuf};

use ghostgpu_device::Card;
use ghostgpu_library_sizes::Table;

use crate::failure::Failure;

/// A table that can be used.
#[derive(Debug)]
pub struct Recorded {
    /// Absolute: the script may change its folder.
    pub path: PathBuf,
    card: Option<String>,
}

pub fn read_tables(paths: &[PathBuf]) -> Result<Vec<Recorded>, Failure> {
    paths.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Result<Recorded, Failure> {
    let name = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::new(format!("cannot read the table {name}: {error}")))?;
    let table = Table::read(&text).map_err(|error| {
        Failure::new(format!("{name} is not a table: {error}"))
            .with_hint("`ghostgpu calibrate -o FILE` writes one, on a machine with a card")
    })?;
    Ok(Recorded {
        path: std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
        card: table.header.get("card").cloned(),
    })
}

impl Recorded {
    /// A sentence for the answer when the table is from another card.
    pub fn remark_for(&self, card: &Card) -> Option<String> {
        let recorded_on = self.card.as_deref()?;
        let is_same = recorded_on.starts_with(card.driver_name);
        (!is_same).then(|| {
            format!(
                "the table {} was recorded on another card ({recorded_on})",
                self.path.display()
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ghostgpu_device::Catalogue;

    fn recorded_on(card: &str) -> Recorded {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("table.tsv");
        let text = format!("# ghostgpu table 1\n# card\t{card}\nf\tm=1\tx=1\n");
        std::fs::write(&path, text).expect("file");
        read(&path).expect("a table")
    }

    #[test]
    fn a_table_from_another_card_is_remarked_on() {
        let h200 = Catalogue::builtin().find("h200").expect("known");
        assert_eq!(recorded_on("NVIDIA H200").remark_for(h200), None);
        let remark = recorded_on("Tesla T4").remark_for(h200).expect("a remark");
        assert!(
            remark.ends_with("was recorded on another card (Tesla T4)"),
            "{remark}"
        );
    }

    #[test]
    fn a_file_that_is_no_table_is_named() {
        let failure = read(Path::new("/dev/null")).expect_err("empty");
        assert!(failure.to_string().starts_with("/dev/null is not a table"));
        let failure = read(Path::new("/no/such/file")).expect_err("missing");
        assert!(failure.to_string().starts_with("cannot read the table"));
    }
}
