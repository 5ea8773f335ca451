//! What a kernel's name says about it: the layout of its arguments, and how much memory it moves.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use ghostgpu_cost::Operation;

use super::arguments::{Arguments, Shape};
use super::{attention, blocks, many_tensors, recorder};
use crate::real_library;
use crate::runtime::kernel_name;

/// What follows from a kernel's name.
#[derive(Debug, PartialEq, Eq)]
struct Facts {
    /// The function's own name, without namespaces and template arguments.
    name: String,
    /// The whole name, demangled where that is possible.
    signature: String,
    shapes: Vec<Shape>,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The first argument says how many elements each operand has; none is larger than that.
    Elementwise {
        largest_element_bytes: u64,
    },
    /// Many tensors at once.
    ManyTensors,
    /// Picks rows of a tensor: of the largest tensor, it moves only as much as of the others.
    Picking,
    /// Reads from the first address and writes to the second; others are not always set.
    Reduction,
    /// Copies any number of tensors into the one that the first argument points to.
    Joining,
    Attention,
    Other,
}

/// PyTorch's structures have their addresses within this many bytes: two `OffsetCalculator`s of 25 dimensions can
/// come first.
const MOST_STRUCTURE_BYTES: usize = 1280;

/// # Safety
/// `places` is null or points to the addresses of the kernel's arguments.
pub unsafe fn launched(stub: *const c_void, grid: [u32; 3], places: *const *mut c_void) {
    let facts = facts(stub);
    if places.is_null() {
        return record(&facts, 0);
    }
    // SAFETY: promised by the caller; there are as many as the kernel's own type says.
    let arguments = unsafe { Arguments::new(&facts.shapes, places) };
    let [x, y, z] = grid.map(u64::from);
    if facts.kind == Kind::Attention {
        let words = arguments.words(0, attention::MOST_BYTES);
        let operation = attention::operation(&facts.name, &facts.signature, &words, y * z);
        if let Some(operation) = operation {
            return recorder::record(operation);
        }
    }
    if facts.kind == Kind::ManyTensors {
        let words = arguments.words(0, many_tensors::MOST_BYTES);
        let bytes = many_tensors::moved_bytes(&facts.signature, &words, x * y * z);
        return record(&facts, bytes.unwrap_or(0));
    }
    let sizes = match facts.kind {
        Kind::Reduction => reduction_sizes(&arguments.words(0, MOST_STRUCTURE_BYTES)),
        _ => operand_sizes(&arguments),
    };
    record(&facts, moved_bytes(facts.kind, &sizes, arguments.int(0)));
}

fn record(facts: &Facts, bytes: u64) {
    recorder::record(Operation::Kernel {
        name: facts.name.clone(),
        bytes,
    });
}

/// The bytes behind each address that a kernel gets.
///
/// An array of addresses has all operands of an elementwise kernel, so nothing else counts. In a structure the addresses
/// are in a row, and what follows them does not belong to them.
fn operand_sizes(arguments: &Arguments) -> Vec<u64> {
    let shapes = arguments.shapes();
    let has_array = shapes
        .iter()
        .any(|shape| matches!(shape, Shape::Pointers(_)));
    let of = |index: usize| match shapes[index] {
        Shape::Scalar => Vec::new(),
        Shape::Pointers(_) => known_sizes(&arguments.words(index, usize::MAX)),
        _ if has_array => Vec::new(),
        Shape::Pointer => known_sizes(&arguments.words(index, 8)),
        Shape::Structure => sizes_in_a_row(&arguments.words(index, MOST_STRUCTURE_BYTES)),
    };
    (0..shapes.len()).flat_map(of).collect()
}

/// The structure of a reduction (`Reduce.cuh`) has its addresses after two `OffsetCalculator`s. Those are filled only up
/// to the tensor's number of dimensions; the rest is uninitialised.
fn reduction_sizes(words: &[u64]) -> Vec<u64> {
    const CALCULATORS_END: usize = 960 / 8;
    sizes_in_a_row(words.get(CALCULATORS_END..).unwrap_or_default())
}

