//! What runs in the process that holds the real cuDNN: read a question, answer it, repeat.

use std::io::{BufRead, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::protocol::{Answer, EngineAnswer, PlanAnswer, Question, Request};
use crate::replay::{Cudnn, Graph};

/// The first line the server writes.
#[derive(Debug, Serialize, Deserialize)]
pub enum Greeting {
    /// cuDNN's own version number, such as 91900.
    Version(usize),
    Failed(String),
}

/// Answers questions about the cuDNN at `library` until the input ends. Returns the exit code.
pub fn serve(library: &Path, input: impl BufRead, mut output: impl Write) -> i32 {
    let cudnn = match Cudnn::open(library) {
        Ok(cudnn) => cudnn,
        Err(reason) => {
            let _ = say(&mut output, &Greeting::Failed(reason));
            return 2;
        }
    };
    if say(&mut output, &Greeting::Version(cudnn.version())).is_err() {
        return 2;
    }
    // The last graph is kept: a heuristics question is followed by questions about its results.
    let mut last: Option<(String, crate::protocol::Node, Graph<'_>)> = None;
    for line in input.lines() {
        let Ok(line) = line else { return 2 };
        let Ok(request) = serde_json::from_str::<Request>(&line) else {
            return 2;
        };
        let is_known = last
            .as_ref()
            .is_some_and(|(device, node, _)| *device == request.device && *node == request.graph);
        let answer = if is_known {
            Ok(())
        } else {
            Graph::build(&cudnn, &request.device, &request.graph).map(|graph| {
                last = Some((request.device.clone(), request.graph.clone(), graph));
            })
        };
        let answer = match (answer, &last) {
            (Ok(()), Some((_, _, graph))) => reply(graph, &request.question),
            (Err(status), _) => refusal(&request.question, status),
            (Ok(()), None) => Answer::Crashed,
        };
        if say(&mut output, &answer).is_err() {
            return 0;
        }
    }
    0
}

fn say(output: &mut impl Write, value: &impl Serialize) -> std::io::Result<()> {
    serde_json::to_writer(&mut *output, value)?;
    output.write_all(b"\n")?;
    output.flush()
}

fn reply(graph: &Graph<'_>, question: &Question) -> Answer {
    let result = match question {
        Question::Heuristics { mode, sm_target } => graph
            .heuristics(*mode, *sm_target)
            .map(|configs| Answer::Heuristics { status: 0, configs }),
        Question::Engine { index } => graph.describe_engine(*index).map(Answer::Engine),
        Question::Plan {
            engine,
            knobs,
            sm_target,
        } => graph.plan(*engine, knobs, *sm_target).map(Answer::Plan),
    };
    result.unwrap_or_else(|status| refusal(question, status))
}

fn refusal(question: &Question, status: i32) -> Answer {
    match question {
        Question::Heuristics { .. } => Answer::Heuristics {
            status,
            configs: Vec::new(),
        },
        Question::Engine { .. } => Answer::Engine(EngineAnswer {
            status,
            ..EngineAnswer::default()
        }),
        Question::Plan { .. } => Answer::Plan(PlanAnswer {
            status,
            workspace_bytes: 0,
        }),
    }
}
