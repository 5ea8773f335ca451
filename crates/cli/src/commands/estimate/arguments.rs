//! The arguments of `ghostgpu estimate`.

use std::ffi::OsString;

use clap::builder::PossibleValuesParser;

use ghostgpu_rehearse::Job;

use crate::commands::AnswerOptions;
use crate::commands::breakdown_options::BreakdownOptions;
use crate::commands::card_count::CardCount;
use crate::commands::rehearsal_options::RehearsalOptions;

/// The tasks that `python/ghostgpu/estimate/language.py` has classes for.
const TASKS: [&str; 7] = [
    "causal-lm",
    "masked-lm",
    "seq2seq-lm",
    "seq-classification",
    "token-classification",
    "question-answering",
    "image-classification",
];

/// Those of `python/ghostgpu/estimate/optimizers.py`.
const OPTIMIZERS: [&str; 16] = [
    "sgd",
    "sgd-momentum",
    "sgd-nesterov",
    "adam",
    "adam-fused",
    "adamw",
    "adamw-fused",
    "adamw-for-loop",
    "adamax",
    "nadam",
    "radam",
    "adagrad",
    "adadelta",
    "rmsprop",
    "rmsprop-momentum",
    "adafactor",
];

const DTYPES: [&str; 4] = ["fp32", "fp16", "bf16", "pure-bf16"];

/// Those of `python/ghostgpu/estimate/strategies.py`.
const STRATEGIES: [&str; 2] = ["ddp", "fsdp2"];

/// Rehearse the training of a well-known model, without a script
#[derive(Debug, clap::Args)]
#[command(long_about = "\
Rehearse the training of a well-known model, without a script

Your own transformers, torchvision or timm builds the model with random weights, and a plain training \
loop runs it on a virtual card. The answer is that of `ghostgpu run`. Nothing is downloaded.

NAME is one of
  - a built-in configuration: `bert-base`, `gpt2-xl`, `llama-3-8b`, `qwen2.5-7b`
  - a transformers `config.json`, or its folder
  - a Hugging Face name that is in the local cache: `org/model`
  - a torchvision model: `resnet50`, `torchvision:vit_b_16`
  - a timm model: `timm:convnext_tiny`")]
#[command(after_help = "\
Examples:
  ghostgpu estimate bert-base --batch 32 --seq 128 --dtype bf16 --gpu t4
  ghostgpu estimate ./config.json --batch 4 --seq 2048 --lora 16 --gpu 4090
  ghostgpu estimate resnet50 --batch 64 --optimizer sgd-momentum --gpu 3060
  ghostgpu estimate llama-2-7b --dtype pure-bf16 --inference --gpu 3090
  ghostgpu estimate bert-base --seq 512 --gpu 3060 --max-batch
  ghostgpu estimate llama-3-70b --strategy fsdp2 --gpu h100 --count 64 \\
    --batch 1 --seq 8192 --checkpointing

Exit codes: 0 it fits, 3 it does not, others as for `ghostgpu run`.")]
#[command(mut_arg("count", |argument| argument.help("Number of cards")))]
pub struct Arguments {
    /// What to train (see above)
    #[arg(value_name = "NAME", required_unless_present = "list")]
    pub name: Option<String>,

    #[command(flatten)]
    pub options: RehearsalOptions,

    /// Number of optimizer steps
    #[arg(long, value_name = "N", default_value_t = Job::STEPS)]
    pub steps: u64,

    #[command(flatten)]
    pub answer: AnswerOptions,

    #[command(flatten)]
    pub breakdown: BreakdownOptions,

    /// What the model is trained for [default: the task of its configuration]
    #[arg(long, value_parser = PossibleValuesParser::new(TASKS))]
    pub task: Option<String>,

    /// Samples per batch
    #[arg(long, value_name = "N", default_value_t = 8,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub batch: u32,

    /// Tokens per sample [default: 512, or the model's limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub seq: Option<u32>,

    /// Width and height of images [default: the model's own]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub image: Option<u32>,

