//! Declares functions whose only results are values in device memory, with their real parameters.
//!
//! Such work is not done: the values can only be read through a copy, and copies from a virtual card
//! state what they assume. The parameters are there for the call log.

/// Writes a call and its arguments, by name, to the call log.
#[macro_export]
macro_rules! log_call {
    ($name:ident $(, $argument:ident)* $(,)?) => {
        $crate::call_log::call(stringify!($name), || {
            let arguments: &[String] =
                &[$(format!(concat!(stringify!($argument), "={:?}"), $argument)),*];
            arguments.join(", ")
        })
    };
}

/// Defines exported functions that do nothing but call `before`, and return 0 (success):
///
/// ```ignore
/// device_work! {
///     before: note_blas_use;
///     (handle: Handle, n: c_int, x: Matrix, stride: c_int) => cublasSscal_v2, cublasDscal_v2;
/// }
/// ```
///
/// After `before`, `workspace: name;` names the parameter that is the workspace, and
/// `records: function(parameter, …);` a function to call with the function's name and these parameters.
#[macro_export]
macro_rules! device_work {
    (
        before: $before:path; records: $record:ident $recorded:tt;
        $($parameters:tt => $($name:ident),+;)+
    ) => {
        $($($crate::device_work!(
            @define $before, $name, , $parameters, $record $recorded
        );)+)+
    };
    (
        before: $before:path; workspace: $workspace:ident; records: $record:ident $recorded:tt;
        $($parameters:tt => $($name:ident),+;)+
    ) => {
        $($($crate::device_work!(
            @define $before, $name, $workspace, $parameters, $record $recorded
        );)+)+
    };
    (before: $before:path; workspace: $workspace:ident; $($parameters:tt => $($name:ident),+;)+) => {
        $($($crate::device_work!(@define $before, $name, $workspace, $parameters);)+)+
    };
    (before: $before:path; $($parameters:tt => $($name:ident),+;)+) => {
        $($($crate::device_work!(@define $before, $name, , $parameters);)+)+
    };
    (
        @define $before:path, $name:ident, $($workspace:ident)?,
        ($($argument:ident: $type:ty),* $(,)?) $(, $record:ident ($($recorded:ident),*))?
    ) => {
        #[allow(clippy::too_many_arguments)] // NVIDIA's interface, not ours.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($argument: $type),*) -> i32 {
            $crate::log_call!($name $(, $argument)*);
            $crate::handed_on::forget_all();
            $before();
            $($record(stringify!($name), $($recorded),*);)?
            $($crate::observer::workspace($workspace.cast());)?
            0
        }
    };
}
