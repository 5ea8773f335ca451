//! Changes to a script that do not depend on the card.

use super::{Advice, Advisor, Candidate, Effect};
use crate::finding::Finding;
use crate::kind::Kind;
use crate::say;
use crate::traceback::Frame;

/// The line to change: nobody edits a library.
fn place(finding: &Finding) -> Option<&Frame> {
    let place = finding.traceback.as_ref()?.place();
    place.filter(|frame| frame.is_user_code())
}

impl Advisor<'_> {
    pub fn steady_shapes(&self) -> Advice {
        self.advise("steady-shapes", "DataLoader(..., drop_last=True)")
            .with_effect(Effect::Training)
            .rehearsed_as(Candidate::DropLast)
    }

    pub fn shard(&self) -> Advice {
        let advice = self
            .advise("shard", "torchrun --nproc-per-node 4 train.py")
            .with_effect(Effect::Rounding);
        self.unrehearsed(advice, "not-several-cards")
    }

    pub fn lora(&self) -> Advice {
        let command = "model = peft.get_peft_model(model, peft.LoraConfig(r=16))";
        let advice = self.advise("lora", command).with_effect(Effect::Training);
        self.unrehearsed(advice, "not-peft")
    }

    pub fn in_pieces(&self, finding: &Finding) -> Advice {
        let at = place(finding)
            .map(|frame| format!("{}:{}: ", frame.file, frame.line))
            .unwrap_or_default();
        if finding.kind == Kind::PythonMemory && !finding.mentions_pytorch() {
            let command = format!("{at}for part in np.array_split(data, 64): ...");
            let advice = self.advise("host-chunks", command);
            return self.unrehearsed(advice.with_effect(Effect::Rounding), "not-splittable");
        }
        let command = say!(self.catalogue, "in-pieces-command", at = at);
        let advice = self
            .advise("in-pieces", command)
            .with_effect(Effect::Rounding);
        self.unrehearsed(advice, "not-splittable")
    }

    pub fn print_shapes(&self, finding: &Finding) -> Advice {
        let command = match place(finding) {
            Some(frame) => say!(
                self.catalogue,
                "print-before",
                file = frame.file,
                line = frame.line
            ),
            None => "print(x.shape, x.dtype)".to_owned(),
        };
        self.unrehearsed(self.advise("print-shapes", command), "not-a-change")
    }

    pub fn no_grad(&self) -> Advice {
        self.advise("no-grad", "with torch.no_grad(): out = model(x)")
            .rehearsed_as(Candidate::NoGradEvaluation)
    }

    pub fn outputs_to_cpu(&self) -> Advice {
        self.advise("outputs-to-cpu", "preds.append(out.detach().cpu())")
            .rehearsed_as(Candidate::FixedOutputs)
    }

    pub fn leftovers(&self) -> Advice {
        let command = "del loss, out; optimizer.zero_grad(set_to_none=True)";
        self.advise("leftovers", command)
            .rehearsed_as(Candidate::DropGradients)
    }

    pub fn keep_numbers(&self) -> Advice {
        self.advise("keep-numbers", "total += loss.item()")
            .rehearsed_as(Candidate::FixedLosses)
    }

    pub fn detach(&self) -> Advice {
        self.advise("detach", "hidden = hidden.detach()")
            .with_effect(Effect::Training)
            .rehearsed_as(Candidate::FixedState)
    }
}
