//! The real cuDNN: opened by path, and asked through its public backend functions.

use std::collections::HashMap;
use std::ffi::{CStr, CString, OsStr, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;

use crate::client::{COMPANIONS_VARIABLE, COMPILER_VARIABLE};
use crate::installed::{folders_beside, libraries};
use crate::numbers::{attribute, element_bytes, kind, value_type};
use crate::protocol::{EngineAnswer, EngineConfig, KnobRange, Node, PlanAnswer, Value};

type Descriptor = *mut c_void;

/// cuDNN's status `CUDNN_STATUS_NOT_SUPPORTED`.
const NOT_SUPPORTED: i32 = 3000;
/// Heuristics return a few dozen configurations at most; room for more costs nothing.
const MOST_CONFIGS: usize = 256;
/// `CUDNN_KNOB_TYPE_COUNTS` is 44 in cuDNN 9.19.
const MOST_KNOBS: usize = 64;

type CreateFunction = unsafe extern "C" fn(c_int, *mut Descriptor) -> c_int;
type PlainFunction = unsafe extern "C" fn(Descriptor) -> c_int;
type SetFunction = unsafe extern "C" fn(Descriptor, c_int, c_int, i64, *const c_void) -> c_int;
type GetFunction =
    unsafe extern "C" fn(Descriptor, c_int, c_int, i64, *mut i64, *mut c_void) -> c_int;
type VersionFunction = unsafe extern "C" fn() -> usize;

/// The six functions that carry everything.
pub struct Cudnn {
    create: CreateFunction,
    destroy: PlainFunction,
    finalize: PlainFunction,
    set: SetFunction,
    get: GetFunction,
    version: VersionFunction,
}

impl Cudnn {
    /// Opens the library, and before it those that it opens by name itself.
    pub fn open(path: &Path) -> Result<Self, String> {
        for companion in companions(path) {
            // A companion that cannot be opened matters only if cuDNN needs it.
            let _ = open_library(&companion);
        }
        let library = open_library(path)?;
        let find = |name: &CStr| {
            // SAFETY: `library` is open and stays so; the name is a C string.
            let address = unsafe { libc::dlsym(library, name.as_ptr()) };
            if address.is_null() {
                Err(format!(
                    "{} has no {}",
                    path.display(),
                    name.to_string_lossy()
                ))
            } else {
                Ok(address)
            }
        };
        let create = find(c"cudnnBackendCreateDescriptor")?;
        let destroy = find(c"cudnnBackendDestroyDescriptor")?;
        let finalize = find(c"cudnnBackendFinalize")?;
        let set = find(c"cudnnBackendSetAttribute")?;
        let get = find(c"cudnnBackendGetAttribute")?;
        let version = find(c"cudnnGetVersion")?;
        // SAFETY: the signatures are those of cudnn_graph_v9.h.
        unsafe {
            Ok(Self {
                create: std::mem::transmute::<*mut c_void, CreateFunction>(create),
                destroy: std::mem::transmute::<*mut c_void, PlainFunction>(destroy),
                finalize: std::mem::transmute::<*mut c_void, PlainFunction>(finalize),
                set: std::mem::transmute::<*mut c_void, SetFunction>(set),
                get: std::mem::transmute::<*mut c_void, GetFunction>(get),
                version: std::mem::transmute::<*mut c_void, VersionFunction>(version),
            })
        }
    }

    pub fn version(&self) -> usize {
        // SAFETY: takes nothing, returns a constant.
        unsafe { (self.version)() }
    }

    fn create(&self, kind: i32) -> Result<Owned<'_>, i32> {
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` is a valid place for the result.
        check(unsafe { (self.create)(kind, &raw mut raw) })?;
        Ok(Owned { cudnn: self, raw })
    }
}

/// Libraries that cuDNN opens by name: cuBLAS (it aborts without) and NVRTC.
///
/// Without those for which the client has put stand-ins where cuDNN will find them.
fn companions(cudnn: &Path) -> Vec<PathBuf> {
    let folders = folders_beside(cudnn);
    let mut found = libraries(&folders, "libnvJitLink.so.");
    if std::env::var_os(COMPILER_VARIABLE).is_none() {
        found.extend(libraries(&folders, "libnvrtc.so."));
    }
    if std::env::var_os(COMPANIONS_VARIABLE).is_none() {
        found.extend(libraries(&folders, "libcublasLt.so."));
        found.extend(libraries(&folders, "libcublas.so."));
    }
    found
}

fn open_library(path: &Path) -> Result<*mut c_void, String> {
    let name = CString::new(OsStr::as_bytes(path.as_os_str()))
        .map_err(|_| format!("{} is not a file name", path.display()))?;
    // SAFETY: a library of the user's own installation, which the user's torch loads just so.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    if handle.is_null() {
        Err(format!("{} cannot be opened", path.display()))
    } else {
        Ok(handle)
    }
}

fn check(status: i32) -> Result<(), i32> {
    if status == 0 { Ok(()) } else { Err(status) }
}

/// A descriptor that is destroyed when it goes out of scope.
struct Owned<'a> {
    cudnn: &'a Cudnn,
    raw: Descriptor,
}

impl Drop for Owned<'_> {
    fn drop(&mut self) {
        // SAFETY: `raw` came from `create` and is destroyed once.
        unsafe { (self.cudnn.destroy)(self.raw) };
    }
}

impl Owned<'_> {
    fn finalize(&self) -> Result<(), i32> {
        // SAFETY: `raw` is a live descriptor.
        check(unsafe { (self.cudnn.finalize)(self.raw) })
    }

    fn set_bytes(&self, name: i32, value_type: i32, count: usize, bytes: &[u8]) -> Result<(), i32> {
        // SAFETY: `bytes` holds `count` elements of `value_type`, packed.
        check(unsafe {
            (self.cudnn.set)(
                self.raw,
                name,
                value_type,
                count as i64,
                bytes.as_ptr().cast(),
            )
        })
    }

    fn set_numbers(&self, name: i32, value_type: i32, numbers: &[i64]) -> Result<(), i32> {
        let width = element_bytes(value_type);
        let per_element = width.div_ceil(8);
        let mut bytes = Vec::with_capacity(numbers.len() * width);
        for number in numbers {
            bytes.extend_from_slice(&number.to_le_bytes()[..width.min(8)]);
        }
        self.set_bytes(name, value_type, numbers.len() / per_element, &bytes)
    }

    fn set_descriptors(&self, name: i32, descriptors: &[Descriptor]) -> Result<(), i32> {
        // SAFETY: the array holds live descriptors.
        check(unsafe {
            (self.cudnn.set)(
                self.raw,
                name,
                value_type::DESCRIPTOR,
                descriptors.len() as i64,
                descriptors.as_ptr().cast(),
            )
        })
    }

    fn get_number(&self, name: i32, value_type: i32) -> Option<i64> {
        self.get_numbers(name, value_type, 1).first().copied()
    }

    fn get_numbers(&self, name: i32, value_type: i32, room: usize) -> Vec<i64> {
        let width = element_bytes(value_type).min(8);
        let mut bytes = vec![0u8; room * 8];
        let mut count = 0i64;
        // SAFETY: the buffer has room for `room` elements of any scalar type.
        let status = unsafe {
            (self.cudnn.get)(
                self.raw,
                name,
                value_type,
                room as i64,
                &raw mut count,
                bytes.as_mut_ptr().cast(),
            )
        };
        if status != 0 {
            return Vec::new();
        }
        let filled = usize::try_from(count).unwrap_or(0).min(room);
        bytes
            .chunks(width)
            .take(filled)
            .map(|chunk| {
                let mut word = [0u8; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                i64::from_le_bytes(word)
            })
            .collect()
    }

    fn get_descriptors(&self, name: i32, kind: i32, room: usize) -> Result<Vec<Owned<'_>>, i32> {
        let mut made = Vec::with_capacity(room);
        for _ in 0..room {
            made.push(self.cudnn.create(kind)?);
        }
        let mut raw: Vec<Descriptor> = made.iter().map(|one| one.raw).collect();
        let mut count = 0i64;
        // SAFETY: `raw` holds `room` live descriptors of the kind that is to be filled.
        check(unsafe {
            (self.cudnn.get)(
                self.raw,
                name,
                value_type::DESCRIPTOR,
                room as i64,
                &raw mut count,
                raw.as_mut_ptr().cast(),
            )
        })?;
        made.truncate(usize::try_from(count).unwrap_or(0));
        Ok(made)
    }
}

/// An operation graph rebuilt in the real cuDNN, on a described card.
pub struct Graph<'a> {
    cudnn: &'a Cudnn,
    device: Owned<'a>,
    /// The last one is the graph; those before it are what it refers to.
    descriptors: Vec<Owned<'a>>,
}

impl Drop for Graph<'_> {
    fn drop(&mut self) {
        // A descriptor is destroyed before those that it refers to.
        while self.descriptors.pop().is_some() {}
    }
}

impl<'a> Graph<'a> {
    pub fn build(cudnn: &'a Cudnn, device_text: &str, node: &Node) -> Result<Self, i32> {
        let device = cudnn.create(kind::DEVICE_PROPERTIES)?;
        let mut text = device_text.as_bytes().to_vec();
        let length = text.len();
        text.push(0);
        device.set_bytes(attribute::DEVICE_TEXT, value_type::CHAR, length, &text)?;
        device.finalize()?;
        let mut descriptors = Vec::new();
        rebuild(cudnn, node, &mut descriptors, &mut HashMap::new())?;
        Ok(Self {
            cudnn,
            device,
            descriptors,
        })
    }

    fn raw(&self) -> Descriptor {
        self.descriptors
            .last()
            .map_or(ptr::null_mut(), |graph| graph.raw)
    }

    pub fn heuristics(&self, mode: i32, sm_target: Option<i32>) -> Result<Vec<EngineConfig>, i32> {
        let heuristics = self.cudnn.create(kind::ENGINE_HEURISTICS)?;
        heuristics.set_descriptors(attribute::HEURISTICS_GRAPH, &[self.raw()])?;
        heuristics.set_numbers(
            attribute::HEURISTICS_MODE,
            value_type::HEURISTICS_MODE,
            &[i64::from(mode)],
        )?;
        heuristics.set_descriptors(attribute::HEURISTICS_DEVICE, &[self.device.raw])?;
        if let Some(target) = sm_target {
            let name = attribute::HEURISTICS_SM_COUNT_TARGET;
            heuristics.set_numbers(name, value_type::INT32, &[i64::from(target)])?;
        }
        heuristics.finalize()?;
        let configs = heuristics.get_descriptors(
            attribute::HEURISTICS_RESULTS,
            kind::ENGINE_CONFIG,
            MOST_CONFIGS,
        )?;
        configs.iter().map(describe_config).collect()
    }

    fn engine(&self, index: i64, sm_target: Option<i32>) -> Result<Owned<'a>, i32> {
        let engine = self.cudnn.create(kind::ENGINE)?;
        engine.set_descriptors(attribute::ENGINE_GRAPH, &[self.raw()])?;
        engine.set_numbers(attribute::ENGINE_INDEX, value_type::INT64, &[index])?;
        engine.set_descriptors(attribute::ENGINE_DEVICE, &[self.device.raw])?;
        if let Some(target) = sm_target {
            let name = attribute::ENGINE_SM_COUNT_TARGET;
            engine.set_numbers(name, value_type::INT32, &[i64::from(target)])?;
        }
        engine.finalize()?;
        Ok(engine)
    }

    pub fn describe_engine(&self, index: i64) -> Result<EngineAnswer, i32> {
        let engine = self.engine(index, None)?;
        let infos = engine
            .get_descriptors(attribute::ENGINE_KNOB_INFO, kind::KNOB_INFO, MOST_KNOBS)
            .unwrap_or_default();
        let number = |info: &Owned<'_>, name| info.get_number(name, value_type::INT64).unwrap_or(0);
        Ok(EngineAnswer {
            status: 0,
            numerical_notes: notes(&engine, attribute::ENGINE_NUMERICAL_NOTES),
            behavior_notes: notes(&engine, attribute::ENGINE_BEHAVIOR_NOTES),
            knobs: infos
                .iter()
                .map(|info| KnobRange {
                    knob: info
                        .get_number(attribute::KNOB_INFO_TYPE, value_type::KNOB_TYPE)
                        .unwrap_or(0) as i32,
                    minimum: number(info, attribute::KNOB_INFO_MINIMUM),
                    maximum: number(info, attribute::KNOB_INFO_MAXIMUM),
                    stride: number(info, attribute::KNOB_INFO_STRIDE),
                })
                .collect(),
        })
    }

    pub fn plan(
        &self,
        engine: i64,
        knobs: &[(i32, i64)],
        sm_target: Option<i32>,
    ) -> Result<PlanAnswer, i32> {
        let engine = self.engine(engine, sm_target)?;
        let config = self.cudnn.create(kind::ENGINE_CONFIG)?;
        config.set_descriptors(attribute::CONFIG_ENGINE, &[engine.raw])?;
        let mut choices = Vec::new();
        for &(knob, value) in knobs {
            let choice = self.cudnn.create(kind::KNOB_CHOICE)?;
            let knob = [i64::from(knob)];
            choice.set_numbers(attribute::KNOB_CHOICE_TYPE, value_type::KNOB_TYPE, &knob)?;
            choice.set_numbers(attribute::KNOB_CHOICE_VALUE, value_type::INT64, &[value])?;
            choice.finalize()?;
            choices.push(choice);
        }
        if !choices.is_empty() {
            let raw: Vec<Descriptor> = choices.iter().map(|one| one.raw).collect();
            config.set_descriptors(attribute::CONFIG_KNOB_CHOICES, &raw)?;
        }
        config.finalize()?;
        let plan = self.cudnn.create(kind::EXECUTION_PLAN)?;
        plan.set_descriptors(attribute::PLAN_ENGINE_CONFIG, &[config.raw])?;
        plan.set_descriptors(attribute::PLAN_DEVICE, &[self.device.raw])?;
        plan.finalize()?;
        let bytes = plan.get_number(attribute::PLAN_WORKSPACE_BYTES, value_type::INT64);
        Ok(PlanAnswer {
            status: 0,
            workspace_bytes: bytes.ok_or(NOT_SUPPORTED)?,
        })
    }
}

fn describe_config(config: &Owned<'_>) -> Result<EngineConfig, i32> {
    let engines = config.get_descriptors(attribute::CONFIG_ENGINE, kind::ENGINE, 1)?;
    let engine = engines.first().ok_or(NOT_SUPPORTED)?;
    let index = engine.get_number(attribute::ENGINE_INDEX, value_type::INT64);
    let choices = config
        .get_descriptors(
            attribute::CONFIG_KNOB_CHOICES,
            kind::KNOB_CHOICE,
            MOST_KNOBS,
        )
        .unwrap_or_default();
    let knobs = choices.iter().map(|choice| {
        let knob = choice.get_number(attribute::KNOB_CHOICE_TYPE, value_type::KNOB_TYPE);
        let value = choice.get_number(attribute::KNOB_CHOICE_VALUE, value_type::INT64);
        (knob.unwrap_or(0) as i32, value.unwrap_or(0))
    });
    Ok(EngineConfig {
        engine: index.ok_or(NOT_SUPPORTED)?,
        knobs: knobs.collect(),
        numerical_notes: notes(engine, attribute::ENGINE_NUMERICAL_NOTES),
        behavior_notes: notes(engine, attribute::ENGINE_BEHAVIOR_NOTES),
    })
}

fn notes(engine: &Owned<'_>, name: i32) -> Vec<i32> {
    let value_type = match name {
        attribute::ENGINE_NUMERICAL_NOTES => value_type::NUMERICAL_NOTE,
        _ => value_type::BEHAVIOR_NOTE,
    };
    let found = engine.get_numbers(name, value_type, 16);
    found.into_iter().map(|note| note as i32).collect()
}

/// Rebuilds one descriptor after those below it, and returns it.
///
/// Equal tensors are the same tensor, so each is built once; cuDNN then sees the graph's edges as
/// the original had them.
fn rebuild<'a, 'n>(
    cudnn: &'a Cudnn,
    node: &'n Node,
    built: &mut Vec<Owned<'a>>,
    tensors: &mut HashMap<&'n Node, Descriptor>,
) -> Result<Descriptor, i32> {
    if let Some(&known) = tensors.get(node) {
        return Ok(known);
    }
    let own = cudnn.create(node.kind)?;
    for one in &node.attributes {
        match &one.value {
            Value::Numbers(numbers) => own.set_numbers(one.name, one.value_type, numbers)?,
            Value::Nodes(nodes) => {
                let mut below = Vec::with_capacity(nodes.len());
                for child in nodes {
                    below.push(rebuild(cudnn, child, built, tensors)?);
                }
                own.set_descriptors(one.name, &below)?;
            }
        }
    }
    own.finalize()?;
    let raw = own.raw;
    built.push(own);
    if node.kind == kind::TENSOR {
        tensors.insert(node, raw);
    }
    Ok(raw)
}