fn known_sizes(words: &[u64]) -> Vec<u64> {
    blocks::sizes_of(words).into_iter().flatten().collect()
}

/// The bytes behind the first addresses in a structure, up to a word that is neither an address nor null.
fn sizes_in_a_row(words: &[u64]) -> Vec<u64> {
    // Tensors and nearly all views begin at such addresses; a word that only looks like an address rarely does.
    const ALIGNMENT: u64 = 16;
    let mut sizes = blocks::sizes_of(words);
    for (size, word) in sizes.iter_mut().zip(words) {
        if !word.is_multiple_of(ALIGNMENT) {
            *size = None;
        }
    }
    let begin = sizes.iter().position(Option::is_some);
    let row = sizes.iter().zip(words).skip(begin.unwrap_or(sizes.len()));
    row.take_while(|&(size, &word)| size.is_some() || word == 0)
        .filter_map(|(&size, _)| size)
        .collect()
}

/// How many bytes a kernel moves whose operands have these sizes.
fn moved_bytes(kind: Kind, sizes: &[u64], first_number: Option<i32>) -> u64 {
    match kind {
        Kind::Elementwise {
            largest_element_bytes,
        } => {
            let elements = first_number.and_then(|count| u64::try_from(count).ok());
            let most = elements.map_or(u64::MAX, |count| count * largest_element_bytes);
            sizes.iter().map(|&bytes| bytes.min(most)).sum()
        }
        Kind::Picking => {
            let mut sorted = sizes.to_vec();
            sorted.sort_unstable();
            let most = sorted.iter().rev().nth(1).copied().unwrap_or(0);
            sorted.iter().map(|&bytes| bytes.min(most)).sum()
        }
        Kind::Reduction => sizes.iter().take(2).sum(),
        Kind::Joining => 2 * sizes.first().copied().unwrap_or(0),
        Kind::ManyTensors | Kind::Attention | Kind::Other => sizes.iter().sum(),
    }
}

fn facts(stub: *const c_void) -> Arc<Facts> {
    static KNOWN: LazyLock<Mutex<HashMap<usize, Arc<Facts>>>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let facts = known
        .entry(stub as usize)
        .or_insert_with(|| Arc::new(Facts::of(&demangled(&kernel_name(stub)))));
    Arc::clone(facts)
}

/// The demangled C++ name, from the C++ library that PyTorch has loaded; without one, the name itself.
fn demangled(name: &str) -> String {
    type Demangle =
        unsafe extern "C" fn(*const c_char, *mut c_char, *mut usize, *mut c_int) -> *mut c_char;
    static FUNCTION: OnceLock<Option<Demangle>> = OnceLock::new();
    let function = FUNCTION.get_or_init(|| {
        let function = real_library::find_loaded(&[c"libstdc++.so.6"], c"__cxa_demangle")?;
        // SAFETY: this is the signature that the C++ ABI gives this function.
        Some(unsafe { std::mem::transmute::<*mut c_void, Demangle>(function) })
    });
    let (Some(function), Ok(given)) = (function, CString::new(name)) else {
        return name.to_owned();
    };
    let mut status = 0;
    // SAFETY: a C string goes in; a null buffer has the function make one of its own.
    let text = unsafe {
        function(
            given.as_ptr(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            &raw mut status,
        )
    };
    if text.is_null() {
        return name.to_owned();
    }
    // SAFETY: a C string from `malloc`, which is ours to free.
    unsafe {
        let owned = CStr::from_ptr(text).to_string_lossy().into_owned();
        libc::free(text.cast());
        owned
    }
}

impl Facts {
    fn of(signature: &str) -> Self {
        let (before, parameters) = split_signature(signature);
        let name = own_name(before);
        let shapes = split_parameters(parameters)
            .into_iter()
            .map(Shape::of)
            .collect();
        let kind = kind(&name, signature);
        Self {
            name,
            signature: signature.to_owned(),
            shapes,
            kind,
        }
    }
}

fn kind(name: &str, signature: &str) -> Kind {
    const PICKING: [&str; 5] = ["gather", "scatter", "index", "embedding", "nll_loss"];
    let has = |text: &str| signature.contains(text);
    if name.starts_with("fmha_cutlass") || name.starts_with("flash_") {
        Kind::Attention
    } else if name == "multi_tensor_apply_kernel" {
        Kind::ManyTensors
    } else if name == "reduce_kernel" {
        Kind::Reduction
    } else if name.starts_with("CatArray") {
        Kind::Joining
    } else if PICKING.iter().any(|part| name.contains(part)) {
        Kind::Picking
    } else if name.contains("elementwise_kernel") {
        // The name of a converting kernel has only one of its types.
        let largest_element_bytes = if !has("WithCast") && (has("Half") || has("BFloat16")) {
            if has("float") { 4 } else { 2 }
        } else if has("float") && !has("WithCast") {
            4
        } else {
            8
        };
        Kind::Elementwise {
            largest_element_bytes,
        }
    } else {
        Kind::Other
    }
}

/// The part of a signature before its parameters, and the parameters.
fn split_signature(signature: &str) -> (&str, &str) {
    let Some(end) = signature.rfind(')') else {
        return (signature, "");
    };
    let mut depth = 0;
    for (place, character) in signature[..=end].char_indices().rev() {
        match character {
            ')' => depth += 1,
            '(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return (&signature[..place], &signature[place + 1..end]);
        }
    }
    (signature, "")
}

fn split_parameters(parameters: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut depth, mut begin) = (0_i32, 0);
    for (place, character) in parameters.char_indices() {
        match character {
            '(' | '<' | '[' | '{' => depth += 1,
            ')' | '>' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(&parameters[begin..place]);
                begin = place + 1;
            }
            _ => {}
        }
    }
    if !parameters[begin..].trim().is_empty() {
        found.push(&parameters[begin..]);
    }
    found
}

