//! `ghostgpu run`: rehearses a script and answers whether it fits.

mod arguments;
pub mod need;
pub mod prepare;
mod relative_paths;

use std::io::IsTerminal;

pub use arguments::Arguments;
use ghostgpu_report::write_html;
use ghostgpu_session::ProbePlace;

use crate::answer::{Answer, Circumstances, Need, user_frame};
use crate::commands::scaling::{self, Scaling, SequencePlace};
use crate::failure::Failure;
use crate::judge::{Rehearsal, Verdict};
use crate::output::{Output, print_all};
use crate::process::Cause;
use crate::recorded_memory::Memory;
use crate::rehearsal::{Plan, ScriptOutput};
use crate::report::{Look, json_report, text_report};
use ghostgpu_text::{human, seconds};
use prepare::{Prepared, prepare};

pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    let growth = arguments.grow.then(|| scaling::Wish {
        batch: match &arguments.arg {
            Some(option) => ProbePlace::Option(option.clone()),
            None => ProbePlace::TrainingLoader,
        },
        sequence: match &arguments.seq_arg {
            Some(option) => SequencePlace::Argument(option.clone()),
            None => SequencePlace::InBatches,
        },
    });
    execute_unless(arguments, growth, |_| None)
}

/// The same for a script of ours, which may say that it cannot do what it was asked.
pub fn execute_unless(
    arguments: &Arguments,
    growth: Option<scaling::Wish>,
    refusal: fn(&Rehearsal) -> Option<Failure>,
) -> anyhow::Result<u8> {
    let prepared = prepare(arguments)?;
    announce(&prepared);
    let is_json_on_stdout = prepared.json.as_ref().is_some_and(Output::is_stdout);
    let Prepared {
        plan,
        run_dir,
        json,
        report,
        record,
        torch,
        assumptions,
        ..
    } = prepared;
    let script_output = match is_json_on_stdout {
        true => ScriptOutput::AllToStderr,
        false => ScriptOutput::Inherited,
    };
    let finished = plan.rehearse(run_dir, false, script_output, &mut |_| {})?;
    let run = finished.rehearsal;
    if let Cause::Interrupted(signal) = run.supervised.cause {
        return Ok(interrupted(signal));
    }
    let verdict = run.verdict();
    if verdict == Verdict::PreloadBlocked {
        return Err(preload_failure(&run).into());
    }
    if let Some(failure) = refusal(&run) {
        return Err(failure.into());
    }
    let mut memory = finished.memory;
    let need = match verdict {
        Verdict::Fits => Need::Peak,
        Verdict::DoesNotFit if arguments.no_retry => Need::Unknown {
            because: "it was not looked for (--no-retry)".to_owned(),
        },
        Verdict::DoesNotFit => {
            let measured = need::measure_need(&plan)?;
            // The whole job's memory is what has to be made smaller, not only what came before the
            // failed request.
            if let (Need::Measured { .. }, Memory::Recorded(_)) = (&measured.need, &measured.memory)
            {
                memory = measured.memory;
            }
            measured.need
        }
        _ => Need::Unknown {
            because: "the script did not run to its end".to_owned(),
        },
    };
    let answer = Answer::new(
        &run,
        need,
        &Circumstances {
            card: &plan.session.devices[0],
            card_count: plan.session.devices.len(),
            torch_version: torch.as_ref().map(|torch| torch.version.as_str()),
            torch_cuda: torch.as_ref().and_then(|torch| torch.cuda.as_deref()),
            assumptions: &assumptions,
        },
    );
    complete(&mut memory, &answer, &plan)?;
    show(&answer, &memory, is_json_on_stdout)?;
    let scaling = match growth.map(|wish| scaling(&plan, &wish, verdict)) {
        Some(Ok(Ok(scaling))) => Some(scaling),
        Some(Ok(Err(signal))) => return Ok(interrupted(signal)),
        Some(Err(error)) => return Err(error),
        None => None,
    };
    if let Some(scaling) = &scaling {
        publish(&scaling.text(), is_json_on_stdout)?;
    }
    if let Some(output) = json {
        output.write(&json_report(&answer, &memory, scaling.as_ref())?)?;
    }
    write_recording(&memory, report, record)?;
    if let count @ 1.. = finished.removed_files.len() {
        eprintln!(
            "ghostgpu: removed {count} file{} that the script wrote, since a rehearsal's \
             checkpoints hold no trained weights (--keep-checkpoints keeps them)",
            if count == 1 { "" } else { "s" }
        );
    }
    match verdict {
        Verdict::TimedOut => Err(timeout_failure(arguments).into()),
        Verdict::Refused => Err(refusal_failure(&answer).into()),
        _ => {
            if run.supervised.ending.shell_code() == 137 && verdict == Verdict::ScriptKilled {
                eprintln!(
                    "ghostgpu: the script was killed by signal 9\n\nhint: the system does that when \
                     the machine itself runs out of memory"
                );
            }
            Ok(answer.exit_code)
        }
    }
}

