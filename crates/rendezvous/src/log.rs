//! A log that one process appends to and others read while it grows.
//!
//! A record is two lengths, a head as JSON, and bytes. A reader may see half of the last one, and takes a record only
//! when it is there as a whole.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

const LENGTHS: usize = 8;

/// The writing end.
#[derive(Debug)]
pub struct Writer {
    file: File,
}

impl Writer {
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { file })
    }

    pub fn append(&mut self, head: &impl Serialize, bytes: &[u8]) -> io::Result<()> {
        let head = serde_json::to_vec(head)?;
        let too_long = |_| io::Error::from(io::ErrorKind::InvalidInput);
        let mut record = Vec::with_capacity(LENGTHS + head.len() + bytes.len());
        record.extend(u32::try_from(head.len()).map_err(too_long)?.to_le_bytes());
        record.extend(u32::try_from(bytes.len()).map_err(too_long)?.to_le_bytes());
        record.extend(head);
        record.extend(bytes);
        self.file.write_all(&record)
    }
}

/// Bytes of a record, which are read when somebody wants them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes {
    at: u64,
    pub length: usize,
}

/// The reading end.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    file: Option<File>,
    at: u64,
}

impl Reader {
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            file: None,
            at: 0,
        }
    }

    /// The records that have come since the last call.
    pub fn read<T: DeserializeOwned>(&mut self) -> io::Result<Vec<(T, Bytes)>> {
        if self.file.is_none() {
            match File::open(&self.path) {
                Ok(file) => self.file = Some(file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
                Err(error) => return Err(error),
            }
        }
        let Some(file) = &self.file else {
            return Ok(Vec::new());
        };
        let mut records = Vec::new();
        let end = file.metadata()?.len();
        while self.at + LENGTHS as u64 <= end {
            let mut lengths = [0; LENGTHS];
            file.read_exact_at(&mut lengths, self.at)?;
            let [a, b, c, d, e, f, g, h] = lengths;
            let head_length = u32::from_le_bytes([a, b, c, d]) as usize;
            let length = u32::from_le_bytes([e, f, g, h]) as usize;
            let head_at = self.at + LENGTHS as u64;
            let at = head_at + head_length as u64;
            if at + length as u64 > end {
                break;
            }
            let mut head = vec![0; head_length];
            file.read_exact_at(&mut head, head_at)?;
            records.push((serde_json::from_slice(&head)?, Bytes { at, length }));
            self.at = at + length as u64;
        }
        Ok(records)
    }

    pub fn fetch(&self, bytes: Bytes) -> io::Result<Vec<u8>> {
        let file = self.file.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let mut content = vec![0; bytes.length];
        file.read_exact_at(&mut content, bytes.at)?;
        Ok(content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_come_and_never_in_halves() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("log");
        let mut reader = Reader::new(path.clone());
        assert_eq!(reader.read::<u32>().expect("no file yet"), []);
        let mut writer = Writer::create(&path).expect("file");
        writer.append(&1u32, b"").expect("written");
        writer.append(&2u32, b"abc").expect("written");
        let records = reader.read::<u32>().expect("read");
        assert_eq!(
            records.iter().map(|record| record.0).collect::<Vec<_>>(),
            [1, 2]
        );
        assert_eq!(reader.fetch(records[1].1).expect("bytes"), b"abc");
        writer.append(&3u32, b"abcdef").expect("written");
        let whole = std::fs::read(&path).expect("file");
        for cut in 1..16 {
            std::fs::write(&path, &whole[..whole.len() - cut]).expect("cut");
            let mut late = Reader::new(path.clone());
            assert_eq!(late.read::<u32>().expect("read").len(), 2, "{cut}");
        }
    }
}