fn own_name(before_parameters: &str) -> String {
    let mut depth = 0_u32;
    let mut plain = String::new();
    for character in before_parameters.chars() {
        match character {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ if depth == 0 => plain.push(character),
            _ => {}
        }
    }
    let last = plain.rsplit("::").next().unwrap_or_default();
    last.rsplit(' ').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_tells_arguments_and_kind() {
        let facts = Facts::of(
            "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, \
             std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)",
        );
        assert_eq!(facts.name, "vectorized_elementwise_kernel");
        assert_eq!(
            facts.shapes,
            [Shape::Scalar, Shape::Structure, Shape::Pointers(3)]
        );
        let kind = Kind::Elementwise {
            largest_element_bytes: 4,
        };
        assert_eq!(facts.kind, kind);
        let facts = Facts::of(
            "void (anonymous namespace)::softmax_warp_forward<float, float, float, 1, true, false>\
             (float*, float const*, int, int, int, bool const*, int, bool)",
        );
        assert_eq!(facts.name, "softmax_warp_forward");
        assert_eq!(facts.shapes.len(), 8);
        assert_eq!(facts.kind, Kind::Other);
        let facts = Facts::of("fmha_cutlassF_f32_aligned_64x64_rf_sm80(A<float, true>::Params)");
        assert_eq!(facts.name, "fmha_cutlassF_f32_aligned_64x64_rf_sm80");
        assert_eq!(facts.shapes, [Shape::Structure]);
        assert_eq!(facts.kind, Kind::Attention);
        assert_eq!(Facts::of("triton_poi_fused_0").shapes, []);
    }

    #[test]
    fn a_view_counts_for_its_elements_and_a_table_for_what_is_picked() {
        let kind = Kind::Elementwise {
            largest_element_bytes: 4,
        };
        assert_eq!(moved_bytes(kind, &[4096, 4096, 12_288], Some(1024)), 12_288);
        // A broadcast operand is as small as its memory.
        assert_eq!(moved_bytes(kind, &[4096, 4096, 512], Some(1024)), 8704);
        assert_eq!(
            moved_bytes(Kind::Picking, &[8192, 1_000_000, 512], None),
            16_896
        );
        assert_eq!(moved_bytes(Kind::Joining, &[3000, 1000], None), 6000);
    }
}
