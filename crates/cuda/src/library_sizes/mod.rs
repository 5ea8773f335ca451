//! How large the workspaces of cuFFT, cuSOLVER and cuSPARSE are: from recordings, or else from a model.
//!
//! Such sizes are decided inside the libraries, which cannot be asked without a card. A question is
//! looked up, word for word, in the tables that the user has recorded (`ghostgpu run --library-sizes`), then in
//! the recording from an H200 that this library ships ([`shipped`]). Sizes that are not there are estimated
//! from those that are ([`model`], [`plan_model`]), and the answer says so. Questions without any similar
//! recording are refused by name.

mod model;
mod plan_model;
mod shipped;

use std::sync::OnceLock;

use ghostgpu_library_sizes::{Answer, Canonical, Question, Table};
use model::Found;

use crate::{notes, refuse, state};

/// The card that the shipped table was recorded on.
const RECORDED_ON: &str = "H200";

/// The answer to a question; `None` if the call was refused.
pub fn answer(library: &str, question: &Question) -> Option<Answer> {
    if let Some(answer) = users_table().get(question) {
        return Some(answer.clone());
    }
    match model::find(shipped::recording(), &Canonical::new(question)) {
        Some(Found::Recorded(answer)) => {
            assume_same_on_this_card(library);
            Some(answer)
        }
        Some(Found::Guessed(answer)) => {
            assume_same_on_this_card(library);
            notes::assume(&format!(
                "how much workspace {library} takes for sizes that were not recorded is guessed from \
                 sizes that were"
            ));
            Some(answer)
        }
        None => {
            refuse::refuse(library, &question.function);
            None
        }
    }
}

/// The answer from the user's own tables only, for questions that are otherwise answered elsewhere.
pub fn users_answer(question: impl FnOnce() -> Question) -> Option<Answer> {
    let table = users_table();
    if table.is_empty() {
        return None;
    }
    table.get(&question()).cloned()
}

fn assume_same_on_this_card(library: &str) {
    let is_other_card =
        state::current_sheet().is_some_and(|sheet| !sheet.name.contains(RECORDED_ON));
    if is_other_card {
        notes::assume(&format!(
            "workspace sizes of {library} are those recorded on an H200; `ghostgpu calibrate` on this card \
             and `--library-sizes` give its own"
        ));
    }
}

/// All tables that the user has named, later ones before earlier ones.
fn users_table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut all = Table::default();
        let paths = state::session().map_or(&[][..], |session| &session.library_sizes);
        for path in paths {
            // The command line has already read them, so this fails only if one was just removed.
            let text = std::fs::read_to_string(path).unwrap_or_default();
            match Table::read(&text) {
                Ok(table) => all.extend(table),
                Err(error) => notes::assume(&format!(
                    "the table {} could not be used: {error}",
                    path.display()
                )),
            }
        }
        all
    })
}

/// Defines, from a list in `ghostgpu_library_sizes`, functions that answer how much workspace is needed.
///
/// `$refused` is the status of a call that is not answered; `$objects` puts a descriptor into words.
macro_rules! answered {
    ($library:literal, $refused:expr, $objects:expr; $($parameters:tt => $($name:ident),+;)+) => {
        $($(
            $crate::library_sizes::answered!(
                @define $library, $refused, $objects, $name $parameters
            );
        )+)+
    };
    (
        @define $library:literal, $refused:expr, $objects:expr,
        $name:ident ($($role:ident $argument:ident: $type:ty),* $(,)?)
    ) => {
        /// # Safety
        /// Pointers to answers are valid or null.
        #[allow(clippy::too_many_arguments)] // NVIDIA's interface, not ours.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> i32 {
            $crate::log_call!($name $(, $argument)*);
            let mut question = ghostgpu_library_sizes::Question::new(stringify!($name));
            $($crate::library_sizes::answered!(@ask $role, $argument, question, $objects);)*
            let Some(answer) = $crate::library_sizes::answer($library, &question) else {
                return $refused;
            };
            $($crate::library_sizes::answered!(@tell $role, $argument, answer);)*
            0
        }
    };
    (@ask key, $argument:ident, $question:ident, $objects:expr) => {
        $question.add(stringify!($argument), $argument);
    };
    (@ask object, $argument:ident, $question:ident, $objects:expr) => {
        $question.add(stringify!($argument), $objects($argument));
    };
    (@ask $other:ident, $argument:ident, $question:ident, $objects:expr) => {};
    (@tell out, $argument:ident, $answer:ident) => {
        let value = $answer.number(stringify!($argument)).unwrap_or(0);
        // SAFETY: promised by the caller.
        unsafe { $crate::write_out($argument, value as _) };
    };
    (@tell $other:ident, $argument:ident, $answer:ident) => {};
}
pub(crate) use answered;
