//! Reads `cards.txt`, whose comment at the top explains the fields.

use thiserror::Error;

use super::card::{Card, MemoryKind, Provenance};
use super::derive::{self, MIB};
use crate::{Architecture, Capability};

const FIELDS: usize = 14;

/// A line of the card table that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line} of the card table: {reason}")]
pub(super) struct ParseError {
    pub line: usize,
    pub reason: String,
}

/// All cards of the table, in its order.
pub(super) fn parse(table: &'static str) -> Result<Vec<Card>, ParseError> {
    let mut cards: Vec<Card> = Vec::new();
    for (index, line) in table.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let parsed = if line.starts_with(char::is_whitespace) {
            match cards.last_mut() {
                Some(card) => parse_remark(line.trim(), card),
                None => Err("a remark without a card above it".to_owned()),
            }
        } else {
            parse_card(line).map(|card| cards.push(card))
        };
        parsed.map_err(|reason| ParseError {
            line: index + 1,
            reason,
        })?;
    }
    Ok(cards)
}

fn parse_card(line: &'static str) -> Result<Card, String> {
    let fields: Vec<&'static str> = line.split('|').map(str::trim).collect();
    let fields: [&'static str; FIELDS] = fields
        .try_into()
        .map_err(|fields: Vec<_>| format!("{} fields instead of {FIELDS}", fields.len()))?;
    let [
        name,
        capability,
        board_gib,
        memory,
        total,
        multiprocessors,
        l2_kib,
        clock_mhz,
        memory_clock_mhz,
        memory_bus_bits,
        pci,
        properties,
        driver_name,
        aliases,
    ] = fields;

    let capability = parse_capability(capability)?;
    let Some(architecture) = Architecture::of(capability) else {
        return Err(format!(
            "compute capability {capability} is not in the architecture table"
        ));
    };
    let board_gib = parse_number(board_gib)?;
    let (memory_kind, ecc_enabled) = parse_memory(memory)?;
    let (total_bytes, memory_provenance) = match total {
        "-" => (
            derive::total_bytes(capability, board_gib, memory_kind, ecc_enabled),
            Provenance::Derived,
        ),
        reading => (parse_bytes(reading)?, Provenance::Measured),
    };
    let multiprocessors = parse_number(multiprocessors)?;
    Ok(Card {
        name,
        driver_name,
        aliases: aliases.split(',').map(str::trim).collect(),
        capability,
        board_gib,
        memory_kind,
        ecc_enabled,
        total_bytes,
        reserved_bytes: derive::usable_bytes(capability, board_gib, memory_kind, ecc_enabled)
            .saturating_sub(total_bytes),
        memory_provenance,
        multiprocessors,
        l2_cache_bytes: parse_number(l2_kib)? * 1024,
        clock_khz: parse_number(clock_mhz)? * 1000,
        memory_clock_khz: parse_number(memory_clock_mhz)? * 1000,
        memory_bus_bits: parse_number(memory_bus_bits)?,
        pci_device_number: parse_pci(pci)?,
        properties_provenance: parse_provenance(properties)?,
        context_bytes: derive::context_bytes(architecture, multiprocessors),
        overhead_provenance: Provenance::Derived,
        note: None,
    })
}

/// An indented line: something about the card above that few cards have.
fn parse_remark(remark: &'static str, card: &mut Card) -> Result<(), String> {
    match remark.split_once(": ") {
        Some(("note", text)) => card.note = Some(text),
        Some(("context", text)) => {
            let (size, provenance) = text
                .rsplit_once(' ')
                .ok_or_else(|| format!("`{text}` is not a size and its provenance"))?;
            card.context_bytes = parse_bytes(size)?;
            card.overhead_provenance = parse_provenance(provenance)?;
        }
        Some(("nvidia-smi", text)) => {
            card.reserved_bytes = parse_bytes(text)?
                .checked_sub(card.total_bytes)
                .ok_or_else(|| format!("`{text}` is less than what CUDA reports"))?;
        }
        _ => return Err(format!("`{remark}` is not a note, context or nvidia-smi")),
    }
    Ok(())
}

fn parse_number(text: &str) -> Result<u32, String> {
    text.parse()
        .map_err(|_| format!("`{text}` is not a whole number"))
}

fn parse_capability(text: &str) -> Result<Capability, String> {
    let (major, minor) = text
        .split_once('.')
        .ok_or_else(|| format!("`{text}` is not a compute capability"))?;
    Ok(Capability::new(parse_number(major)?, parse_number(minor)?))
}

fn parse_memory(text: &str) -> Result<(MemoryKind, bool), String> {
    let (kind, ecc_enabled) = match text.strip_suffix("+ecc") {
        Some(kind) => (kind, true),
        None => (text, false),
    };
    let kind = match kind {
        "gddr" => MemoryKind::Gddr,
        "hbm" => MemoryKind::Hbm,
        "unified" => MemoryKind::Unified,
        _ => return Err(format!("`{text}` is not a kind of memory")),
    };
    Ok((kind, ecc_enabled))
}

/// `11906 MiB` or `150109880320 B`.
fn parse_bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a size in MiB or B");
    let (number, unit) = text.split_once(' ').ok_or_else(wrong)?;
    let number: u64 = number.parse().map_err(|_| wrong())?;
    match unit {
        "MiB" => Ok(number * MIB),
        "B" => Ok(number),
        _ => Err(wrong()),
    }
}

