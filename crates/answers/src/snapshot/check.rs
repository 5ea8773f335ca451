//! Whether a snapshot stays within limits.

use ghostgpu_ledger::CardLedger;
use ghostgpu_text::human;

/// Limits that no device may exceed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    pub max_reserved_bytes: Option<u64>,
    pub max_live_bytes: Option<u64>,
    pub max_fragmentation_percent: Option<f64>,
    /// No request may have failed.
    pub no_oom: bool,
}

/// Every limit, checked for every device.
#[derive(Debug)]
pub struct Checks(Vec<Checked>);

/// One limit, checked for one device.
#[derive(Debug)]
struct Checked {
    is_kept: bool,
    sentence: String,
}

impl Checks {
    pub fn of(ledgers: &[CardLedger], limits: &Limits) -> Self {
        let checked = ledgers.iter().flat_map(|ledger| check(ledger, limits));
        Self(checked.collect())
    }

    pub fn all_kept(&self) -> bool {
        self.0.iter().all(|each| each.is_kept)
    }

    pub fn text(&self, warnings: &[String]) -> String {
        let mut text = String::new();
        for each in &self.0 {
            let word = if each.is_kept { "ok    " } else { "failed" };
            text.push_str(&format!("{word}  {}\n", each.sentence));
        }
        for warning in warnings {
            text.push_str(&format!("note    {warning}\n"));
        }
        text
    }
}

fn check(ledger: &CardLedger, limits: &Limits) -> Vec<Checked> {
    let device = ledger.card().index;
    let mut checked = Vec::new();
    let mut size = |what: &str, found: u64, limit: Option<u64>| {
        if let Some(limit) = limit {
            checked.push(Checked {
                is_kept: found <= limit,
                sentence: format!(
                    "device {device}: {what} {}, the limit is {}",
                    human(found),
                    human(limit)
                ),
            });
        }
    };
    let most_reserved = ledger.peak_reserved();
    size(
        "reserved at most",
        most_reserved.reserved_bytes,
        limits.max_reserved_bytes,
    );
    size(
        "live at most",
        ledger.peak().requested_bytes,
        limits.max_live_bytes,
    );
    if let Some(limit) = limits.max_fragmentation_percent {
        let reserved = most_reserved.reserved_bytes;
        let unused = reserved.saturating_sub(ledger.peak().allocated_bytes);
        let found = match reserved {
            0 => 0.0,
            reserved => unused as f64 / reserved as f64 * 100.0,
        };
        checked.push(Checked {
            is_kept: found <= limit,
            sentence: format!(
                "device {device}: of the most that was reserved, {found:.1} % ({}) were never in use at \
                 one time, the limit is {limit} %",
                human(unused)
            ),
        });
    }
    if limits.no_oom {
        let failed = ledger.card().failures.len();
        checked.push(Checked {
            is_kept: failed == 0,
            sentence: format!("device {device}: {failed} requests failed, the limit is 0"),
        });
    }
    checked
}
