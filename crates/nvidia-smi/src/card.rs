//! The virtual cards of the run that this process is part of.

use std::path::Path;

use ghostgpu_device::{DeviceSheet, format_uuid, uuid_of};
use ghostgpu_session::card_usage::{ProcessUse, read_process_use};
use ghostgpu_session::{SESSION_VARIABLE, Session};

/// One card, and the processes on it.
#[derive(Clone, Debug)]
pub struct Card {
    pub index: usize,
    pub sheet: DeviceSheet,
    /// Living processes: process id and bytes.
    pub processes: Vec<(u32, u64)>,
}

impl Card {
    /// `None` outside a rehearsal.
    pub fn of_this_run() -> Option<Vec<Self>> {
        let session = std::env::var_os(SESSION_VARIABLE)?;
        let session = Session::load(Path::new(&session)).ok()?;
        let mut uses = read_process_use(&session.run_dir).unwrap_or_default();
        uses.retain(|each| Path::new(&format!("/proc/{}", each.process)).exists());
        Some(Self::all(&session.devices, &uses))
    }

    fn all(sheets: &[DeviceSheet], uses: &[ProcessUse]) -> Vec<Self> {
        let cards = sheets.iter().enumerate().map(|(index, sheet)| Self {
            index,
            sheet: sheet.clone(),
            processes: uses
                .iter()
                .filter(|each| each.device == index && each.used_bytes > 0)
                .map(|each| (each.process, each.used_bytes))
                .collect(),
        });
        cards.collect()
    }

    pub fn uuid(&self) -> String {
        format_uuid(&uuid_of(self.index))
    }

    pub fn bus_id(&self) -> String {
        let pci = self.sheet.pci;
        format!("{:08X}:{:02X}:{:02X}.0", pci.domain, pci.bus, pci.device)
    }

    /// NVML's total, which includes what the driver keeps for itself.
    pub fn total_bytes(&self) -> u64 {
        self.sheet.total_bytes + self.sheet.reserved_bytes
    }

    pub fn used_bytes(&self) -> u64 {
        let used: u64 = self.processes.iter().map(|(_, bytes)| bytes).sum();
        used.min(self.sheet.total_bytes)
    }

    pub fn free_bytes(&self) -> u64 {
        self.sheet.total_bytes - self.used_bytes()
    }

    /// Whether this value of `-i` selects this card.
    pub fn is_called(&self, name: &str) -> bool {
        name == self.index.to_string() || name == self.uuid() || name == self.bus_id()
    }

    /// A line of `nvidia-smi -L`.
    pub fn in_list(&self) -> String {
        let name = self.sheet.marked_name();
        format!("GPU {}: {name} (UUID: {})\n", self.index, self.uuid())
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use ghostgpu_device::Catalogue;

    /// Two cards; a process is on the second.
    pub fn two_cards() -> Vec<Card> {
        let sheet = Catalogue::builtin().find("3060").expect("a card").sheet();
        let on_the_second = ProcessUse {
            process: 4321,
            device: 1,
            used_bytes: 300 << 20,
            peak_bytes: 400 << 20,
            at_card_peak_bytes: 400 << 20,
        };
        Card::all(&[sheet.clone(), sheet], &[on_the_second])
    }

    #[test]
    fn the_parts_of_a_cards_memory_add_up_to_its_total() {
        for card in two_cards() {
            let parts = card.used_bytes() + card.free_bytes() + card.sheet.reserved_bytes;
            assert_eq!(parts, card.total_bytes());
        }
    }
}