fn parse_pci(text: &str) -> Result<u32, String> {
    match text {
        "-" => Ok(0),
        digits => u32::from_str_radix(digits, 16)
            .map_err(|_| format!("`{digits}` is not a hexadecimal number")),
    }
}

fn parse_provenance(text: &str) -> Result<Provenance, String> {
    [
        Provenance::Measured,
        Provenance::Published,
        Provenance::Derived,
    ]
    .into_iter()
    .find(|provenance| provenance.as_str() == text)
    .ok_or_else(|| format!("`{text}` is not a provenance"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "X 1 | 8.6 | 12 | gddr | 11906 MiB | 28 | 2304 | 1777 | 7501 | 192 | 2503 \
                        | measured | NVIDIA X 1 | x1, x-one";

    fn reason(table: &'static str) -> String {
        parse(table).expect_err("must be refused").to_string()
    }

    #[test]
    fn a_line_becomes_a_card_with_units_applied() {
        let cards = parse(GOOD).unwrap();
        let [card] = cards.as_slice() else {
            panic!("{cards:?}")
        };
        assert_eq!(card.name, "X 1");
        assert_eq!(card.driver_name, "NVIDIA X 1");
        assert_eq!(card.aliases, ["x1", "x-one"]);
        assert_eq!(card.total_bytes, 11_906 << 20);
        assert_eq!(card.reserved_bytes, (12_288 - 11_906) << 20);
        assert_eq!(card.memory_provenance, Provenance::Measured);
        assert_eq!(card.l2_cache_bytes, 2_359_296);
        assert_eq!(card.clock_khz, 1_777_000);
        assert_eq!(card.pci_device_number, 0x2503);
        assert_eq!(card.overhead_provenance, Provenance::Derived);
    }

    #[test]
    fn indented_lines_belong_to_the_card_above() {
        let table = "X 1 | 8.6 | 12 | gddr | - | 28 | 2304 | 1777 | 7501 | 192 | - | published | \
                     NVIDIA X 1 | x1\n  context: 226 MiB published\n  nvidia-smi: 12287 MiB\n  \
                     note: mind the gap: here\n";
        let cards = parse(table).unwrap();
        assert_eq!(cards[0].context_bytes, 226 << 20);
        assert_eq!(cards[0].overhead_provenance, Provenance::Published);
        assert_eq!(cards[0].note, Some("mind the gap: here"));
        assert_eq!(cards[0].reserved_bytes + cards[0].total_bytes, 12_287 << 20);
        assert_eq!(cards[0].memory_provenance, Provenance::Derived);
    }

    #[test]
    fn a_wrong_line_is_refused_with_its_number_and_the_reason() {
        assert_eq!(
            reason("# comment\n\nX | 8.6 | 12"),
            "line 3 of the card table: 3 fields instead of 14"
        );
        assert_eq!(
            reason("  note: lost"),
            "line 1 of the card table: a remark without a card above it"
        );
        assert_eq!(
            reason("X | 3.7 | 12 | gddr | - | 28 | 1 | 1 | 1 | 192 | - | published | X | x"),
            "line 1 of the card table: compute capability 3.7 is not in the architecture table"
        );
        assert_eq!(
            reason("X | 8.6 | 12 | gddr | 11 GB | 28 | 1 | 1 | 1 | 192 | - | published | X | x"),
            "line 1 of the card table: `11 GB` is not a size in MiB or B"
        );
        assert_eq!(
            reason("X | 8.6 | 12 | ddr | - | 28 | 1 | 1 | 1 | 192 | - | published | X | x"),
            "line 1 of the card table: `ddr` is not a kind of memory"
        );
        assert_eq!(
            reason("X | 8.6 | 12 | gddr | - | 28 | 1 | 1 | 1 | 192 | - | guessed | X | x"),
            "line 1 of the card table: `guessed` is not a provenance"
        );
    }
}
