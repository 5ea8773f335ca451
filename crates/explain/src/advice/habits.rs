//! Changes to a script that do not depend on the card.

use super::{Advice, Candidate, Effect, FINDS_THE_CAUSE};
use crate::finding::Finding;

pub fn steady_shapes() -> Advice {
    Advice::new(
        "fewer distinct batch shapes",
        "DataLoader(..., drop_last=True)   # and pad to multiples: pad_to_multiple_of=64",
        "every new shape leaves free blocks that the next one cannot use",
    )
    .with_effect(Effect::Training)
    .rehearsed_as(Candidate::DropLast)
}

pub fn shard() -> Advice {
    Advice::new(
        "sharding over several cards, or offloading to the CPU",
        "torchrun --nproc-per-node 4 train.py   # with FSDP2 fully_shard(model), or DeepSpeed ZeRO-3",
        "each card holds a shard of weights, gradients and optimizer state",
    )
    .with_effect(Effect::Rounding)
    .not_rehearsed("needs several cards")
}

pub fn lora() -> Advice {
    Advice::new(
        "training adapters only (LoRA)",
        "model = peft.get_peft_model(model, peft.LoraConfig(r=16))",
        "only the adapters need gradients and optimizer state",
    )
    .with_effect(Effect::Training)
    .not_rehearsed("needs peft, and a choice of target modules")
}

pub fn in_pieces(finding: &Finding) -> Advice {
    let place = finding
        .traceback
        .as_ref()
        .and_then(|traceback| traceback.place());
    let at = place
        .map(|frame| format!("{}:{}: ", frame.file, frame.line))
        .unwrap_or_default();
    Advice::new(
        "the failing operation in chunks",
        format!("{at}torch.cat([f(part) for part in x.split(64)])   # attention: F.scaled_dot_product_attention"),
        "the request itself becomes smaller, whatever else is on the card",
    )
    .with_effect(Effect::Rounding)
    .not_rehearsed("only you know how that line can be split")
}

pub fn print_shapes(finding: &Finding) -> Advice {
    let place = finding
        .traceback
        .as_ref()
        .and_then(|traceback| traceback.place());
    let at = place.map(|frame| format!("before {}:{}: ", frame.file, frame.line));
    Advice::new(
        "print the shapes of the failing line's inputs",
        format!("{}print(x.shape, x.dtype)", at.unwrap_or_default()),
        "one dimension is not what it should be",
    )
    .not_rehearsed(FINDS_THE_CAUSE)
}

pub fn no_grad() -> Advice {
    Advice::new(
        "evaluation without autograd",
        "with torch.no_grad(): out = model(x)   # or torch.inference_mode()",
        "otherwise every activation is saved for a backward pass that never runs",
    )
    .rehearsed_as(Candidate::NoGradEvaluation)
}

pub fn outputs_to_cpu() -> Advice {
    Advice::new(
        "outputs moved to the CPU right away",
        "preds.append(out.detach().cpu())   # Trainer: --eval_accumulation_steps 1",
        "otherwise the outputs of the whole dataset pile up on the card",
    )
    .rehearsed_as(Candidate::FixedOutputs)
}

pub fn leftovers() -> Advice {
    Advice::new(
        "freeing the last training step before evaluation",
        "del loss, out; optimizer.zero_grad(set_to_none=True)",
        "its loss, outputs and gradients stay alive until then",
    )
    .rehearsed_as(Candidate::DropGradients)
}

pub fn item() -> Advice {
    Advice::new(
        "keeping numbers instead of tensors",
        "total += loss.item()   # not: total += loss; losses.append(loss)",
        "a loss that is kept keeps its graph alive",
    )
    .rehearsed_as(Candidate::FixedLosses)
}

pub fn detach() -> Advice {
    Advice::new(
        "detaching what is carried from step to step",
        "hidden = hidden.detach()",
        "recurrent state, replay buffers and caches keep the graphs of all earlier steps alive",
    )
    .with_effect(Effect::Training)
    .rehearsed_as(Candidate::FixedState)
}
