//! Changes in a script, the same for every card.

use super::{Advice, Effect, Trial};
use crate::finding::Finding;

pub fn steady_shapes() -> Advice {
    Advice::new(
        "batches of few different sizes",
        "DataLoader(..., drop_last=True)   # and pad to multiples: pad_to_multiple_of=64",
        "every new size leaves pieces that the next one cannot use",
    )
    .with_effect(Effect::Training)
    .tried_by(Trial::DropLast)
}

pub fn shard() -> Advice {
    Advice::new(
        "spread over several cards, or partly to the CPU",
        "torchrun --nproc-per-node 4 train.py   # with FSDP2 fully_shard(model), or DeepSpeed ZeRO-3",
        "each card holds a share of weights, gradients and optimizer state",
    )
    .with_effect(Effect::Rounding)
    .untried("needs several cards")
}

pub fn lora() -> Advice {
    Advice::new(
        "train adapters only (LoRA)",
        "model = peft.get_peft_model(model, peft.LoraConfig(r=16))",
        "gradients and optimizer state shrink to those of the adapters",
    )
    .with_effect(Effect::Training)
    .untried("needs peft, and a choice of what is trained")
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
        "do that one operation in pieces",
        format!("{at}torch.cat([f(part) for part in x.split(64)])   # attention: F.scaled_dot_product_attention"),
        "the request itself becomes smaller, whatever else is on the card",
    )
    .with_effect(Effect::Rounding)
    .untried("how that line can be divided is for its author to say")
}

pub fn print_shapes(finding: &Finding) -> Advice {
    let place = finding
        .traceback
        .as_ref()
        .and_then(|traceback| traceback.place());
    let at = place.map(|frame| format!("before {}:{}: ", frame.file, frame.line));
    Advice::new(
        "print the shapes that go into the failing line",
        format!("{}print(x.shape, x.dtype)", at.unwrap_or_default()),
        "one side of one of them is not what it should be",
    )
    .untried("it finds a cause, and changes nothing")
}

pub fn no_grad() -> Advice {
    Advice::new(
        "no graph in evaluation",
        "with torch.no_grad(): out = model(x)   # and model.eval()",
        "without it, every activation is kept for a backward that never comes",
    )
    .tried_by(Trial::NoGradEvaluation)
}

pub fn outputs_to_cpu() -> Advice {
    Advice::new(
        "outputs off the card at once",
        "preds.append(out.detach().cpu())   # Trainer: --eval_accumulation_steps 1",
        "otherwise the outputs of the whole data set gather on the card",
    )
    .tried_by(Trial::MendedOutputs)
}

pub fn leftovers() -> Advice {
    Advice::new(
        "drop what training left before evaluation begins",
        "del loss, out; optimizer.zero_grad(set_to_none=True)",
        "loss, outputs and gradients of the last step are alive until then",
    )
    .tried_by(Trial::DropGradients)
}

pub fn item() -> Advice {
    Advice::new(
        "keep numbers, not tensors",
        "total += loss.item()   # not: total += loss; losses.append(loss)",
        "a kept loss keeps its graph",
    )
    .tried_by(Trial::MendedLosses)
}

pub fn detach() -> Advice {
    Advice::new(
        "detach what is carried from step to step",
        "hidden = hidden.detach()",
        "recurrent state, replay buffers and caches hold every earlier step's graph",
    )
    .with_effect(Effect::Training)
    .tried_by(Trial::MendedState)
}
