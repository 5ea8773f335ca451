//! The numbers of cuDNN's backend interface that we need, from the public header
//! `cudnn_graph_v9.h`.

/// `cudnnBackendDescriptorType_t`
pub mod kind {
    pub const CONVOLUTION: i32 = 1;
    pub const ENGINE: i32 = 2;
    pub const ENGINE_CONFIG: i32 = 3;
    pub const ENGINE_HEURISTICS: i32 = 4;
    pub const EXECUTION_PLAN: i32 = 5;
    pub const KNOB_CHOICE: i32 = 7;
    pub const KNOB_INFO: i32 = 8;
    pub const CONVOLUTION_FORWARD: i32 = 10;
    pub const CONVOLUTION_BACKWARD_FILTER: i32 = 11;
    pub const CONVOLUTION_BACKWARD_DATA: i32 = 12;
    pub const OPERATION_GRAPH: i32 = 15;
    pub const TENSOR: i32 = 17;
    pub const KERNEL_CACHE: i32 = 34;
    pub const DEVICE_PROPERTIES: i32 = 38;
}

/// `cudnnBackendAttributeName_t`
pub mod attribute {
    pub const HEURISTICS_MODE: i32 = 200;
    pub const HEURISTICS_GRAPH: i32 = 201;
    pub const HEURISTICS_RESULTS: i32 = 202;
    pub const HEURISTICS_SM_COUNT_TARGET: i32 = 203;
    pub const HEURISTICS_DEVICE: i32 = 204;
    pub const CONFIG_ENGINE: i32 = 300;
    pub const CONFIG_INTERMEDIATE_INFO: i32 = 301;
    pub const CONFIG_KNOB_CHOICES: i32 = 302;
    pub const CONFIG_WORKSPACE_BYTES: i32 = 303;
    pub const PLAN_ENGINE_CONFIG: i32 = 401;
    pub const PLAN_WORKSPACE_BYTES: i32 = 402;
    pub const PLAN_COMPUTED_INTERMEDIATE_IDS: i32 = 403;
    pub const PLAN_RUN_ONLY_INTERMEDIATE_IDS: i32 = 404;
    pub const PLAN_DEVICE: i32 = 407;
    pub const KNOB_CHOICE_TYPE: i32 = 600;
    pub const KNOB_CHOICE_VALUE: i32 = 601;
    pub const GRAPH_OPERATIONS: i32 = 801;
    pub const TENSOR_DATA_TYPE: i32 = 901;
    pub const TENSOR_DIMENSIONS: i32 = 902;
    pub const TENSOR_STRIDES: i32 = 903;
    pub const TENSOR_UNIQUE_ID: i32 = 906;
    pub const VARIANT_PACK_WORKSPACE: i32 = 1003;
    pub const KNOB_INFO_TYPE: i32 = 1200;
    pub const KNOB_INFO_MAXIMUM: i32 = 1201;
    pub const KNOB_INFO_MINIMUM: i32 = 1202;
    pub const KNOB_INFO_STRIDE: i32 = 1203;
    pub const ENGINE_GRAPH: i32 = 1300;
    pub const ENGINE_INDEX: i32 = 1301;
    pub const ENGINE_KNOB_INFO: i32 = 1302;
    pub const ENGINE_NUMERICAL_NOTES: i32 = 1303;
    pub const ENGINE_LAYOUT_INFO: i32 = 1304;
    pub const ENGINE_BEHAVIOR_NOTES: i32 = 1305;
    pub const ENGINE_SM_COUNT_TARGET: i32 = 1306;
    pub const ENGINE_DEVICE: i32 = 1307;
    pub const DEVICE_TEXT: i32 = 2702;
}

/// `cudnnBackendAttributeType_t`
pub mod value_type {
    pub const HANDLE: i32 = 0;
    pub const BOOLEAN: i32 = 2;
    pub const INT64: i32 = 3;
    pub const DOUBLE: i32 = 5;
    pub const VOID_POINTER: i32 = 6;
    pub const HEURISTICS_MODE: i32 = 8;
    pub const KNOB_TYPE: i32 = 9;
    pub const NUMERICAL_NOTE: i32 = 11;
    pub const DESCRIPTOR: i32 = 15;
    pub const BEHAVIOR_NOTE: i32 = 19;
    pub const INT32: i32 = 23;
    pub const CHAR: i32 = 24;
    pub const FRACTION: i32 = 26;
}

/// How many bytes one element of this type takes in an attribute's array.
pub fn element_bytes(value_type: i32) -> usize {
    match value_type {
        value_type::BOOLEAN | value_type::CHAR => 1,
        value_type::HANDLE
        | value_type::INT64
        | value_type::DOUBLE
        | value_type::VOID_POINTER
        | value_type::DESCRIPTOR => 8,
        // A numerator and a denominator, both int64.
        value_type::FRACTION => 16,
        // Floats, 32-bit integers and every enumeration.
        _ => 4,
    }
}
