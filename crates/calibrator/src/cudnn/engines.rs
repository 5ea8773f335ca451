//! What is inside an engine configuration that cuDNN itself has filled.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::Arc;

use ghostgpu_oracle::{
    Contents, Descriptor, EngineConfig, Node, Stored, attribute, kind, value_type,
};

use crate::{real, real_function};

type Object = *mut c_void;
type Create = unsafe extern "C" fn(i32, *mut Object) -> i32;
type Destroy = unsafe extern "C" fn(Object) -> i32;
pub type GetAttribute = unsafe extern "C" fn(Object, i32, i32, i64, *mut i64, *mut c_void) -> i32;

/// More knobs or notes than any engine has.
const MOST: usize = 64;

/// A descriptor made to read another one into it.
struct Own(Object);

impl Own {
    fn new(kind: i32) -> Option<Self> {
        let create = real_function!(real::CUDNN, cudnnBackendCreateDescriptor, Create)?;
        let mut made = std::ptr::null_mut();
        // SAFETY: the place is valid.
        let status = unsafe { create(kind, &raw mut made) };
        (status == 0).then_some(Self(made))
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        if let Some(destroy) = real_function!(real::CUDNN, cudnnBackendDestroyDescriptor, Destroy) {
            // SAFETY: made by `new`, and destroyed once.
            unsafe { destroy(self.0) };
        }
    }
}

/// Reads up to `room.len()` elements; returns how many there are.
fn get<T>(descriptor: Object, name: i32, value_type: i32, room: &mut [T]) -> Option<usize> {
    let real = real_function!(real::CUDNN, cudnnBackendGetAttribute, GetAttribute)?;
    let mut count = 0;
    // SAFETY: there is room for the elements asked for.
    let status = unsafe {
        real(
            descriptor,
            name,
            value_type,
            room.len() as i64,
            &raw mut count,
            room.as_mut_ptr().cast(),
        )
    };
    let count = usize::try_from(count).ok()?;
    (status == 0).then_some(count.min(room.len()))
}

/// The engine, its knobs and its notes.
pub fn read(config: Object) -> Option<EngineConfig> {
    let engine = Own::new(kind::ENGINE)?;
    get(
        config,
        attribute::CONFIG_ENGINE,
        value_type::DESCRIPTOR,
        &mut [engine.0],
    )?;
    let mut index = [0_i64];
    get(
        engine.0,
        attribute::ENGINE_INDEX,
        value_type::INT64,
        &mut index,
    )?;
    Some(EngineConfig {
        engine: index[0],
        knobs: knobs(config)?,
        numerical_notes: notes(
            engine.0,
            attribute::ENGINE_NUMERICAL_NOTES,
            value_type::NUMERICAL_NOTE,
        ),
        behavior_notes: notes(
            engine.0,
            attribute::ENGINE_BEHAVIOR_NOTES,
            value_type::BEHAVIOR_NOTE,
        ),
    })
}

fn notes(engine: Object, name: i32, value_type: i32) -> Vec<i32> {
    let mut room = [0_i32; MOST];
    let count = get(engine, name, value_type, &mut room).unwrap_or(0);
    room[..count].to_vec()
}

fn knobs(config: Object) -> Option<Vec<(i32, i64)>> {
    let choices: Vec<Own> = (0..MOST)
        .map(|_| Own::new(kind::KNOB_CHOICE))
        .collect::<Option<_>>()?;
    let mut handles: Vec<Object> = choices.iter().map(|one| one.0).collect();
    let count = get(
        config,
        attribute::CONFIG_KNOB_CHOICES,
        value_type::DESCRIPTOR,
        &mut handles,
    )
    .unwrap_or(0);
    choices[..count]
        .iter()
        .map(|choice| {
            let (mut knob, mut value) = ([0_i32], [0_i64]);
            get(
                choice.0,
                attribute::KNOB_CHOICE_TYPE,
                value_type::KNOB_TYPE,
                &mut knob,
            )?;
            get(
                choice.0,
                attribute::KNOB_CHOICE_VALUE,
                value_type::INT64,
                &mut value,
            )?;
            Some((knob[0], value[0]))
        })
        .collect()
}

/// The same as a followed descriptor has it when a program has set it itself.
pub fn contents(config: &EngineConfig, graph: &Arc<Node>) -> Contents {
    let index = Stored::from_numbers(value_type::INT64, &[config.engine]);
    let engine = BTreeMap::from([(attribute::ENGINE_INDEX, index)]);
    Descriptor::engine_config(engine, &config.knobs, graph)
        .contents()
        .clone()
}
