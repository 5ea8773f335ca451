//! The two kinds of functions: those whose answers are recorded, and those whose effects are tracked.

/// Defines, from a list in `ghostgpu_library_sizes`, functions that pass their call on and record it.
///
/// `objects` describes a descriptor, given the parameter's name and the handle.
macro_rules! recorded {
    ($library:expr, $objects:expr; $($parameters:tt => $($name:ident),+;)+) => {
        $($($crate::questions::recorded!(@define $library, $objects, $name $parameters);)+)+
    };
    (
        @define $library:expr, $objects:expr,
        $name:ident ($($role:ident $argument:ident: $type:ty),* $(,)?)
    ) => {
        $crate::questions::followed! {
            $library;
            $name($($argument: $type),*) {
                #[allow(unused_mut)] // not every function has arguments that decide
                let mut question = ghostgpu_library_sizes::Question::new(stringify!($name));
                let mut answer = ghostgpu_library_sizes::Answer::default();
                $($crate::questions::recorded!(
                    @note $role, $argument, question, answer, $objects
                );)*
                $crate::recording::record(question, answer);
            }
        }
    };
    (@note skip, $argument:ident, $question:ident, $answer:ident, $objects:expr) => {
        let _ = $argument;
    };
    (@note key, $argument:ident, $question:ident, $answer:ident, $objects:expr) => {
        $question.add(stringify!($argument), $argument);
    };
    (@note object, $argument:ident, $question:ident, $answer:ident, $objects:expr) => {
        $question.add(stringify!($argument), $objects(stringify!($argument), $argument));
    };
    (@note out, $argument:ident, $question:ident, $answer:ident, $objects:expr) => {
        if !$argument.is_null() {
            // SAFETY: the real function has just written there.
            $answer.add(stringify!($argument), unsafe { $argument.read_unaligned() });
        }
    };
}
pub(crate) use recorded;

/// Defines functions that pass their call on and, if it succeeded, run the given code.
macro_rules! followed {
    ($library:expr; $($name:ident ($($argument:ident: $type:ty),* $(,)?) $then:block)+) => {
        $(
            /// # Safety
            /// As the documentation of the library says.
            #[allow(clippy::too_many_arguments)] // NVIDIA's interface, not ours.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($argument: $type),*) -> i32 {
                type Function = unsafe extern "C" fn($($type),*) -> i32;
                let Some(real) = $crate::real_function!($library, $name, Function) else {
                    return $crate::questions::NOT_INITIALIZED;
                };
                // SAFETY: passed on as it came.
                let status = unsafe { real($($argument),*) };
                if status == 0 {
                    $then
                }
                status
            }
        )+
    };
}
pub(crate) use followed;

/// "Not initialised", in the status codes of all of these libraries.
pub const NOT_INITIALIZED: i32 = 1;
