//! The virtual card itself: what it is called, what it can do, how much memory it has.
//!
//! A card's name goes in; its data sheet, its memory accounting, its streams and events come out.
//! The crate is pure: it knows no C, no Python, and no files but its own catalogue.

mod sheet;

pub use sheet::{Capability, DeviceSheet, Overhead, PciAddress};
