//! `ghostgpu tricks`: what there is to make a training fit.

use ghostgpu_answers::{in_json, tricks};
use ghostgpu_tricks::{Catalogue, Trick};

use super::answer_options::AnswerOptions;
use crate::failure::Failure;

/// List the tricks that save memory: what each saves, costs, and does to the numbers
///
/// `ghostgpu launch` applies them on the real card, and `ghostgpu run` rehearses them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ghostgpu tricks                  every trick, by what it does to the numbers
  ghostgpu tricks checkpointing    one in full, with options and conflicts
  ghostgpu tricks --json           everything, for programs")]
pub struct Arguments {
    /// Show this trick in full: its name or its flag
    #[arg(value_name = "NAME", allow_hyphen_values = true)]
    name: Option<String>,

    #[command(flatten)]
    answer: AnswerOptions,
}

pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    let catalogue = Catalogue::builtin();
    let shown: Vec<&Trick> = match &arguments.name {
        None => catalogue.tricks.iter().collect(),
        Some(name) => catalogue
            .tricks
            .iter()
            .filter(|trick| {
                trick.name == *name
                    || trick.flag.trim_start_matches('-') == name.trim_start_matches('-')
            })
            .collect(),
    };
    if let (true, Some(name)) = (shown.is_empty(), &arguments.name) {
        return Err(Failure::new(format!("there is no trick `{name}`"))
            .with_hint("`ghostgpu tricks` lists them")
            .into());
    }
    let output = arguments.answer.prepare()?;
    let is_in_full = arguments.name.is_some();
    output.answer(
        |style| match is_in_full {
            true => tricks::in_full(catalogue, &shown, style),
            false => tricks::text(catalogue, style),
        },
        || in_json(&tricks::json(catalogue, &shown)),
    )?;
    Ok(0)
}
