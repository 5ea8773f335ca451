//! The descriptor interface: follows the descriptors that a program builds, and records what
//! heuristics propose for a graph and what workspace a plan takes.

use std::ffi::c_void;
use std::sync::Arc;

use ghostgpu_library_sizes::{Answer, deep};
use ghostgpu_oracle::{Contents, Descriptor, Stored, attribute, element_bytes, kind, value_type};

use super::engines;
use crate::objects::Objects;
use crate::questions::{NOT_INITIALIZED, followed};
use crate::{real, real_function, recording};

type Object = *mut c_void;

static DESCRIPTORS: Objects<Arc<Descriptor>> = Objects::new();

followed! {
    real::CUDNN;
    cudnnBackendCreateDescriptor(kind: i32, target: *mut Object) {
        if !target.is_null() {
            // SAFETY: the real library has just written there.
            let handle = unsafe { target.read_unaligned() };
            DESCRIPTORS.insert(handle, Arc::new(Descriptor::new(kind)));
        }
    }
    cudnnBackendDestroyDescriptor(descriptor: Object) {
        DESCRIPTORS.remove(descriptor);
    }
    cudnnBackendSetAttribute(
        descriptor: Object, name: i32, value_type: i32, count: i64, elements: *const c_void
    ) {
        // SAFETY: the real library has accepted the elements.
        unsafe { set(descriptor, name, value_type, count, elements) };
    }
    cudnnBackendFinalize(descriptor: Object) {
        if let Some(found) = DESCRIPTORS.get(descriptor) {
            finalized(&found);
        }
    }
}

/// # Safety
/// `elements` points to `count` elements of this type.
unsafe fn set(descriptor: Object, name: i32, value_type: i32, count: i64, elements: *const c_void) {
    let (Some(found), Ok(count)) = (DESCRIPTORS.get(descriptor), usize::try_from(count)) else {
        return;
    };
    if elements.is_null() || count == 0 {
        return;
    }
    let stored = if value_type == value_type::DESCRIPTOR {
        // SAFETY: promised by the caller.
        let handles = unsafe { std::slice::from_raw_parts(elements.cast::<Object>(), count) };
        let below = handles.iter().filter_map(|&one| DESCRIPTORS.get(one));
        Stored::Descriptors(below.collect())
    } else {
        let length = count * element_bytes(value_type);
        // SAFETY: promised by the caller.
        let bytes = unsafe { std::slice::from_raw_parts(elements.cast::<u8>(), length) }.to_vec();
        Stored::Bytes { value_type, bytes }
    };
    found.contents().attributes.insert(name, stored);
}

/// Which graph a finished descriptor is about.
fn finalized(descriptor: &Descriptor) {
    let below = |name| {
        let contents = descriptor.contents();
        let below = contents.descriptors(name).first()?;
        below.contents().graph.clone()
    };
    let graph = match descriptor.kind {
        kind::OPERATION_GRAPH => Some(Arc::new(descriptor.to_node().with_counted_ids())),
        kind::ENGINE_HEURISTICS => below(attribute::HEURISTICS_GRAPH),
        kind::ENGINE => below(attribute::ENGINE_GRAPH),
        kind::ENGINE_CONFIG => below(attribute::CONFIG_ENGINE),
        kind::EXECUTION_PLAN => below(attribute::PLAN_ENGINE_CONFIG),
        _ => None,
    };
    let mut contents = descriptor.contents();
    contents.is_finalized = true;
    contents.graph = graph;
}

type GetAttribute = engines::GetAttribute;

/// # Safety
/// As cuDNN's documentation says: there is room for `requested` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudnnBackendGetAttribute(
    descriptor: Object,
    name: i32,
    value_type: i32,
    requested: i64,
    count: *mut i64,
    elements: *mut c_void,
) -> i32 {
    let Some(real) = real_function!(real::CUDNN, cudnnBackendGetAttribute, GetAttribute) else {
        return NOT_INITIALIZED;
    };
    // SAFETY: passed on as it came.
    let status = unsafe { real(descriptor, name, value_type, requested, count, elements) };
    if status != 0 || elements.is_null() || requested < 1 {
        return status;
    }
    let Some(found) = DESCRIPTORS.get(descriptor) else {
        return status;
    };
    match (found.kind, name) {
        (kind::ENGINE_HEURISTICS, attribute::HEURISTICS_RESULTS) => {
            // SAFETY: the real library has written that many, or as many as were asked for.
            let results = unsafe {
                let told = if count.is_null() { requested } else { *count };
                let length = usize::try_from(told.min(requested)).unwrap_or(0);
                std::slice::from_raw_parts(elements.cast::<Object>(), length)
            };
            proposed(&found, results);
        }
        (kind::EXECUTION_PLAN, attribute::PLAN_WORKSPACE_BYTES) => {
            let config = found
                .contents()
                .descriptors(attribute::PLAN_ENGINE_CONFIG)
                .first()
                .cloned();
            if let Some(config) = config {
                // SAFETY: the real library has written one 64-bit number.
                planned(&config.contents(), unsafe {
                    elements.cast::<i64>().read_unaligned()
                });
            }
        }
        (kind::ENGINE_CONFIG, attribute::CONFIG_WORKSPACE_BYTES) => {
            // SAFETY: the real library has written one 64-bit number.
            planned(&found.contents(), unsafe {
                elements.cast::<i64>().read_unaligned()
            });
        }
        _ => {}
    }
    status
}

/// Heuristics have filled these configurations: remembers the contents of each, and records the list.
fn proposed(heuristics: &Descriptor, results: &[Object]) {
    let (graph, mode) = {
        let contents = heuristics.contents();
        let mode = contents.number(attribute::HEURISTICS_MODE).unwrap_or(0);
        (contents.graph.clone(), mode)
    };
    let Some(graph) = graph else { return };
    let mut list = Vec::with_capacity(results.len());
    for &handle in results {
        let (Some(config), Some(shadow)) = (engines::read(handle), DESCRIPTORS.get(handle)) else {
            return;
        };
        *shadow.contents() = engines::contents(&config, &graph);
        let config = deep::Config {
            engine: config.engine,
            knobs: config.knobs,
            numerical_notes: config.numerical_notes,
            behavior_notes: config.behavior_notes,
        };
        list.push(config.words());
    }
    let mut answer = Answer::default();
    answer.add(deep::CONFIGS, list.join("|"));
    recording::record(deep::heuristics_question(&graph.words(), mode), answer);
}

fn planned(config: &Contents, workspace_bytes: i64) {
    let (Some(graph), Some((engine, knobs))) = (&config.graph, config.engine_and_knobs()) else {
        return;
    };
    let mut answer = Answer::default();
    answer.add(deep::WORKSPACE_BYTES, workspace_bytes);
    recording::record(
        deep::workspace_question(&graph.words(), engine, &knobs),
        answer,
    );
}
