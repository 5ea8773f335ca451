//! The virtual card: its data sheet, its memory accounting, and when work on its streams finishes.
//!
//! The crate is pure: it knows no C, no Python, and no files but its own catalogue.
//!
//! [`Catalogue`] holds the cards; [`Catalogue::find`] takes what a user typed and gives a [`Card`],
//! which knows where its facts come from; [`Card::sheet`] makes the [`DeviceSheet`] that everything
//! else works with.
//!
//! ```
//! use ghostgpu_device::{Catalogue, Provenance, Uncertainty};
//!
//! let card = Catalogue::builtin().find("RTX 3060")?;
//! assert_eq!(card.name, "RTX 3060 12GB");
//! assert_eq!(card.memory_provenance, Provenance::Measured);
//! assert_eq!(card.sheet().total_bytes, 11_906 << 20);
//! # Ok::<(), ghostgpu_device::LookupError>(())
//! ```
//!
//! # How to add a card
//!
//! 1. Add a line to `src/catalogue/cards.txt`, in the section of its generation and beside its
//!    siblings; the comment at the top of that file explains every field. The driver name must be
//!    exactly what `torch.cuda.get_device_name()` prints on the card.
//! 2. If you have the card, run `python -c "import torch; print(torch.cuda.mem_get_info()[1])"` on
//!    Linux and give the answer as `total` in bytes (`12484345856 B`). If you do not, look for a
//!    reading that somebody published; failing that write `-`, and the memory is derived from the
//!    size of the board. Never enter the number on the box as a reading: drivers keep 1 to 9 % of it.
//!    When there are several readings, take the lowest.
//! 3. If you can, measure what a context takes — total minus free memory right after
//!    `torch.cuda.init(); torch.cuda.mem_get_info()`, with no other program on the card — and add
//!    an indented `context: 237 MiB measured`.
//! 4. List as aliases what people type, shortest first. Where one name could mean two cards, it
//!    means the smaller one unless that is rare, and a `note:` tells the user about the other.
//! 5. A new compute capability needs a row in `architecture.rs`, from the CUDA programming guide.
//! 6. `cargo test -p ghostgpu-device` checks that names are unique, that numbers are sane and that
//!    your reading does not lie below what the rule in `derive.rs` would have said; if it does,
//!    the rule is too optimistic for other cards too: change it.

mod aged_holes;
mod architecture;
mod catalogue;
mod communicators;
mod driver_addresses;
mod faults;
mod holes;
mod lookup;
mod memory;
mod pool;
mod sheet;
mod timeline;
mod visible_devices;

pub use architecture::{Architecture, REGISTERS_PER_MULTIPROCESSOR, SHARED_MEMORY_PER_BLOCK_BYTES};
pub use catalogue::{Card, Catalogue, MemoryKind, Provenance, Uncertainty};
pub use communicators::communicator_bytes;
pub use driver_addresses::{DriverAddresses, HostLayout};
pub use faults::AllocationFaults;
pub use lookup::LookupError;
pub use memory::{Budget, CardMemory, MemoryError, PAGE_BYTES, PhysicalId};
pub use pool::{PoolStatistics, StreamId, StreamOrderedPool};
pub use sheet::{Capability, DeviceSheet, Overhead, PciAddress};
pub use timeline::{Order, StreamKey, Time, Timeline};
pub use visible_devices::{format_uuid, uuid_of, visible_devices};
