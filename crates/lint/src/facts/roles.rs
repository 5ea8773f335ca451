//! What a name of unknown origin is called for: `model(x)` of a function's parameter `model` runs a
//! model, `criterion(output, target)` computes a loss. Functions that a file never calls show no more
//! than this of their parameters.

use crate::syntax::last_name;

/// Words for models; a name has the role if one of its words is among them.
const MODELS: &[&str] = &[
    "ae",
    "actor",
    "agent",
    "alexnet",
    "autoencoder",
    "backbone",
    "bert",
    "classifier",
    "clip",
    "cnn",
    "captioner",
    "convnet",
    "critic",
    "decoder",
    "denoiser",
    "densenet",
    "detector",
    "disc",
    "discriminator",
    "dqn",
    "efficientnet",
    "embedder",
    "encoder",
    "extractor",
    "featurizer",
    "enhancer",
    "gat",
    "gcn",
    "gen",
    "generator",
    "gnn",
    "gpt",
    "gru",
    "inception",
    "lenet",
    "llm",
    "lm",
    "lstm",
    "mlp",
    "mobilenet",
    "model",
    "module",
    "nerf",
    "net",
    "network",
    "online",
    "pointnet",
    "policy",
    "predictor",
    "projector",
    "qnet",
    "regressor",
    "resnet",
    "recognizer",
    "refiner",
    "rnn",
    "segmenter",
    "segnet",
    "separator",
    "student",
    "teacher",
    "swin",
    "tower",
    "transformer",
    "translator",
    "trunk",
    "unet",
    "vae",
    "vgg",
    "vit",
    "vocoder",
    "vqgan",
    "vqvae",
    "wavenet",
    "xception",
];

/// Words for what is not a model although it has a word of one: `model_fn`, `net_name`.
const NOT_MODELS: &[&str] = &[
    "build",
    "builder",
    "class",
    "cls",
    "count",
    "create",
    "define",
    "export",
    "factory",
    "fn",
    "freeze",
    "func",
    "function",
    "get",
    "init",
    "instantiate",
    "load",
    "loss",
    "make",
    "name",
    "new",
    "path",
    "prepare",
    "print",
    "reset",
    "save",
    "setup",
    "step",
    "summary",
    "train",
    "transform",
    "unfreeze",
    "update",
    "wrap",
];

/// Whether an optimizer of unknown origin is, by its name, that of a model: `optD` of `D`, `optimizer_G` of
/// `netG`, `disc_opt` of `discriminator`.
pub fn is_named_after(optimizer: &str, model: &str) -> bool {
    let model = words(last_name(model));
    words(last_name(optimizer))
        .iter()
        .filter(|word| !matches!(word.as_str(), "opt" | "optim" | "optimizer"))
        .any(|word| {
            model.iter().any(|each| {
                each == word || MODELS.contains(&each.as_str()) && each.starts_with(word.as_str())
            })
        })
}

/// The letter that an optimizer of unknown origin has in its name for its model: `e` of `opt_e`.
pub fn initial_of(optimizer: &str) -> Option<char> {
    let words = words(last_name(optimizer));
    let mut others = words
        .iter()
        .filter(|word| !matches!(word.as_str(), "opt" | "optim" | "optimizer"));
    match (others.next(), others.next()) {
        (Some(word), None) if word.len() == 1 => word.chars().next(),
        _ => None,
    }
}

/// The letters of the last word of an optimizer's name, if it has two or three capital ones: `QG` of
/// `optimizer_QG`.
pub fn letters_of(optimizer: &str) -> Option<&str> {
    let last = last_name(optimizer).rsplit('_').next()?;
    let is_so =
        matches!(last.len(), 2 | 3) && last.chars().all(|letter| letter.is_ascii_uppercase());
    is_so.then_some(last)
}

/// Whether a model of unknown origin is, by its name, a copy that others learn from and nobody trains:
/// the target network of Q-learning.
pub fn sounds_like_target_network(path: &str) -> bool {
    let words = words(last_name(path));
    words.iter().any(|word| word == "target")
        && words.iter().any(|word| {
            matches!(
                word.as_str(),
                "net" | "network" | "model" | "actor" | "critic" | "q"
            )
        })
}

/// The words that an optimizer has in its name for its model: `feat` of `feat_opt`.
pub fn words_for_model(optimizer: &str) -> Option<Vec<String>> {
    if !sounds_like_model_optimizer(optimizer) {
        return None;
    }
    let mut words = words(last_name(optimizer));
    words.retain(|word| !matches!(word.as_str(), "opt" | "optim" | "optimizer"));
    (!words.is_empty() && words.iter().all(|word| word.len() > 1)).then_some(words)
}

