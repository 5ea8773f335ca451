//! Every message of the corpus is explained as expected.

mod common;

use common::{Expected, bytes_of, corpus, read};
use ghostgpu_explain::{Amount, Figures, Writer, explain};

type Figure = fn(&Figures) -> Option<Amount>;

fn check(expected: &Expected) -> Result<(), String> {
    let log = read(expected.text.as_bytes(), usize::MAX);
    let Some(explanation) = explain(&log) else {
        return Err("nothing was recognised".to_owned());
    };
    let finding = &explanation.finding;
    let mut wrong = Vec::new();
    let mut compare = |what: &str, found: String, wanted: String| {
        if found != wanted {
            wrong.push(format!("{what}: found {found}, expected {wanted}"));
        }
    };
    compare("kind", name_of(&finding.kind), expected.kind.clone());
    if let Some(memory) = &expected.memory {
        compare("memory", name_of(&finding.kind.memory()), memory.clone());
    }
    if let Some(purpose) = &expected.purpose {
        compare("purpose", name_of(&explanation.purpose), purpose.clone());
    }
    let advice = explanation.advice.iter();
    let advice: Vec<String> = advice
        .map(|each| format!("{} {} {}", each.what, each.command, each.why))
        .collect();
    let advice = advice.join("\n");
    let helps = expected.helps.iter().any(|word| advice.contains(word));
    if !expected.helps.is_empty() && !helps {
        compare(
            "advice",
            advice.clone(),
            format!("one of {:?}", expected.helps),
        );
    }
    for word in expected.never.iter().filter(|word| advice.contains(*word)) {
        compare("advice", advice.clone(), format!("nothing of {word}"));
    }
    let main = explanation.situations.first();
    compare(
        "situation",
        main.map(|main| name_of(&main.situation))
            .unwrap_or_default(),
        expected.situation.clone(),
    );
    let amounts: [(&str, &Option<String>, Figure); 9] = [
        ("asked", &expected.asked, |figures| figures.requested),
        ("total", &expected.total, |figures| figures.total),
        ("free", &expected.free, |figures| figures.free),
        ("allowed", &expected.allowed, |figures| figures.allowed),
        ("allocated", &expected.allocated, |figures| {
            figures.allocated
        }),
        ("reserved", &expected.reserved, |figures| figures.reserved),
        ("cached", &expected.cached, |figures| figures.cached),
        ("private pools", &expected.private_pools, |figures| {
            figures.private_pools
        }),
        ("this process", &expected.this_process, |figures| {
            figures.this_process
        }),
    ];
    for (name, wanted, figure) in amounts {
        if let Some(wanted) = wanted {
            let found = figure(&finding.figures).map(|amount| amount.bytes);
            compare(
                name,
                format!("{found:?}"),
                format!("{:?}", Some(bytes_of(wanted))),
            );
        }
    }
    if let Some(device) = expected.device {
        compare(
            "device",
            format!("{:?}", finding.figures.device),
            format!("{:?}", Some(device)),
        );
    }
    if let Some(processes) = expected.processes {
        compare(
            "processes",
            finding.figures.processes.len().to_string(),
            processes.to_string(),
        );
    }
    if let Some(wording) = &expected.wording {
        compare(
            "wording",
            finding
                .wording
                .map_or_else(String::new, |wording| wording.to_string()),
            wording.clone(),
        );
    }
    if let Some(adds_up) = expected.adds_up {
        compare(
            "adds up",
            format!("{:?}", explanation.account.adds_up),
            format!("{:?}", Some(adds_up)),
        );
    }
    if let Some(rank) = expected.rank {
        compare(
            "rank",
            format!("{:?}", finding.writer),
            format!("{:?}", Writer::Rank(rank)),
        );
    }
    if let Some(findings) = expected.findings {
        compare(
            "findings",
            log.findings.len().to_string(),
            findings.to_string(),
        );
    }
    if let Some(place) = &expected.place {
        let found = finding
            .traceback
            .as_ref()
            .and_then(|traceback| traceback.place());
        let found = found.map(|frame| format!("{}:{}", frame.file, frame.line));
        compare("place", found.unwrap_or_default(), place.clone());
    }
    if let Some(also) = &expected.also {
        let fits = explanation.situations.iter().skip(1);
        let found = fits
            .map(|each| name_of(&each.situation))
            .find(|name| name == also);
        compare("also", found.unwrap_or_default(), also.clone());
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(wrong.join("\n    ")),
    }
}

fn name_of(value: &impl serde::Serialize) -> String {
    let text = toml::Value::try_from(value).expect("a name");
    text.as_str().unwrap_or_default().to_owned()
}

#[test]
fn every_message_of_the_corpus_is_recognised() {
    let corpus = corpus();
    let failures: Vec<String> = corpus
        .iter()
        .filter_map(|expected| {
            let wrong = check(expected).err()?;
            Some(format!("{}\n    {wrong}", expected.source))
        })
        .collect();
    assert!(
        failures.is_empty(),
        "{} of {}:\n{}",
        failures.len(),
        corpus.len(),
        failures.join("\n")
    );
}

#[test]
fn the_corpus_has_the_specification_and_more_than_sixty_public_reports() {
    let corpus = corpus();
    let public = corpus
        .iter()
        .filter(|each| each.source.contains('#'))
        .count();
    assert!(public >= 60, "{public}");
    assert!(corpus.len() - public >= 50);
}

#[test]
fn all_advice_can_be_rehearsed_or_says_why_not() {
    for expected in corpus() {
        let log = read(expected.text.as_bytes(), usize::MAX);
        let explanation = explain(&log).expect("the corpus is understood");
        for advice in &explanation.advice {
            assert_ne!(
                advice.candidate.is_some(),
                advice.not_rehearsed_because.is_some(),
                "{}: {advice:?}",
                expected.source
            );
        }
    }
}