fn interrupted(signal: i32) -> u8 {
    eprintln!("ghostgpu: interrupted: everything the script had started was ended");
    128u8.saturating_add(signal as u8)
}

/// How memory grows; or the signal that ended the runs.
fn scaling(
    plan: &Plan,
    wish: &scaling::Wish,
    verdict: Verdict,
) -> anyhow::Result<Result<Scaling, i32>> {
    if !matches!(verdict, Verdict::Fits | Verdict::DoesNotFit) {
        return Ok(Ok(Scaling::unknown("the script did not run to its end")));
    }
    eprintln!("ghostgpu: running it at other sizes, to see how its memory grows");
    scaling::measure(plan, wish)
}

/// The line that keeps a rehearsal from passing for the real thing, and what else is to be known.
fn announce(prepared: &Prepared) {
    let card = prepared.card();
    let name = match prepared.plan.session.devices.len() {
        1 => format!("a virtual {} ({})", card.name, human(card.total_bytes)),
        count => format!(
            "{count} virtual cards {} ({} each)",
            card.name,
            human(card.total_bytes)
        ),
    };
    eprintln!("ghostgpu: running on {name}: nothing is computed, every value read back is 0");
    for remark in &prepared.remarks {
        eprintln!("ghostgpu: note: {remark}");
    }
}

/// Adds to a recording what it is about.
fn complete(memory: &mut Memory, answer: &Answer, plan: &Plan) -> anyhow::Result<()> {
    let Memory::Recorded(recording) = memory else {
        return Ok(());
    };
    let card = &plan.session.devices[0];
    let about = &mut recording.about;
    about.command = plan
        .words
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    about.gpu = card.name.clone();
    about.gpu_total_bytes = card.total_bytes;
    about.capability = answer.gpu.capability.clone();
    let mut document = serde_json::to_value(answer)?;
    if let Ok(folder) = std::env::current_dir() {
        relative_paths::shorten(&mut recording.names, &mut document, &folder);
    }
    recording.about.answer = Some(serde_json::from_value(document)?);
    Ok(())
}

/// The page and the recording's own file, where they were asked for.
fn write_recording(
    memory: &Memory,
    report: Option<Output>,
    record: Option<Output>,
) -> anyhow::Result<()> {
    let Some(recording) = memory.recording() else {
        if report.is_some() || record.is_some() {
            let because = memory.missing_because().unwrap_or_default();
            return Err(Failure::new(format!("there is no recording to write: {because}"))
                .with_hint(
                    "a script is recorded when it starts CUDA and ends by itself, with PyTorch's own \
                     allocator (not `cudaMallocAsync`)",
                )
                .into());
        }
        return Ok(());
    };
    if let Some(output) = report {
        output.write_with(|out| Ok(write_html(recording, out)?))?;
    }
    if let Some(output) = record {
        output.write_with(|out| Ok(ghostgpu_recording::file::write(recording, out)?))?;
    }
    Ok(())
}

/// The report goes to standard output, unless the JSON does.
fn show(answer: &Answer, memory: &Memory, is_json_on_stdout: bool) -> anyhow::Result<()> {
    let is_terminal = match is_json_on_stdout {
        true => std::io::stderr().is_terminal(),
        false => std::io::stdout().is_terminal(),
    };
    let is_colour_unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let current_dir = std::env::current_dir().ok();
    let text = text_report(
        answer,
        memory,
        Look {
            has_colour: is_terminal && !is_colour_unwanted,
            current_dir: current_dir.as_deref(),
        },
    );
    publish(&text, is_json_on_stdout)
}

fn publish(text: &str, is_json_on_stdout: bool) -> anyhow::Result<()> {
    if is_json_on_stdout {
        eprint!("{text}");
        return Ok(());
    }
    print_all(text)
}

fn preload_failure(run: &Rehearsal) -> Failure {
    let reason = run.findings.preload_blocked.as_deref().unwrap_or_default();
    let separator = if reason.is_empty() { "" } else { ": " };
    Failure::new(format!(
        "the stand-in library was not loaded into the script's process{separator}{reason}"
    ))
    .with_hint(
        "something between us and the script dropped LD_PRELOAD (`env -i`, `sudo`, a setuid program \
         or a security policy): start the script without it",
    )
}

fn timeout_failure(arguments: &Arguments) -> Failure {
    let limit = arguments.options.timeout.map(seconds).unwrap_or_default();
    Failure::new(format!("the script did not end within {limit} (--timeout)"))
        .with_hint("a longer `--timeout`, or fewer `--steps`, may let it end")
}

fn refusal_failure(answer: &Answer) -> Failure {
    // The last refused call is the one that the script did not get over.
    let Some(call) = answer.refused.last() else {
        return Failure::new("the script stopped at a call that is not simulated");
    };
    let place = user_frame(&call.stack)
        .map(|frame| format!(", called from {}:{}", frame.file, frame.line))
        .unwrap_or_default();
    Failure::new(format!(
        "the script stopped at `{}`{place}, which is not simulated",
        call.function
    ))
    .with_hint("`ghostgpu doctor` shows what is simulated, `--trace FILE` what the script called")
}
