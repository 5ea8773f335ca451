//! Every language has every sentence, with the same variables, and everything that people read comes from
//! there.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use common::{corpus, heldout, read};
use fluent_syntax::ast::{Entry, Expression, InlineExpression, Pattern, PatternElement};
use fluent_syntax::parser::parse;
use ghostgpu_explain::{Catalogue, Effect, Explanation, Language, explain_on};

/// The variables of each sentence and of what belongs to it.
fn sentences(language: Language) -> BTreeMap<String, BTreeSet<String>> {
    let resource = parse(language.source()).expect("every entry can be read");
    let mut found = BTreeMap::new();
    for entry in resource.body {
        let Entry::Message(message) = entry else {
            continue;
        };
        let name = message.id.name.to_owned();
        let value = message.value.expect("a sentence has a text");
        let is_new = found.insert(name.clone(), variables(&value)).is_none();
        assert!(is_new, "{name} stands twice in {language:?}");
        for attribute in &message.attributes {
            let name = format!("{name}.{}", attribute.id.name);
            found.insert(name, variables(&attribute.value));
        }
    }
    found
}

fn variables(pattern: &Pattern<&str>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for element in &pattern.elements {
        let PatternElement::Placeable { expression } = element else {
            continue;
        };
        let inline = match expression {
            Expression::Inline(inline) => inline,
            Expression::Select { selector, variants } => {
                for variant in variants {
                    found.extend(variables(&variant.value));
                }
                selector
            }
        };
        if let InlineExpression::VariableReference { id } = inline {
            found.insert(id.name.to_owned());
        }
    }
    found
}

#[test]
fn all_languages_have_the_same_sentences_with_the_same_variables() {
    let english = sentences(Language::English);
    let chinese = sentences(Language::Chinese);
    assert!(english.len() > 500);
    for (name, variables) in &english {
        assert_eq!(chinese.get(name), Some(variables), "{name}");
    }
    for name in chinese.keys() {
        assert!(english.contains_key(name), "{name} is not in English");
    }
}

/// All Rust files below a folder, as one text.
fn source_of(folder: &Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => text.push_str(&source_of(&path)),
            false if path.extension().is_some_and(|extension| extension == "rs") => {
                text.push_str(&std::fs::read_to_string(&path).expect("a text"));
            }
            false => {}
        }
    }
    text
}

#[test]
fn every_sentence_is_used_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = source_of(&root.join("src")) + &source_of(&root.join("../answers/src/explain"));
    for name in sentences(Language::English).keys() {
        let name = name.split('.').next().unwrap_or_default();
        assert!(
            source.contains(&format!("\"{name}\"")),
            "nobody says {name:?}"
        );
    }
}

/// A catalogue that says nothing: what is still read in an explanation does not come from a catalogue.
fn silent() -> Catalogue {
    let mut source = String::new();
    for name in sentences(Language::English).keys() {
        match name.split_once('.') {
            // Attributes follow their sentence in the order of names.
            Some((_, attribute)) => source.push_str(&format!("    .{attribute} = ·\n")),
            None => source.push_str(&format!("{name} = ·\n")),
        }
    }
    Catalogue::of(Language::English, &source)
}

/// Everything in an explanation that is written for people.
fn texts(found: &Explanation, catalogue: &Catalogue) -> Vec<String> {
    let mut all = vec![found.finding.kind.title(catalogue)];
    for reasoned in &found.situations {
        all.push(reasoned.situation.words(catalogue));
        all.extend(reasoned.reasons.iter().cloned());
    }
    for advice in &found.advice {
        all.extend([advice.what.clone(), advice.why.clone()]);
        all.extend(advice.not_rehearsed_because.clone());
        // A remark behind a command.
        all.extend(
            advice
                .command
                .split_once("   # ")
                .map(|(_, remark)| remark.to_owned()),
        );
    }
    for unhelpful in &found.does_not_help {
        all.extend([unhelpful.what.clone(), unhelpful.why.clone()]);
    }
    all.extend(found.account.remarks.iter().cloned());
    all.extend(
        found
            .account
            .parts
            .iter()
            .map(|part| part.name.words(catalogue)),
    );
    all
}

#[test]
fn nothing_that_people_read_is_outside_the_catalogue() {
    let silent = silent();
    for effect in [
        Effect::Identical,
        Effect::Rounding,
        Effect::Precision,
        Effect::Training,
        Effect::Service,
    ] {
        assert_eq!(effect.words(&silent), "·");
    }
    for message in corpus().into_iter().chain(heldout()) {
        let log = read(message.text.as_bytes(), usize::MAX);
        let found = explain_on(&log, |_| None, &silent).expect("the corpus is understood");
        for text in texts(&found, &silent) {
            let is_said = text
                .chars()
                .any(|character| character.is_ascii_alphabetic());
            assert!(!is_said, "{}: {text:?}", message.source);
        }
    }
}

#[test]
fn a_chinese_explanation_is_chinese_and_has_the_same_figures_and_commands() {
    for message in corpus().into_iter().chain(heldout()) {
        let log = read(message.text.as_bytes(), usize::MAX);
        let of = |language: Language| {
            explain_on(&log, |_| None, language.catalogue()).expect("the corpus is understood")
        };
        let (english, chinese) = (of(Language::English), of(Language::Chinese));
        assert_eq!(english.finding, chinese.finding, "{}", message.source);
        let names = |found: &Explanation| -> Vec<String> {
            found
                .advice
                .iter()
                .map(|advice| advice.name.clone())
                .collect()
        };
        assert_eq!(names(&english), names(&chinese), "{}", message.source);
        let is_chinese = |text: &String| {
            text.chars()
                .any(|character| ('一'..='龥').contains(&character))
        };
        for reasoned in &chinese.situations {
            assert!(reasoned.reasons.iter().all(is_chinese), "{reasoned:?}");
        }
        for advice in &chinese.advice {
            assert!(
                is_chinese(&advice.what) && is_chinese(&advice.why),
                "{advice:?}"
            );
        }
    }
}
