//! PyTorch's kernels that process many tensors at once (`MultiTensorApply.cuh`), as optimizers do.
//!
//! They get one structure: for each of several lists the addresses of its tensors, the number of elements of
//! each tensor, perhaps a scalar or an address for each, and for each block of threads which part of which
//! tensor it processes.

/// The largest total size of a kernel's arguments.
pub const MOST_BYTES: usize = 4096;

/// Elements that a block of threads goes through.
const CHUNK_ELEMENTS: u64 = 65_536;

/// Blocks of threads that one launch has at most.
const MOST_BLOCKS: usize = 320;

/// How many tensors a structure has room for, by the number of lists.
const ROOM: [usize; 5] = [110, 64, 48, 36, 30];
/// The same where each tensor has a scalar.
const ROOM_WITH_SCALARS: [usize; 5] = [96, 64, 48, 36, 30];

/// What such a kernel moves; none if the structure is another one than this.
pub fn moved_bytes(signature: &str, words: &[u64], blocks: u64) -> Option<u64> {
    let layout = Layout::of(signature)?;
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let tensors = layout.lists * layout.room * 8;
    let mut elements = 0;
    for block in 0..usize::try_from(blocks).ok()?.min(MOST_BLOCKS) {
        let to_tensor = tensors + layout.room * (8 + layout.more_bytes);
        let tensor = usize::from(*bytes.get(to_tensor + block)?);
        if tensor >= layout.room {
            return None;
        }
        let to_chunk = to_tensor + MOST_BLOCKS + 4 * block;
        let chunk = u32::from_le_bytes(*bytes.get(to_chunk..)?.first_chunk()?);
        let count = u64::from_le_bytes(*bytes.get(tensors + 8 * tensor..)?.first_chunk()?);
        let begin = u64::from(chunk) * CHUNK_ELEMENTS;
        elements += count.checked_sub(begin)?.min(CHUNK_ELEMENTS);
    }
    Some(elements * layout.element_bytes * layout.passes)
}

/// What follows from the types of such a kernel.
#[derive(Debug, PartialEq, Eq)]
struct Layout {
    lists: usize,
    room: usize,
    /// Beside its address and its number of elements, for each tensor.
    more_bytes: usize,
    element_bytes: u64,
    /// How often each element is read or written, over all lists.
    passes: u64,
}

impl Layout {
    fn of(signature: &str) -> Option<Self> {
        let template = signature.split_once("multi_tensor_apply_kernel<")?.1;
        let (metadata, functor) = template.split_once(">, ")?;
        let (kind, inside) = metadata.rsplit_once('<')?;
        let lists: usize = inside.rsplit(", ").next()?.trim().parse().ok()?;
        let has_scalars = kind.ends_with("TensorListScalarListMetadata");
        let room = if has_scalars { ROOM_WITH_SCALARS } else { ROOM };
        let more_bytes = if has_scalars {
            type_bytes(inside.split(", ").next()?)?
        } else if kind.ends_with("FusedOptimizerTensorListMetadata") {
            8
        } else if kind.ends_with("TensorListMetadata") {
            0
        } else {
            return None;
        };
        let (name, arguments) = functor.split_once('<')?;
        let mut arguments = arguments.split([',', '>']).map(str::trim);
        let element_bytes = type_bytes(arguments.next()?)? as u64;
        // How many lists there are, how many of them are read, and which one is written.
        let read = arguments.nth(1).and_then(|read| read.parse::<u64>().ok());
        let passes = match read {
            _ if name.contains("Fused") => 2 * lists as u64 - 1,
            _ if name.contains("Norm") => 1,
            Some(read) => read + 1,
            None => lists as u64 + 1,
        };
        Some(Self {
            lists,
            room: *room.get(lists.checked_sub(1)?)?,
            more_bytes,
            element_bytes,
            passes,
        })
    }
}

fn type_bytes(name: &str) -> Option<usize> {
    match name.trim() {
        "float" | "int" => Some(4),
        "double" | "long" => Some(8),
        "c10::Half" | "c10::BFloat16" => Some(2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCALED: &str = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<\
        at::native::(anonymous namespace)::TensorListScalarListMetadata<float, 3>, \
        at::native::(anonymous namespace)::PointwiseOpScalarListFunctor<float, 3, 3, 0>, \
        std::divides<float> >(A, B, C)";

    #[test]
    fn types_tell_the_layout() {
        let layout = Layout {
            lists: 3,
            room: 48,
            more_bytes: 4,
            element_bytes: 4,
            passes: 4,
        };
        assert_eq!(Layout::of(SCALED), Some(layout));
        let layout = Layout {
            lists: 1,
            room: 110,
            more_bytes: 0,
            element_bytes: 2,
            passes: 2,
        };
        let plain = "void n::multi_tensor_apply_kernel<n::TensorListMetadata<1>, \
            n::BinaryOpScalarFunctor<c10::BFloat16, 1, 1, 0>, std::plus<float>, float>(A)";
        assert_eq!(Layout::of(plain), Some(layout));
        let fused = "void n::multi_tensor_apply_kernel<n::FusedOptimizerTensorListMetadata<4>, \
            n::FusedAdamMathFunctor<float, float, 4, (n::ADAM_MODE)1, false>, float const*>(A)";
        assert_eq!(Layout::of(fused).map(|layout| layout.passes), Some(7));
    }

    #[test]
    fn the_last_part_of_a_tensor_is_as_long_as_it_is() {
        let mut bytes = vec![0_u8; MOST_BYTES];
        let tensors = 3 * 48 * 8;
        bytes[tensors..tensors + 8].copy_from_slice(&70_000_u64.to_le_bytes());
        bytes[tensors + 8..tensors + 16].copy_from_slice(&768_u64.to_le_bytes());
        let to_tensor = tensors + 48 * 12;
        bytes[to_tensor + 2] = 1;
        bytes[to_tensor + MOST_BLOCKS + 4] = 1;
        let words: Vec<u64> = bytes
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")))
            .collect();
        assert_eq!(moved_bytes(SCALED, &words, 2), Some(70_000 * 16));
        assert_eq!(moved_bytes(SCALED, &words, 3), Some(70_768 * 16));
        assert_eq!(moved_bytes("void other<int>(int)", &words, 1), None);
    }
}
