//! How a command without an answer ends: one sentence, a next step, an exit code.

use ghostgpu_rehearse::Stop;
pub use ghostgpu_rehearse::{EXIT_DOES_NOT_FIT, EXIT_FAILURE, Failure};

/// The message for an error, and the exit code. The only place that handles interrupts.
pub fn ending(error: &anyhow::Error) -> (String, u8) {
    let stop = error.chain().find_map(|cause| cause.downcast_ref::<Stop>());
    if let Some(stop @ Stop::Interrupted(_)) = stop {
        let text = "ghostgpu: interrupted: everything the script had started was ended\n";
        return (text.to_owned(), stop.exit_code());
    }
    let failure = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<Failure>());
    let hint = match (stop, failure) {
        (Some(Stop::Refused(failure) | Stop::Failed(failure)), _) | (None, Some(failure)) => {
            failure.hint()
        }
        (Some(Stop::TimedOut(_)), _) => Some(TIMEOUT_HINT),
        _ => None,
    };
    let mut text = format!("ghostgpu: {error:#}\n");
    if let Some(hint) = hint {
        text.push_str(&format!("\nhint: {hint}\n"));
    }
    (text, EXIT_FAILURE)
}

/// What to do about a time limit.
pub const TIMEOUT_HINT: &str = "a longer `--timeout`, or fewer `--steps`, may let it end";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_one_sentence_and_then_its_hint() {
        let failure = Failure::new("no card is called `3o60`").with_hint("try `ghostgpu gpus`");
        let text = "ghostgpu: no card is called `3o60`\n\nhint: try `ghostgpu gpus`\n";
        let expected = (text.to_owned(), EXIT_FAILURE);
        assert_eq!(ending(&failure.clone().into()), expected);
        assert_eq!(ending(&Stop::Refused(failure).into()), expected);
    }

    #[test]
    fn causes_stand_in_the_same_line() {
        let error = anyhow::Error::new(std::io::Error::other("disk full")).context("cannot write");
        assert_eq!(ending(&error).0, "ghostgpu: cannot write: disk full\n");
    }

    #[test]
    fn an_interrupt_has_the_code_that_a_shell_gives() {
        let (text, code) = ending(&Stop::Interrupted(2).into());
        assert!(text.starts_with("ghostgpu: interrupted"), "{text}");
        assert_eq!(code, 130);
    }
}
