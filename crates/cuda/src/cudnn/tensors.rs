//! Tensor, filter, convolution and activation descriptors of the older interface.

use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use super::objects::{Registry, descriptor_lifetime, read_array, write};
use super::status;
use crate::call_log;

/// What `cudnnTensorDescriptor_t` describes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tensor {
    pub data_type: i32,
    pub dimensions: Vec<i32>,
    pub strides: Vec<i32>,
}

/// What `cudnnFilterDescriptor_t` describes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub data_type: i32,
    /// `cudnnTensorFormat_t`: 0 has the channels before the spatial axes, 1 after them.
    pub format: i32,
    pub dimensions: Vec<i32>,
}

/// What `cudnnConvolutionDescriptor_t` describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Convolution {
    pub padding: Vec<i32>,
    pub stride: Vec<i32>,
    pub dilation: Vec<i32>,
    pub mode: i32,
    pub compute_type: i32,
    pub groups: i32,
    pub math_type: i32,
}

impl Default for Convolution {
    fn default() -> Self {
        Self {
            padding: Vec::new(),
            stride: Vec::new(),
            dilation: Vec::new(),
            mode: 0,
            compute_type: 0,
            groups: 1,
            math_type: 0,
        }
    }
}

static TENSORS: Registry<Mutex<Tensor>> = Registry::new();
static FILTERS: Registry<Mutex<Filter>> = Registry::new();
static CONVOLUTIONS: Registry<Mutex<Convolution>> = Registry::new();
static ACTIVATIONS: Registry<()> = Registry::new();

/// The contents behind a handle, copied.
fn contents<T: Clone>(registry: &Registry<Mutex<T>>, handle: *mut c_void) -> Option<T> {
    let found = registry.get(handle)?;
    Some(found.lock().unwrap_or_else(PoisonError::into_inner).clone())
}

fn replace<T>(registry: &Registry<Mutex<T>>, handle: *mut c_void, value: T) -> i32 {
    let Some(found) = registry.get(handle) else {
        return status::BAD_PARAM;
    };
    *found.lock().unwrap_or_else(PoisonError::into_inner) = value;
    status::SUCCESS
}

pub fn tensor(handle: *mut c_void) -> Option<Tensor> {
    contents(&TENSORS, handle)
}

/// Gives a caller's tensor descriptor these contents.
pub fn set_tensor(handle: *mut c_void, value: Tensor) -> i32 {
    replace(&TENSORS, handle, value)
}

pub fn filter(handle: *mut c_void) -> Option<Filter> {
    contents(&FILTERS, handle)
}

pub fn convolution(handle: *mut c_void) -> Option<Convolution> {
    contents(&CONVOLUTIONS, handle)
}

descriptor_lifetime!(
    TENSORS,
    Mutex::new(Tensor::default()),
    cudnnCreateTensorDescriptor,
    cudnnDestroyTensorDescriptor
);
descriptor_lifetime!(
    FILTERS,
    Mutex::new(Filter::default()),
    cudnnCreateFilterDescriptor,
    cudnnDestroyFilterDescriptor
);
descriptor_lifetime!(
    CONVOLUTIONS,
    Mutex::new(Convolution::default()),
    cudnnCreateConvolutionDescriptor,
    cudnnDestroyConvolutionDescriptor
);
descriptor_lifetime!(
    ACTIVATIONS,
    (),
    cudnnCreateActivationDescriptor,
    cudnnDestroyActivationDescriptor
);

/// # Safety
/// The arrays must hold `count` values each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudnnSetTensorNdDescriptor(
    handle: *mut c_void,
    data_type: i32,
    count: i32,
    dimensions: *const i32,
    strides: *const i32,
) -> i32 {
    // SAFETY: promised by the caller.
    let (dimensions, strides) =
        unsafe { (read_array(dimensions, count), read_array(strides, count)) };
    call_log::call("cudnnSetTensorNdDescriptor", || {
        format!("type {data_type}, {dimensions:?}, strides {strides:?}")
    });
    let value = Tensor {
        data_type,
        dimensions,
        strides,
    };
    replace(&TENSORS, handle, value)
}

/// # Safety
/// The single results must be null or valid; the arrays must be null or have room for `requested`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudnnGetTensorNdDescriptor(
    handle: *mut c_void,
    requested: i32,
    data_type: *mut i32,
    count: *mut i32,
    dimensions: *mut i32,
    strides: *mut i32,
) -> i32 {
    let Some(found) = tensor(handle) else {
        return status::BAD_PARAM;
    };
    // SAFETY: promised by the caller.
    unsafe {
        write(data_type, found.data_type);
        write(count, found.dimensions.len() as i32);
        copy_out(dimensions, &found.dimensions, requested);
        copy_out(strides, &found.strides, requested);
    }
    status::SUCCESS
}

