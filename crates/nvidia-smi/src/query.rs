//! `--query-gpu` and `--query-compute-apps`: fields by name, as comma-separated values.

use super::card::Card;
use super::table::DRIVER_VERSION;

const NOT_AVAILABLE: &str = "[N/A]";

/// How values are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Format {
    is_without_header: bool,
    is_without_units: bool,
}

impl Format {
    pub fn from_words(words: &[String]) -> Result<Self, String> {
        let mut format = Self::default();
        for word in words {
            match word.as_str() {
                "csv" => {}
                "noheader" => format.is_without_header = true,
                "nounits" => format.is_without_units = true,
                other => return Err(format!("Unknown format `{other}`: csv, noheader, nounits")),
            }
        }
        Ok(format)
    }

    fn header(self, fields: &[String]) -> Option<String> {
        let titles: Vec<String> = fields
            .iter()
            .map(|field| match unit_of(field) {
                Some(unit) if !self.is_without_units => format!("{field} [{unit}]"),
                _ => field.clone(),
            })
            .collect();
        (!self.is_without_header).then(|| titles.join(", "))
    }

    fn cell(self, value: Option<Value>) -> String {
        match value {
            None => NOT_AVAILABLE.to_owned(),
            Some(Value::Text(text)) => text,
            Some(Value::Number(number, _)) if self.is_without_units => number.to_string(),
            Some(Value::Number(number, unit)) => format!("{number} {unit}"),
        }
    }

    fn rows<T>(
        self,
        fields: &[String],
        of: &[T],
        value: impl Fn(&T, &str) -> Option<Value>,
    ) -> String {
        let rows = of.iter().map(|each| {
            let cells = fields.iter().map(|field| self.cell(value(each, field)));
            cells.collect::<Vec<String>>().join(", ")
        });
        let lines = self.header(fields).into_iter().chain(rows);
        lines.map(|line| line + "\n").collect()
    }
}

enum Value {
    Text(String),
    Number(u64, &'static str),
}

/// The unit in a field's title.
fn unit_of(field: &str) -> Option<&'static str> {
    let starts = |prefix: &str| field.starts_with(prefix);
    if starts("memory.") || field == "used_memory" || field == "used_gpu_memory" {
        Some("MiB")
    } else if starts("utilization.") || field == "fan.speed" {
        Some("%")
    } else if starts("power.") || field == "enforced.power.limit" {
        Some("W")
    } else if starts("clocks.") {
        Some("MHz")
    } else {
        None
    }
}

fn mib(bytes: u64) -> Option<Value> {
    Some(Value::Number(bytes >> 20, "MiB"))
}

fn text(text: impl Into<String>) -> Option<Value> {
    Some(Value::Text(text.into()))
}

pub fn of_cards(cards: &[Card], fields: &[String], format: Format) -> String {
    let count = cards.len();
    format.rows(fields, cards, |card, field| match field {
        "index" => text(card.index.to_string()),
        "count" => text(count.to_string()),
        "name" | "gpu_name" => text(card.sheet.marked_name()),
        "uuid" | "gpu_uuid" => text(card.uuid()),
        "pci.bus_id" | "gpu_bus_id" => text(card.bus_id()),
        "driver_version" => text(DRIVER_VERSION),
        "compute_cap" => text(card.sheet.capability.to_string()),
        "memory.total" => mib(card.total_bytes()),
        "memory.reserved" => mib(card.sheet.reserved_bytes),
        "memory.used" => mib(card.used_bytes()),
        "memory.free" => mib(card.free_bytes()),
        "clocks.max.sm" | "clocks.max.graphics" | "clocks.max.gr" => {
            Some(Value::Number(u64::from(card.sheet.clock_khz / 1000), "MHz"))
        }
        "clocks.max.memory" | "clocks.max.mem" => Some(Value::Number(
            u64::from(card.sheet.memory_clock_khz / 1000),
            "MHz",
        )),
        // Nothing is computed on a virtual card.
        "utilization.gpu" | "utilization.memory" => Some(Value::Number(0, "%")),
        "ecc.mode.current" if card.sheet.ecc_enabled => text("Enabled"),
        "display_active" | "display_mode" => text("Disabled"),
        "compute_mode" => text("Default"),
        _ => None,
    })
}

pub fn of_processes(cards: &[Card], fields: &[String], format: Format) -> String {
    let processes: Vec<(&Card, u32, u64)> = cards
        .iter()
        .flat_map(|card| {
            let processes = card.processes.iter();
            processes.map(move |&(process, bytes)| (card, process, bytes))
        })
        .collect();
    format.rows(
        fields,
        &processes,
        |(card, process, bytes), field| match field {
            "pid" => text(process.to_string()),
            "process_name" | "name" => text(name_of(*process)),
            "used_memory" | "used_gpu_memory" => mib(*bytes),
            "gpu_name" => text(card.sheet.marked_name()),
            "gpu_uuid" => text(card.uuid()),
            "gpu_bus_id" => text(card.bus_id()),
            _ => None,
        },
    )
}

/// The program that a process runs.
pub fn name_of(process: u32) -> String {
    let program = std::fs::read_link(format!("/proc/{process}/exe"));
    program.map_or_else(
        |_| NOT_AVAILABLE.to_owned(),
        |program| program.display().to_string(),
    )
}