    /// The optimizer, with torch's defaults (foreach unless the name says otherwise)
    #[arg(long, default_value = "adamw", value_parser = PossibleValuesParser::new(OPTIMIZERS))]
    pub optimizer: String,

    /// fp16, bf16: autocast with fp32 weights (fp16 with a gradient scaler); pure-bf16: everything in bf16
    #[arg(long, default_value = "fp32", value_parser = PossibleValuesParser::new(DTYPES))]
    pub dtype: String,

    #[command(flatten)]
    pub cards: CardCount,

    /// Train on all cards (`--count`), with a full copy on each (ddp) or sharded (fsdp2)
    ///
    /// With fsdp2, bf16 means FSDP's own mixed precision. With more than 4 ranks, only distinct ones are run.
    #[arg(long, value_parser = PossibleValuesParser::new(STRATEGIES),
          conflicts_with_all = ["max_batch", "grow", "inference", "lora"])]
    pub strategy: Option<String>,

    /// Train only LoRA adapters of this rank, on the query and value projections
    #[arg(long, value_name = "RANK", value_parser = clap::value_parser!(u32).range(1..))]
    pub lora: Option<u32>,

    /// Enable gradient checkpointing of the model's library
    #[arg(long)]
    pub checkpointing: bool,

    /// Batches per optimizer step
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub accumulate: u32,

    /// Run only forward passes, without gradients
    #[arg(long)]
    pub inference: bool,

    /// Number of classes [default: the model's own]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub classes: Option<u32>,

    /// Size of the vocabulary [default: the model's own]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub vocab: Option<u32>,

    /// Number of layers [default: the model's own]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub layers: Option<u32>,

    /// Attention implementation of transformers [default: its own choice, `sdpa` for most models]
    #[arg(long, value_parser = PossibleValuesParser::new(["eager", "sdpa"]))]
    pub attention: Option<String>,

    /// Pass a padding mask, as for batches of texts of different lengths
    #[arg(long)]
    pub padding_mask: bool,

    /// Also report how memory grows with the batch and the sequence length
    #[arg(long, conflicts_with = "max_batch")]
    pub grow: bool,

    /// Find the largest batch that fits instead (see `ghostgpu max-batch`)
    #[arg(long, conflicts_with_all = ["report", "record", "no_breakdown"])]
    pub max_batch: bool,

    /// Do not rehearse again to find the smallest memory the job needs
    #[arg(long)]
    pub no_retry: bool,

    /// List the built-in configurations and exit
    #[arg(long)]
    pub list: bool,
}

impl Arguments {
    /// The arguments of the training script.
    pub fn words(&self, name: &str) -> Vec<OsString> {
        let mut words: Vec<OsString> = Vec::new();
        let mut add = |option: &str, value: Option<String>| {
            if let Some(value) = value {
                words.extend([option.into(), value.into()]);
            }
        };
        let number = |value: Option<u32>| value.map(|value| value.to_string());
        add("--task", self.task.clone());
        add("--batch", Some(self.batch.to_string()));
        add("--seq", number(self.seq));
        add("--image", number(self.image));
        add("--optimizer", Some(self.optimizer.clone()));
        add("--dtype", Some(self.dtype.clone()));
        add("--strategy", self.strategy.clone());
        add("--lora", number(self.lora));
        add("--accumulate", Some(self.accumulate.to_string()));
        add("--classes", number(self.classes));
        add("--vocab", number(self.vocab));
        add("--layers", number(self.layers));
        add("--attention", self.attention.clone());
        add("--steps", Some(self.steps.to_string()));
        for (option, is_set) in [
            ("--checkpointing", self.checkpointing),
            ("--inference", self.inference),
            ("--padding-mask", self.padding_mask),
        ] {
            if is_set {
                words.push(option.into());
            }
        }
        // After `--`, even a name that begins with a hyphen is not an option.
        words.extend(["--".into(), name.into()]);
        words
    }
}
