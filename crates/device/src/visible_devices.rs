//! `CUDA_VISIBLE_DEVICES`, read as the driver reads it, and the UUIDs by which it may name cards.

/// A virtual card's UUID, recognisable as ours: the bytes spell "ghostgpu".
pub fn uuid_of(ordinal: usize) -> [u8; 16] {
    let mut uuid = *b"ghostgpu\0\0\0\0\0\0\0\0";
    uuid[8..].copy_from_slice(&(ordinal as u64 + 1).to_be_bytes());
    uuid
}

/// Which cards the process sees, in its own order.
///
/// The list ends at the first entry that names no card or names one twice. An entry is a number,
/// or `GPU-` and the first digits of a card's UUID.
pub fn visible_devices(variable: Option<&str>, uuids: &[[u8; 16]]) -> Vec<usize> {
    let Some(variable) = variable else {
        return (0..uuids.len()).collect();
    };
    let mut chosen = Vec::new();
    for entry in variable.split(',') {
        match resolve(entry.trim(), uuids) {
            Some(index) if !chosen.contains(&index) => chosen.push(index),
            _ => break,
        }
    }
    chosen
}

fn resolve(entry: &str, uuids: &[[u8; 16]]) -> Option<usize> {
    if let Some(prefix) = entry.strip_prefix("GPU-") {
        let wanted = prefix.replace('-', "").to_ascii_lowercase();
        let mut matching = uuids
            .iter()
            .enumerate()
            .filter(|(_, uuid)| !wanted.is_empty() && hex(uuid).starts_with(&wanted));
        let (index, _) = matching.next()?;
        return matching.next().is_none().then_some(index);
    }
    let index: usize = entry.parse().ok()?;
    (index < uuids.len()).then_some(index)
}

fn hex(uuid: &[u8; 16]) -> String {
    uuid.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The form in which NVML and `CUDA_VISIBLE_DEVICES` write a UUID.
pub fn format_uuid(uuid: &[u8; 16]) -> String {
    let hex = hex(uuid);
    let (a, b, c, d, e) = (
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    );
    format!("GPU-{a}-{b}-{c}-{d}-{e}")
}

#[cfg(test)]
mod tests {
    use super::{format_uuid, visible_devices};

    const UUIDS: [[u8; 16]; 3] = [[0x11; 16], [0x22; 16], [0x23; 16]];

    #[test]
    fn the_variable_is_read_as_the_driver_reads_it() {
        let cases: [(Option<&str>, &[usize]); 11] = [
            (None, &[0, 1, 2]),
            (Some(""), &[]),
            (Some("-1"), &[]),
            (Some("2,0"), &[2, 0]),
            (Some("0, 1"), &[0, 1]),
            (Some("0,7,1"), &[0]),
            (Some("1,1"), &[1]),
            (Some("GPU-11"), &[0]),
            (Some("GPU-2"), &[]),
            (Some("GPU-23232323-2323"), &[2]),
            (Some("NoDevFiles"), &[]),
        ];
        for (variable, expected) in cases {
            assert_eq!(visible_devices(variable, &UUIDS), expected, "{variable:?}");
        }
    }

    #[test]
    fn a_uuid_is_written_in_five_groups() {
        let written = format_uuid(&[0xab; 16]);
        assert_eq!(written, "GPU-abababab-abab-abab-abab-abababababab");
        assert_eq!(visible_devices(Some(&written), &[[0xab; 16]]), [0]);
    }
}