/// Whether a path is named by these words alone, and not like a class.
pub fn is_named(path: &str, by: &[String]) -> bool {
    let name = last_name(path);
    name.starts_with(|first: char| first.is_ascii_lowercase()) && words(name) == by
}

/// What a path of unknown origin is called for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Model,
    Criterion,
}

/// The role of a path that is called.
pub fn role(path: &str) -> Option<Role> {
    let name = last_name(path);
    if name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.contains(|letter: char| letter.is_ascii_lowercase())
    {
        // A class.
        return None;
    }
    if name.len() > 1 && !name.contains(|letter: char| letter.is_ascii_lowercase()) {
        // A class too (`VAE`), or a constant.
        return None;
    }
    let words = words(name);
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    let is_loss = has(&["criterion", "crit", "losses"])
        || words
            .iter()
            .any(|word| word.starts_with("loss") || word.ends_with("loss"));
    let is_model = has(MODELS) || words.iter().any(|word| sounds_like_net(word));
    if is_loss && !has(&["get", "make", "build", "log"]) {
        Some(Role::Criterion)
    } else if is_model && !has(NOT_MODELS) || matches!(name, "D" | "G") {
        Some(Role::Model)
    } else {
        None
    }
}

/// `posenet`, `hrnet`: named like a network, unlike `planet` and `subnet`.
fn sounds_like_net(word: &str) -> bool {
    word.ends_with("net")
        && !matches!(
            word,
            "cabinet"
                | "ethernet"
                | "imagenet"
                | "internet"
                | "magnet"
                | "planet"
                | "subnet"
                | "telnet"
        )
}

/// Whether a path of unknown origin gives batches: `val_loader`, `train_dl`, `self.dataloader`.
pub fn sounds_like_loader(path: &str) -> bool {
    // `loaders["val"]` is one of several.
    let path = match path.strip_suffix(']') {
        Some(_) => path.rsplit_once('[').map_or(path, |(several, _)| several),
        None => path,
    };
    let name = last_name(path);
    let name = name.trim_end_matches(|last: char| last.is_ascii_digit() || last == '_');
    let words = words(name);
    name.to_ascii_lowercase().ends_with("loader")
        || matches!(
            words.last().map(String::as_str),
            Some("dl" | "loaders" | "batches" | "dataloaders")
        )
}

/// Whether a path of unknown origin is what steps: an optimizer, a scheduler, a scaler.
pub fn sounds_like_optimizer(path: &str) -> bool {
    words(last_name(path)).iter().any(|word| {
        matches!(
            word.as_str(),
            "optimizer" | "optim" | "opt" | "scheduler" | "sched" | "scaler"
        )
    })
}

/// Whether a path of unknown origin is what steps with a model's gradients, not with a number of steps.
pub fn sounds_like_model_optimizer(path: &str) -> bool {
    let words = words(last_name(path));
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    has(&["optimizer", "optim", "opt"]) && !has(&["scheduler", "sched", "lr", "scaler"])
}

/// Whether a path of unknown origin is what an agent acts in.
pub fn sounds_like_environment(path: &str) -> bool {
    words(last_name(path))
        .iter()
        .any(|word| matches!(word.as_str(), "env" | "envs" | "environment"))
}

/// Whether a function is, by its name, one that evaluates: `evaluate`, `val_epoch`, `test`.
pub fn sounds_like_evaluation(name: &str) -> bool {
    let words = words(name);
    words.iter().any(|word| {
        matches!(
            word.as_str(),
            "eval"
                | "evaluate"
                | "evaluation"
                | "val"
                | "valid"
                | "validate"
                | "validation"
                | "test"
                | "predict"
                | "infer"
                | "inference"
        )
    }) && !words
        .iter()
        .any(|word| matches!(word.as_str(), "train" | "loss" | "losses"))
}

/// Whether one of several results of a model is, by its name, a tensor that the model computed: `attention`,
/// `features`, `mu`.
pub fn sounds_like_activation(path: &str) -> bool {
    words(last_name(path)).iter().any(|word| {
        matches!(
            word.as_str(),
            "activation"
                | "activations"
                | "attention"
                | "attentions"
                | "attn"
                | "emb"
                | "embedding"
                | "embeddings"
                | "feat"
                | "feats"
                | "feature"
                | "features"
                | "hidden"
                | "latent"
                | "latents"
                | "logits"
                | "logvar"
                | "mu"
        )
    })
}

