//! The exported functions of the backend interface.

use std::ffi::c_void;
use std::sync::Arc;

use ghostgpu_oracle::{Descriptor, Stored, attribute, element_bytes, kind, value_type};

use super::duration::moves_much;
use super::finalize::{config_workspace, finalize};
use crate::cudnn::objects::{Registry, write};
use crate::cudnn::{choices, status};
use crate::runtime::stream::submit_library_work;
use crate::{call_log, clock, observer, refuse, state, work};

/// Descriptors are shared: those that refer to one keep it alive after it is destroyed.
static DESCRIPTORS: Registry<Descriptor> = Registry::new();

fn find(handle: *mut c_void) -> Option<Arc<Descriptor>> {
    DESCRIPTORS.get(handle)
}

/// # Safety
/// `descriptor` must be null or a valid place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudnnBackendCreateDescriptor(
    kind: i32,
    descriptor: *mut *mut c_void,
) -> i32 {
    call_log::call("cudnnBackendCreateDescriptor", || format!("kind {kind}"));
    if descriptor.is_null() {
        return status::BAD_PARAM_NULL_POINTER;
    }
    let made = DESCRIPTORS.insert(Descriptor::new(kind));
    // SAFETY: not null; the caller vouches for the rest.
    unsafe { write(descriptor, made) };
    status::SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cudnnBackendDestroyDescriptor(descriptor: *mut c_void) -> i32 {
    DESCRIPTORS.remove(descriptor);
    status::SUCCESS
}

/// Deprecated since cuDNN 8: descriptors are initialised when they are created.
#[unsafe(no_mangle)]
pub extern "C" fn cudnnBackendInitialize(descriptor: *mut c_void) -> i32 {
    match find(descriptor) {
        Some(_) => status::SUCCESS,
        None => status::BAD_PARAM,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cudnnBackendFinalize(descriptor: *mut c_void) -> i32 {
    let Some(found) = find(descriptor) else {
        return status::BAD_PARAM;
    };
    let result = finalize(&found);
    call_log::call("cudnnBackendFinalize", || {
        format!("kind {} -> {result}", found.kind)
    });
    result
}

/// # Safety
/// `elements` must point to `count` elements of `value_type`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudnnBackendSetAttribute(
    descriptor: *mut c_void,
    name: i32,
    value_type: i32,
    count: i64,
    elements: *const c_void,
) -> i32 {
    let Some(found) = find(descriptor) else {
        return status::BAD_PARAM;
    };
    let Ok(count) = usize::try_from(count) else {
        return status::BAD_PARAM;
    };
    if elements.is_null() && count > 0 {
        return status::BAD_PARAM_NULL_POINTER;
    }
    let stored = if value_type == value_type::DESCRIPTOR {
        let mut below = Vec::with_capacity(count);
        for place in 0..count {
            // SAFETY: the caller promises `count` handles.
            let handle = unsafe { elements.cast::<*mut c_void>().add(place).read_unaligned() };
            let Some(child) = find(handle) else {
                return status::BAD_PARAM;
            };
            if !child.contents().is_finalized {
                return status::BAD_PARAM_NOT_FINALIZED;
            }
            below.push(child);
        }
        Stored::Descriptors(below)
    } else {
        let length = count * element_bytes(value_type);
        let bytes = if length == 0 {
            Vec::new()
        } else {
            // SAFETY: the caller promises `count` elements of this type.
            unsafe { std::slice::from_raw_parts(elements.cast::<u8>(), length) }.to_vec()
        };
        Stored::Bytes { value_type, bytes }
    };
    call_log::call("cudnnBackendSetAttribute", || {
        format!(
            "kind {}, attribute {name}, {count} of type {value_type}",
            found.kind
        )
    });
    found.contents().attributes.insert(name, stored);
    status::SUCCESS
}

/// # Safety
/// `count` must be null or a valid place; `elements` must be null or have room for `requested`
/// elements, which for descriptors are handles made by the caller.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudnnBackendGetAttribute(
    descriptor: *mut c_void,
    name: i32,
    value_type: i32,
    requested: i64,
    count: *mut i64,
    elements: *mut c_void,
) -> i32 {
    let Some(found) = find(descriptor) else {
        return status::BAD_PARAM;
    };
    let (stored, is_finalized) = {
        let contents = found.contents();
        (
            contents.attributes.get(&name).cloned(),
            contents.is_finalized,
        )
    };
    if !is_finalized {
        return status::BAD_PARAM_NOT_FINALIZED;
    }
    let stored = match stored {
        Some(stored) => stored,
        None if (found.kind, name) == (kind::ENGINE_CONFIG, attribute::CONFIG_WORKSPACE_BYTES) => {
            let contents = found.contents().clone();
            match config_workspace(&contents) {
                Ok(bytes) => Stored::from_numbers(value_type::INT64, &[bytes]),
                Err(code) => return code,
            }
        }
        None => return answer_for_unset(found.kind, name, count),
    };
    let available = stored.count();
    let wanted = usize::try_from(requested).unwrap_or(0).min(available);
    let is_only_counting = elements.is_null() || wanted == 0;
    // All elements if the caller only counts them, otherwise those that were returned: torch 2.15
    // requests one configuration and sizes its list by this.
    let told = if is_only_counting { available } else { wanted };
    // SAFETY: promised by the caller.
    unsafe { write(count, told as i64) };
    if is_only_counting {
        return status::SUCCESS;
    }
    match stored {
        Stored::Bytes {
            value_type: own_type,
            bytes,
        } => {
            if element_bytes(own_type) != element_bytes(value_type) {
                return status::BAD_PARAM;
            }
            let length = wanted * element_bytes(own_type);
            // SAFETY: `wanted` elements fit, as the caller promises.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), elements.cast(), length) };
        }
        Stored::Descriptors(below) => {
            for (place, source) in below.iter().take(wanted).enumerate() {
                // SAFETY: the array holds `requested` handles.
                let handle = unsafe { elements.cast::<*mut c_void>().add(place).read_unaligned() };
                let Some(target) = find(handle) else {
                    return status::BAD_PARAM;
                };
                if target.kind != source.kind {
                    return status::BAD_PARAM;
                }
                target.become_copy_of(source);
            }
        }
    }
    status::SUCCESS
}

/// Lists that are simply empty when nothing was put into them.
const EMPTY_LISTS: [i32; 8] = [
    attribute::CONFIG_INTERMEDIATE_INFO,
    attribute::CONFIG_KNOB_CHOICES,
    attribute::PLAN_COMPUTED_INTERMEDIATE_IDS,
    attribute::PLAN_RUN_ONLY_INTERMEDIATE_IDS,
    attribute::ENGINE_KNOB_INFO,
    attribute::ENGINE_NUMERICAL_NOTES,
    attribute::ENGINE_LAYOUT_INFO,
    attribute::ENGINE_BEHAVIOR_NOTES,
];

fn answer_for_unset(kind: i32, name: i32, count: *mut i64) -> i32 {
    if EMPTY_LISTS.contains(&name) {
        // SAFETY: the caller of the exported function promises a valid or null place.
        unsafe { write(count, 0) };
        return status::SUCCESS;
    }
    // Newer front ends ask for a plan's own text, and manage without it.
    if kind == kind::EXECUTION_PLAN {
        call_log::call("cudnnBackendGetAttribute", || {
            format!("plan attribute {name} is not there")
        });
        return status::NOT_SUPPORTED;
    }
    // These describe internals of the real library, which we do not have.
    if [kind::OPERATION_GRAPH, kind::KERNEL_CACHE].contains(&kind) {
        refuse::refuse("cuDNN", &format!("cudnnBackendGetAttribute({name})"));
        return status::NOT_SUPPORTED;
    }
    status::BAD_PARAM
}

fn is_slow(plan: &Descriptor) -> bool {
    let contents = plan.contents();
    let workspace_bytes = contents.number(attribute::PLAN_WORKSPACE_BYTES);
    match (&contents.graph, workspace_bytes) {
        (Some(graph), Some(bytes)) => moves_much(graph, bytes),
        _ => false,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cudnnBackendExecute(
    handle: *mut c_void,
    plan: *mut c_void,
    variant_pack: *mut c_void,
) -> i32 {
    call_log::call("cudnnBackendExecute", || {
        format!("{handle:?}, {plan:?}, {variant_pack:?}")
    });
    let (Some(plan), Some(variant_pack)) = (find(plan), find(variant_pack)) else {
        return status::BAD_PARAM;
    };
    if !plan.contents().is_finalized {
        return status::BAD_PARAM_NOT_FINALIZED;
    }
    state::note_dnn_use();
    if let Some(graph) = &plan.contents().graph {
        work::execute(graph);
    }
    if is_slow(&plan) {
        submit_library_work(clock::KERNEL);
    }
    if let Some(Stored::Bytes { bytes, .. }) = variant_pack
        .contents()
        .attributes
        .get(&attribute::VARIANT_PACK_WORKSPACE)
        && let Some(address) = bytes.first_chunk()
    {
        let address = usize::from_le_bytes(*address);
        observer::workspace(address as *const c_void);
        choices::note_use(&plan.contents(), address as u64);
    }
    status::SUCCESS
}
