//! Rehearses another text in place of the user's script, which stays as it is.

use std::ffi::OsString;
use std::path::Path;

use crate::rehearsal::Plan;

/// Runs a text in place of a script.
const IN_PLACE_OF: &str = include_str!("in_place_of.py");

/// The plan with the text in `file` in place of the script, which is the first of the plan's words.
pub fn in_place_of_the_script(plan: &Plan, file: &Path) -> Plan {
    let mut plan = plan.clone();
    let words = [OsString::from("-c"), IN_PLACE_OF.into(), file.into()];
    plan.words.splice(0..0, words);
    plan
}
