//! Finalising: when cuDNN computes the derived attributes of a descriptor.

use std::collections::BTreeMap;
use std::sync::Arc;

use ghostgpu_oracle::{
    Contents, Descriptor, EngineConfig, KnobRange, Node, Stored, attribute, kind, value_type,
};

use crate::cudnn::{choices, handle, sizes, status};
use crate::state;

/// What `cudnnBackendFinalize` does, and its status.
pub fn finalize(descriptor: &Descriptor) -> i32 {
    if descriptor.contents().is_finalized {
        return status::SUCCESS;
    }
    let before = descriptor.contents().clone();
    let result = match descriptor.kind {
        kind::OPERATION_GRAPH => finalize_graph(descriptor),
        kind::ENGINE_HEURISTICS => finalize_heuristics(&before),
        kind::ENGINE => finalize_engine(&before),
        kind::ENGINE_CONFIG => finalize_config(&before),
        kind::EXECUTION_PLAN => finalize_plan(&before),
        // Tensors, operations, knobs and the rest have only the attributes that were set.
        _ => Ok(Contents::default()),
    };
    match result {
        Ok(additions) => {
            let mut contents = descriptor.contents();
            contents.attributes.extend(additions.attributes);
            contents.graph = additions.graph.or_else(|| contents.graph.take());
            contents.is_finalized = true;
            status::SUCCESS
        }
        Err(code) => {
            handle::set_last_error(&format!(
                "descriptor of kind {} could not be finalised on the virtual card: status {code}",
                descriptor.kind
            ));
            code
        }
    }
}

fn finalize_graph(descriptor: &Descriptor) -> Result<Contents, i32> {
    if descriptor
        .contents()
        .descriptors(attribute::GRAPH_OPERATIONS)
        .is_empty()
    {
        return Err(status::BAD_PARAM);
    }
    let graph = descriptor.to_node().with_counted_ids();
    Ok(Contents {
        graph: Some(Arc::new(graph)),
        ..Contents::default()
    })
}

/// The operation graph of the descriptor in this attribute.
fn graph_below(contents: &Contents, name: i32) -> Result<Arc<Node>, i32> {
    let below = contents
        .descriptors(name)
        .first()
        .ok_or(status::BAD_PARAM)?;
    below.contents().graph.clone().ok_or(status::BAD_PARAM)
}

fn finalize_heuristics(contents: &Contents) -> Result<Contents, i32> {
    let graph = graph_below(contents, attribute::HEURISTICS_GRAPH)?;
    let mode = contents.number(attribute::HEURISTICS_MODE).unwrap_or(0) as i32;
    let target = contents.number(attribute::HEURISTICS_SM_COUNT_TARGET);
    let target = target.map(|count| count as i32);
    let configs = sizes::heuristics(&graph, mode, target)?;
    choices::note_proposals(&graph, target, &configs);
    let results = configs
        .iter()
        .map(|config| Arc::new(config_descriptor(&graph, config)))
        .collect();
    let attributes =
        BTreeMap::from([(attribute::HEURISTICS_RESULTS, Stored::Descriptors(results))]);
    Ok(Contents {
        attributes,
        ..Contents::default()
    })
}

fn config_descriptor(graph: &Arc<Node>, config: &EngineConfig) -> Descriptor {
    let engine = engine_attributes(
        config.engine,
        &config.numerical_notes,
        &config.behavior_notes,
    );
    Descriptor::engine_config(engine, &config.knobs, graph)
}

fn engine_attributes(index: i64, numerical: &[i32], behavior: &[i32]) -> BTreeMap<i32, Stored> {
    let widen = |notes: &[i32]| {
        notes
            .iter()
            .map(|&note| i64::from(note))
            .collect::<Vec<_>>()
    };
    BTreeMap::from([
        (
            attribute::ENGINE_INDEX,
            Stored::from_numbers(value_type::INT64, &[index]),
        ),
        (
            attribute::ENGINE_NUMERICAL_NOTES,
            Stored::from_numbers(value_type::NUMERICAL_NOTE, &widen(numerical)),
        ),
        (
            attribute::ENGINE_BEHAVIOR_NOTES,
            Stored::from_numbers(value_type::BEHAVIOR_NOTE, &widen(behavior)),
        ),
    ])
}

/// An engine that the program named itself, not one that heuristics proposed.
fn finalize_engine(contents: &Contents) -> Result<Contents, i32> {
    let graph = graph_below(contents, attribute::ENGINE_GRAPH)?;
    let index = contents
        .number(attribute::ENGINE_INDEX)
        .ok_or(status::BAD_PARAM)?;
    let answer = sizes::engine(&graph, index)?;
    let mut attributes = engine_attributes(index, &answer.numerical_notes, &answer.behavior_notes);
    let knobs = answer.knobs.iter().map(knob_range_descriptor).collect();
    attributes.insert(attribute::ENGINE_KNOB_INFO, Stored::Descriptors(knobs));
    Ok(Contents {
        attributes,
        graph: Some(graph),
        ..Contents::default()
    })
}

fn knob_range_descriptor(range: &KnobRange) -> Arc<Descriptor> {
    let number = |value| Stored::from_numbers(value_type::INT64, &[value]);
    let attributes = BTreeMap::from([
        (
            attribute::KNOB_INFO_TYPE,
            Stored::from_numbers(value_type::KNOB_TYPE, &[i64::from(range.knob)]),
        ),
        (attribute::KNOB_INFO_MAXIMUM, number(range.maximum)),
        (attribute::KNOB_INFO_MINIMUM, number(range.minimum)),
        (attribute::KNOB_INFO_STRIDE, number(range.stride)),
    ]);
    Arc::new(Descriptor::finished(kind::KNOB_INFO, attributes, None))
}

fn finalize_config(contents: &Contents) -> Result<Contents, i32> {
    Ok(Contents {
        graph: Some(graph_below(contents, attribute::CONFIG_ENGINE)?),
        ..Contents::default()
    })
}

/// The workspace of an engine configuration, which programs may also query without a plan.
pub fn config_workspace(config: &Contents) -> Result<i64, i32> {
    let graph = config.graph.clone().ok_or(status::BAD_PARAM)?;
    let (engine, knobs) = config.engine_and_knobs().ok_or(status::BAD_PARAM)?;
    sizes::plan_workspace(&graph, engine, &knobs)
}

fn has_convolution(graph: &Node) -> bool {
    let operations = graph.nodes(attribute::GRAPH_OPERATIONS).iter();
    operations.map(|operation| operation.kind).any(|kind| {
        matches!(
            kind,
            kind::CONVOLUTION_FORWARD
                | kind::CONVOLUTION_BACKWARD_DATA
                | kind::CONVOLUTION_BACKWARD_FILTER
        )
    })
}

fn finalize_plan(contents: &Contents) -> Result<Contents, i32> {
    let config = contents
        .descriptors(attribute::PLAN_ENGINE_CONFIG)
        .first()
        .ok_or(status::BAD_PARAM)?;
    let config = config.contents().clone();
    let workspace_bytes = config_workspace(&config)?;
    if config.graph.as_deref().is_some_and(has_convolution) {
        state::note_convolution_plan();
    }
    let attributes = BTreeMap::from([(
        attribute::PLAN_WORKSPACE_BYTES,
        Stored::from_numbers(value_type::INT64, &[workspace_bytes]),
    )]);
    Ok(Contents {
        attributes,
        graph: config.graph,
        ..Contents::default()
    })
}
