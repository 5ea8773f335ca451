//! Fused attention kernels: their sizes are in the structure that the kernel gets.
//!
//! The number of addresses before the sizes differs between releases, so the sizes are recognised by
//! their pattern. In both families, heads and samples are the last two dimensions of the grid.

use ghostgpu_cost::{Operation, Pass, Precision};

/// The structures of both families have their sizes within this many bytes.
pub const MOST_BYTES: usize = 640;

/// The operation of an attention kernel; `None` if it only prepares or finishes the work of another.
pub fn operation(name: &str, signature: &str, words: &[u64], heads: u64) -> Option<Operation> {
    let numbers: Vec<u32> = words
        .iter()
        .flat_map(|word| [*word as u32, (word >> 32) as u32])
        .collect();
    let (pass, sizes) = match name {
        _ if name.starts_with("fmha_cutlassF") => (Pass::Forward, memory_efficient(&numbers)?),
        _ if name.starts_with("fmha_cutlassB") => (Pass::Backward, memory_efficient(&numbers)?),
        "flash_fwd_kernel" | "flash_fwd_splitkv_kernel" => {
            (Pass::Forward, flash(signature, &numbers)?)
        }
        "flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel" => {
            (Pass::Backward, flash(signature, &numbers)?)
        }
        _ => return None,
    };
    Some(Operation::Attention {
        pass,
        heads,
        queries: sizes.queries.into(),
        keys: sizes.keys.into(),
        width: sizes.width.into(),
        is_causal: sizes.is_causal,
        precision: precision(signature),
    })
}

#[derive(Debug, PartialEq, Eq)]
struct Sizes {
    queries: u32,
    keys: u32,
    width: u32,
    is_causal: bool,
}

const LONGEST_SEQUENCE: u32 = 1 << 24;

/// PyTorch's memory-efficient attention (`mem_eff_attention/kernel_forward.h`, `kernel_backward.h`): the
/// scale, the head widths of queries and values, the numbers of queries and keys; then a field that the
/// kernel fills itself (forward) or the number of heads (backward); the kind of mask.
fn memory_efficient(numbers: &[u32]) -> Option<Sizes> {
    let found = numbers.windows(7).find(|window| {
        (1e-3..=1.0).contains(&f32::from_bits(window[0]))
            && (1..=1024).contains(&window[1])
            && (1..=1024).contains(&window[2])
            && (1..=LONGEST_SEQUENCE).contains(&window[3])
            && (1..=LONGEST_SEQUENCE).contains(&window[4])
    })?;
    Some(Sizes {
        queries: found[3],
        keys: found[4],
        width: found[1],
        is_causal: found[6] & 0xff != 0,
    })
}

/// FlashAttention 2 (`flash_attn/flash.h`): samples, queries, keys, new keys, the width of a head; queries,
/// keys and width once more, rounded up.
fn flash(signature: &str, numbers: &[u32]) -> Option<Sizes> {
    let is_rounded = |size: u32, rounded: u32, unit: u32| {
        size > 0 && rounded >= size && rounded.is_multiple_of(unit) && rounded - size < unit
    };
    let found = numbers.windows(8).find(|window| {
        window[0] > 0
            && is_rounded(window[1], window[5], 128)
            && is_rounded(window[2], window[6], 128)
            && is_rounded(window[4], window[7], 32)
            && window[7] <= 512
            && window[2] <= LONGEST_SEQUENCE
    })?;
    Some(Sizes {
        queries: found[1],
        keys: found[2],
        width: found[4],
        is_causal: is_causal_flash(signature).unwrap_or(false),
    })
}

/// Whether a FlashAttention kernel is causal: the second flag after its traits (dropout, causal, …).
fn is_causal_flash(signature: &str) -> Option<bool> {
    let traits = signature.find("_kernel_traits<")?;
    let mut depth = 0;
    let end = signature[traits..].find(|character| {
        depth += match character {
            '<' => 1,
            '>' => -1,
            _ => 0,
        };
        character == '>' && depth == 0
    })?;
    let switch = signature[traits + end + 1..].split(',').nth(2)?;
    Some(switch.trim().starts_with("true"))
}

fn precision(signature: &str) -> Precision {
    if signature.contains("bfloat16") || signature.contains("_bf16_") {
        Precision::Bfloat16
    } else if signature.contains("half") || signature.contains("_f16_") {
        Precision::Half
    } else {
        Precision::Single
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_found_behind_any_number_of_addresses() {
        let scale = 0.125_f32.to_bits();
        for addresses in [10, 11, 17] {
            let mut numbers = Vec::new();
            for _ in 0..addresses {
                numbers.extend([0x3d00_0000, 0x4634]);
            }
            numbers.push(0);
            let mut forward = numbers.clone();
            forward.extend([scale, 64, 64, 1024, 1000, 1000, 1]);
            let sizes = Sizes {
                queries: 1024,
                keys: 1000,
                width: 64,
                is_causal: true,
            };
            assert_eq!(memory_efficient(&forward), Some(sizes));
            numbers.extend([scale, 64, 64, 256, 256, 12, 0]);
            let sizes = Sizes {
                queries: 256,
                keys: 256,
                width: 64,
                is_causal: false,
            };
            assert_eq!(memory_efficient(&numbers), Some(sizes));
        }
    }

    #[test]
    fn flash_attention_is_found_by_its_rounded_sizes() {
        let signature = "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits\
            <64, 128, 128, 4, false, false, cutlass::bfloat16_t, Base<64, 4> >, false, true, false, \
            false>(pytorch_flash::Flash_fwd_params)";
        let numbers = [7, 7, 0, 8, 1000, 520, 0, 64, 1024, 640, 64, 0];
        let sizes = Sizes {
            queries: 1000,
            keys: 520,
            width: 64,
            is_causal: true,
        };
        assert_eq!(flash(signature, &numbers), Some(sizes));
        assert_eq!(precision(signature), Precision::Bfloat16);
    }
}