/// Whether what a model gives is, by its name, a number for each place and not a vector: `quantized_indices`.
pub fn sounds_like_indices(path: &str) -> bool {
    words(last_name(path))
        .iter()
        .any(|word| matches!(word.as_str(), "ids" | "idx" | "index" | "indices"))
}

/// Whether a path of unknown origin is a device.
pub fn sounds_like_device(path: &str) -> bool {
    matches!(
        words(last_name(path)).last().map(String::as_str),
        Some("device" | "dev")
    )
}

/// Whether an object is named like a class: `meter` or `loss_meter` like `AverageMeter`.
pub fn share_a_word(object: &str, class: &str) -> bool {
    let object = words(last_name(object));
    words(class).iter().any(|word| {
        word.len() > 1
            && object
                .iter()
                .any(|each| each == word || each.strip_suffix('s') == Some(word))
    })
}

/// The words of a name, in lower case, without numbers: `teacher` and `net` of `TeacherNet2`.
fn words(name: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut before = '_';
    for letter in name.chars() {
        let begins = letter.is_ascii_uppercase() && !before.is_ascii_uppercase();
        if !letter.is_ascii_alphabetic() {
            all.push(String::new());
        } else if begins || all.is_empty() {
            all.push(letter.to_ascii_lowercase().to_string());
        } else if let Some(word) = all.last_mut() {
            word.push(letter.to_ascii_lowercase());
        }
        before = letter;
    }
    all.retain(|word| !word.is_empty());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_role_of_their_words() {
        for (path, expected) in [
            ("model", Some(Role::Model)),
            ("self.teacher_net2", Some(Role::Model)),
            ("netG", Some(Role::Model)),
            ("args.model", Some(Role::Model)),
            ("loss_fn", Some(Role::Criterion)),
            ("lossfn", Some(Role::Criterion)),
            ("posenet", Some(Role::Model)),
            ("self.criterion", Some(Role::Criterion)),
            ("criterionGAN", Some(Role::Criterion)),
            ("G", Some(Role::Model)),
            ("TeacherNet", None),
            ("VAE", None),
            ("model_fn", None),
            ("build_encoder", None),
            ("network_name", None),
            ("get_loss", None),
            ("planet", None),
            ("run", None),
        ] {
            assert_eq!(role(path), expected, "{path}");
        }
    }

    #[test]
    fn optimizers_are_those_of_the_models_they_are_named_after() {
        for (optimizer, model, expected) in [
            ("optD", "D", true),
            ("optD", "G", false),
            ("self.optimizer_G", "self.netG", true),
            ("disc_opt", "discriminator", true),
            ("disc_opt", "generator", false),
            ("optimizer", "model", false),
        ] {
            assert_eq!(
                is_named_after(optimizer, model),
                expected,
                "{optimizer}, {model}"
            );
        }
    }

    #[test]
    fn objects_are_named_like_their_class() {
        for (object, class, expected) in [
            ("meter", "AverageMeter", true),
            ("self.replay_buffer", "ReplayBuffer", true),
            ("ema", "EMA", true),
            ("meters", "AverageMeter", true),
            ("pbar", "AverageMeter", false),
            ("losses", "AverageMeter", false),
        ] {
            assert_eq!(share_a_word(object, class), expected, "{object}, {class}");
        }
    }

    #[test]
    fn a_target_network_is_known_by_its_name() {
        for (path, expected) in [
            ("target_net", true),
            ("self.critic_target", true),
            ("q_target", true),
            ("target", false),
            ("net", false),
        ] {
            assert_eq!(sounds_like_target_network(path), expected, "{path}");
        }
    }

    #[test]
    fn functions_that_evaluate_are_known_by_their_names() {
        for (name, expected) in [
            ("evaluate", true),
            ("val_epoch", true),
            ("test_classifier", true),
            ("train_and_validate", false),
            ("validation_loss", false),
            ("run", false),
        ] {
            assert_eq!(sounds_like_evaluation(name), expected, "{name}");
        }
    }

    #[test]
    fn loaders_and_devices_are_known_by_their_last_word() {
        for (path, is_loader, is_device) in [
            ("train_loader", true, false),
            ("self.valDataLoader", true, false),
            ("valid_dl", true, false),
            ("self.loaders[\"val\"]", true, false),
            ("loader1", true, false),
            ("downloader_name", false, false),
            ("args.device", false, true),
            ("DEVICE", false, true),
            ("device_count", false, false),
        ] {
            assert_eq!(sounds_like_loader(path), is_loader, "{path}");
            assert_eq!(sounds_like_device(path), is_device, "{path}");
        }
    }
}
