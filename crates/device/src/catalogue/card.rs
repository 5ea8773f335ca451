//! One card of the catalogue: its facts, and where each of them comes from.

use ghostgpu_text::human;

use super::derive;
use crate::{Architecture, Capability, DeviceSheet, PciAddress};

/// Where a group of facts comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Provenance {
    /// Software read it on a real card of this name: on ours, or in a published log.
    Measured,
    /// It is in a data sheet, a public table or another project's documentation.
    Published,
    /// Computed by a rule that was fitted to readings from other cards, or estimated without a
    /// source.
    Derived,
}

impl Provenance {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Published => "published",
            Self::Derived => "derived",
        }
    }
}

impl std::fmt::Display for Provenance {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// The kind of a card's memory, as far as it affects how much of it a program gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    Gddr,
    Hbm,
    /// Shared with the processor (Jetson, DGX Spark).
    Unified,
}

/// One card that a script can be rehearsed on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Card {
    /// Our own name for it, unique in the catalogue ("RTX 3060 12GB").
    pub name: &'static str,
    /// The name that CUDA reports; several cards can share one.
    pub driver_name: &'static str,
    /// What people type, the shortest first.
    pub aliases: Vec<&'static str>,
    pub capability: Capability,
    /// Memory on the board, in whole GiB.
    pub board_gib: u32,
    pub memory_kind: MemoryKind,
    /// Error correction is on by default.
    pub ecc_enabled: bool,
    /// What `cudaDeviceProp.totalGlobalMem` says.
    pub total_bytes: u64,
    /// What NVML counts beyond it: the driver's own part.
    pub reserved_bytes: u64,
    pub memory_provenance: Provenance,
    pub multiprocessors: u32,
    pub l2_cache_bytes: u32,
    pub clock_khz: u32,
    pub memory_clock_khz: u32,
    pub memory_bus_bits: u32,
    /// The vendor's PCI device number; 0 when not known.
    pub pci_device_number: u32,
    /// Provenance of capability, multiprocessors, cache, clocks and bus.
    pub properties_provenance: Provenance,
    /// Memory that a bare CUDA context takes.
    pub context_bytes: u64,
    /// Provenance of [`Self::context_bytes`]. What libraries add was read on an H200 and is scaled to other cards
    /// by the rules in `derive.rs`.
    pub overhead_provenance: Provenance,
    /// One remark for whoever chose this card ("`a100` means the 40 GB card; …").
    pub note: Option<&'static str>,
}

/// How far a real card may be off from its sheet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uncertainty {
    /// How much less memory a program may get than the sheet says.
    pub bytes: u64,
    /// What was not measured on such a card, in a few words.
    pub because: String,
}

impl Card {
    /// The limits that the card's compute capability sets.
    pub fn architecture(&self) -> &'static Architecture {
        Architecture::of(self.capability)
            .expect("the catalogue refuses cards whose capability is not in the table")
    }

    /// Everything that a CUDA program can ask about this card.
    ///
    /// The PCI address is that of a single card in a desktop; a caller with several cards gives
    /// each its own bus.
    pub fn sheet(&self) -> DeviceSheet {
        let architecture = self.architecture();
        DeviceSheet {
            name: self.driver_name.to_owned(),
            capability: self.capability,
            total_bytes: self.total_bytes,
            reserved_bytes: self.reserved_bytes,
            multiprocessors: self.multiprocessors,
            max_threads_per_multiprocessor: architecture.max_threads_per_multiprocessor,
            max_blocks_per_multiprocessor: architecture.max_blocks_per_multiprocessor,
            shared_memory_per_block_optin_bytes: architecture.shared_memory_per_block_optin_bytes,
            shared_memory_per_multiprocessor_bytes: architecture
                .shared_memory_per_multiprocessor_bytes,
            reserved_shared_memory_per_block_bytes: architecture
                .reserved_shared_memory_per_block_bytes,
            l2_cache_bytes: self.l2_cache_bytes,
            persisting_l2_cache_max_bytes: architecture
                .persisting_l2_cache_max_bytes(self.l2_cache_bytes),
            clock_khz: self.clock_khz,
            memory_clock_khz: self.memory_clock_khz,
            memory_bus_bits: self.memory_bus_bits,
            is_integrated: self.memory_kind == MemoryKind::Unified,
            ecc_enabled: self.ecc_enabled,
            pci: PciAddress {
                domain: 0,
                bus: 1,
                device: 0,
            },
            pci_device_number: self.pci_device_number,
            overhead: derive::overhead(architecture, self.multiprocessors, self.context_bytes),
        }
    }

    /// The same card with another amount of memory (`--memory 11GiB`).
    pub fn sheet_with_total(&self, total_bytes: u64) -> DeviceSheet {
        DeviceSheet {
            total_bytes,
            ..self.sheet()
        }
    }

    /// How far this card may be off from its sheet; `None` if everything that matters was measured on one.
    pub fn uncertainty(&self) -> Option<Uncertainty> {
        let memory = match self.memory_provenance {
            Provenance::Derived => {
                Some((derive::uncertain_memory_bytes(self.total_bytes), "memory"))
            }
            Provenance::Measured | Provenance::Published => None,
        };
        in_words(memory.into_iter().chain(self.uncertain_overhead()))
    }

    /// The same if the amount of memory is given (`--memory 11GiB`), so that only the overhead is uncertain.
    pub fn uncertainty_of_overhead(&self) -> Option<Uncertainty> {
        in_words(self.uncertain_overhead())
    }

    fn uncertain_overhead(&self) -> impl Iterator<Item = (u64, &'static str)> {
        let bytes = self.context_bytes;
        let context = match self.overhead_provenance {
            Provenance::Measured => None,
            Provenance::Published => Some(derive::uncertain_published_context_bytes(bytes)),
            Provenance::Derived => Some(derive::uncertain_derived_context_bytes(bytes)),
        };
        let context = context.map(|bytes| (bytes, "CUDA context"));
        // If the context was measured on the card, so were the libraries.
        let libraries = context.map(|_| (derive::uncertain_library_bytes(), "libraries"));
        context.into_iter().chain(libraries)
    }

    /// Sentences about what an answer for this card assumes because it was not measured on a real one.
    ///
    /// They have no full stops, because they go into a list.
    pub fn assumptions(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        if self.memory_provenance == Provenance::Derived {
            sentences.push(format!(
                "a program gets {}, derived from the {} GiB on the board of the {}",
                human(self.total_bytes),
                self.board_gib,
                self.name
            ));
        }
        if self.properties_provenance == Provenance::Derived {
            sentences.push(format!(
                "the properties of the {} (multiprocessors, caches, clocks) are estimates",
                self.name
            ));
        }
        if self.overhead_provenance == Provenance::Derived {
            sentences.push(format!(
                "the CUDA context takes {}, an estimate: it is derived from the number of multiprocessors of the {}",
                human(self.context_bytes),
                self.name
            ));
        }
        sentences
    }
}

fn in_words(parts: impl Iterator<Item = (u64, &'static str)>) -> Option<Uncertainty> {
    let (bytes, names): (Vec<u64>, Vec<&str>) = parts.unzip();
    let because = match names.as_slice() {
        [] => return None,
        [only] => format!("its {only} was not measured on such a card"),
        [first @ .., last] => format!(
            "its {} and {last} were not measured on such a card",
            first.join(", ")
        ),
    };
    Some(Uncertainty {
        bytes: bytes.iter().sum(),
        because,
    })
}
