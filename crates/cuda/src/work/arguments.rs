//! Addresses on the card among a kernel's arguments.
//!
//! A launch gets the address of each argument, but neither their number nor their lengths. The number
//! follows from the kernel's name, which in C++ contains the types. A structure is searched up to the next
//! argument, but not beyond the size of PyTorch's largest structures.

use std::cell::Cell;
use std::ffi::c_void;

/// What is known of an argument from its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Pointer,
    /// This many addresses in a row.
    Pointers(usize),
    /// A number, which is no address.
    Scalar,
    /// Anything else, with addresses anywhere in it.
    Structure,
}

impl Shape {
    /// The shape of a parameter, from its type as a demangler writes it.
    pub fn of(parameter: &str) -> Self {
        let parameter = parameter.trim();
        let plain = parameter.trim_end_matches("const").trim_end();
        if plain.ends_with('*') {
            return Self::Pointer;
        }
        if let Some(count) = array_of_pointers(plain) {
            return Self::Pointers(count);
        }
        // The last one contains addresses only while a graph is captured.
        const SCALARS: [&str; 17] = [
            "bool",
            "char",
            "signed char",
            "unsigned char",
            "short",
            "unsigned short",
            "int",
            "unsigned int",
            "long",
            "unsigned long",
            "long long",
            "unsigned long long",
            "float",
            "double",
            "c10::Half",
            "c10::BFloat16",
            "at::PhiloxCudaState",
        ];
        if SCALARS.contains(&plain) {
            Self::Scalar
        } else {
            Self::Structure
        }
    }
}

/// How many addresses an array of them has: `std::array<char*, 3ul>`, in older releases
/// `at::detail::Array<char*, 3>`.
fn array_of_pointers(parameter: &str) -> Option<usize> {
    let (name, inside) = parameter.strip_suffix('>')?.split_once('<')?;
    let (element, count) = inside.rsplit_once(", ")?;
    let is_array = name.ends_with("rray") && element == "char*";
    let count = count.trim_end_matches(['u', 'l', ' ']).parse().ok()?;
    is_array.then_some(count)
}

/// The arguments of one launch.
pub struct Arguments<'a> {
    shapes: &'a [Shape],
    places: *const *mut c_void,
}

impl<'a> Arguments<'a> {
    /// # Safety
    /// `places` points to as many addresses of arguments as there are shapes.
    pub unsafe fn new(shapes: &'a [Shape], places: *const *mut c_void) -> Self {
        Self { shapes, places }
    }

    fn place(&self, index: usize) -> usize {
        // SAFETY: promised when this was made.
        unsafe { self.places.add(index).read_unaligned() as usize }
    }

    /// The integer at the start of an argument.
    pub fn int(&self, index: usize) -> Option<i32> {
        self.shapes.get(index)?;
        let place = self.place(index) as *const i32;
        // SAFETY: arguments are readable, and none in question is shorter.
        (!place.is_null()).then(|| unsafe { place.read_unaligned() })
    }

    /// The words of an argument, up to `most_bytes`.
    pub fn words(&self, index: usize, most_bytes: usize) -> Vec<u64> {
        let bytes = match self.shapes.get(index) {
            None | Some(Shape::Scalar) => 0,
            Some(Shape::Pointer) => 8,
            Some(Shape::Pointers(count)) => 8 * count,
            Some(Shape::Structure) => self.longest(index).min(most_bytes),
        };
        let place = self.place(index);
        if place == 0 {
            return Vec::new();
        }
        (0..bytes / 8)
            // SAFETY: `longest` stays within memory that is readable.
            .map(|word| unsafe { (place as *const u64).add(word).read_unaligned() })
            .collect()
    }

    pub fn shapes(&self) -> &'a [Shape] {
        self.shapes
    }

    /// How long a structure can be at most.
    fn longest(&self, index: usize) -> usize {
        let place = self.place(index);
        let next = (0..self.shapes.len())
            .map(|other| self.place(other))
            .filter(|&other| other > place)
            .min();
        let readable = readable_from(place);
        next.map_or(readable, |next| readable.min(next - place))
    }
}

/// How many bytes can be read safely from a valid address: to the end of the thread's stack or of the page.
fn readable_from(place: usize) -> usize {
    const PAGE_BYTES: usize = 4096;
    let (begin, end) = stack();
    if (begin..end).contains(&place) {
        end - place
    } else {
        PAGE_BYTES - place % PAGE_BYTES
    }
}

/// The address range of the calling thread's stack.
fn stack() -> (usize, usize) {
    thread_local! {
        static STACK: Cell<Option<(usize, usize)>> = const { Cell::new(None) };
    }
    if let Some(known) = STACK.get() {
        return known;
    }
    // SAFETY: the structure is plain data, filled by the call below, and freed once.
    let found = unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        let mut begin = std::ptr::null_mut();
        let mut bytes = 0;
        if libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes) == 0 {
            libc::pthread_attr_getstack(&raw const attributes, &raw mut begin, &raw mut bytes);
            libc::pthread_attr_destroy(&raw mut attributes);
        }
        (begin as usize, begin as usize + bytes)
    };
    STACK.set(Some(found));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_tell_addresses_from_numbers() {
        assert_eq!(Shape::of("float const*"), Shape::Pointer);
        assert_eq!(Shape::of(" c10::BFloat16*"), Shape::Pointer);
        assert_eq!(Shape::of("unsigned long"), Shape::Scalar);
        assert_eq!(Shape::of("std::array<char*, 3ul>"), Shape::Pointers(3));
        assert_eq!(Shape::of("at::detail::Array<char*, 2>"), Shape::Pointers(2));
        assert_eq!(Shape::of("at::native::Array<float, 2>"), Shape::Structure);
    }

    #[test]
    fn a_structure_ends_where_the_next_argument_begins() {
        #[repr(C)]
        struct Frame {
            structure: [u64; 3],
            pointer: u64,
        }
        let frame = Frame {
            structure: [7, 8, 9],
            pointer: 10,
        };
        let places = [
            (&raw const frame.structure).cast_mut().cast(),
            (&raw const frame.pointer).cast_mut().cast::<c_void>(),
        ];
        // SAFETY: two addresses of locals.
        let arguments =
            unsafe { Arguments::new(&[Shape::Structure, Shape::Pointer], places.as_ptr()) };
        assert_eq!(arguments.words(0, 4096), [7, 8, 9]);
        assert_eq!(arguments.words(0, 16), [7, 8]);
        assert_eq!(arguments.words(1, 4096), [10]);
        assert_eq!(arguments.int(0), Some(7));
        assert_eq!(arguments.int(2), None);
    }

    #[test]
    fn memory_outside_of_the_stack_is_read_to_the_end_of_its_page() {
        assert_eq!(readable_from(0x10), 0xff0);
        let local = 0_u64;
        let place = &raw const local as usize;
        assert!(readable_from(place) > 4096);
    }
}