/// # Safety
/// `target` must be null or have room for `room` values.
unsafe fn copy_out(target: *mut i32, values: &[i32], room: i32) {
    if target.is_null() {
        return;
    }
    for (place, &value) in values
        .iter()
        .take(usize::try_from(room).unwrap_or(0))
        .enumerate()
    {
        // SAFETY: `place` is below the room the caller promises.
        unsafe { target.add(place).write(value) };
    }
}

/// # Safety
/// `dimensions` must hold `count` values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudnnSetFilterNdDescriptor(
    handle: *mut c_void,
    data_type: i32,
    format: i32,
    count: i32,
    dimensions: *const i32,
) -> i32 {
    // SAFETY: promised by the caller.
    let dimensions = unsafe { read_array(dimensions, count) };
    let value = Filter {
        data_type,
        format,
        dimensions,
    };
    replace(&FILTERS, handle, value)
}

/// # Safety
/// The single results must be null or valid; the array must be null or have room for `requested`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudnnGetFilterNdDescriptor(
    handle: *mut c_void,
    requested: i32,
    data_type: *mut i32,
    format: *mut i32,
    count: *mut i32,
    dimensions: *mut i32,
) -> i32 {
    let Some(found) = filter(handle) else {
        return status::BAD_PARAM;
    };
    // SAFETY: promised by the caller.
    unsafe {
        write(data_type, found.data_type);
        write(format, found.format);
        write(count, found.dimensions.len() as i32);
        copy_out(dimensions, &found.dimensions, requested);
    }
    status::SUCCESS
}

/// # Safety
/// The arrays must hold `count` values each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudnnSetConvolutionNdDescriptor(
    handle: *mut c_void,
    count: i32,
    padding: *const i32,
    stride: *const i32,
    dilation: *const i32,
    mode: i32,
    compute_type: i32,
) -> i32 {
    let before = convolution(handle).unwrap_or_default();
    // SAFETY: promised by the caller.
    let value = unsafe {
        Convolution {
            padding: read_array(padding, count),
            stride: read_array(stride, count),
            dilation: read_array(dilation, count),
            mode,
            compute_type,
            ..before
        }
    };
    replace(&CONVOLUTIONS, handle, value)
}

#[unsafe(no_mangle)]
pub extern "C" fn cudnnSetConvolutionGroupCount(handle: *mut c_void, groups: i32) -> i32 {
    let Some(before) = convolution(handle) else {
        return status::BAD_PARAM;
    };
    replace(&CONVOLUTIONS, handle, Convolution { groups, ..before })
}

#[unsafe(no_mangle)]
pub extern "C" fn cudnnSetConvolutionMathType(handle: *mut c_void, math_type: i32) -> i32 {
    let Some(before) = convolution(handle) else {
        return status::BAD_PARAM;
    };
    replace(
        &CONVOLUTIONS,
        handle,
        Convolution {
            math_type,
            ..before
        },
    )
}

/// The activation's kind changes no size.
#[unsafe(no_mangle)]
pub extern "C" fn cudnnSetActivationDescriptor(
    handle: *mut c_void,
    _mode: i32,
    _nan_option: i32,
    _coefficient: f64,
) -> i32 {
    match ACTIVATIONS.get(handle) {
        Some(_) => status::SUCCESS,
        None => status::BAD_PARAM,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tensor_descriptor_gives_back_what_was_set() {
        let mut handle = std::ptr::null_mut();
        let (dimensions, strides) = ([2, 3, 4], [12, 4, 1]);
        let (mut data_type, mut count) = (0, 0);
        let (mut read_dimensions, mut read_strides) = ([0; 3], [0; 3]);
        // SAFETY: all places are valid for what is read and written.
        unsafe {
            assert_eq!(cudnnCreateTensorDescriptor(&raw mut handle), 0);
            let set =
                cudnnSetTensorNdDescriptor(handle, 9, 3, dimensions.as_ptr(), strides.as_ptr());
            assert_eq!(set, 0);
            let got = cudnnGetTensorNdDescriptor(
                handle,
                3,
                &raw mut data_type,
                &raw mut count,
                read_dimensions.as_mut_ptr(),
                read_strides.as_mut_ptr(),
            );
            assert_eq!(got, 0);
        }
        assert_eq!((data_type, count), (9, 3));
        assert_eq!((read_dimensions, read_strides), (dimensions, strides));
        assert_eq!(cudnnDestroyTensorDescriptor(handle), 0);
        assert_eq!(tensor(handle), None);
    }
}
