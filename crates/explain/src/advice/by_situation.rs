//! Which advice belongs to each situation, in what order.

use super::device::Setup;
use super::libraries::is_beside_pytorch;
use super::{Advice, Advisor, Effect};
use crate::account::Account;
use crate::catalogue::Catalogue;
use crate::finding::{Finding, LIBRARY};
use crate::kind::Kind;
use crate::program::{Purpose, Tool, purpose, tool};
use crate::reader::Log;
use crate::said;
use crate::situation::{Reasoned, Situation};

/// All that advice depends on.
struct Case<'a> {
    finding: &'a Finding,
    account: &'a Account,
    log: &'a Log,
    setup: Setup<'a>,
    advisor: Advisor<'a>,
    purpose: Purpose,
    tool: Option<Tool>,
}

/// What to do, best first. Advice for the main situation precedes that for the others.
pub fn advice(
    finding: &Finding,
    account: &Account,
    situations: &[Reasoned],
    log: &Log,
    card: Option<String>,
    catalogue: &Catalogue,
) -> Vec<Advice> {
    let case = Case {
        finding,
        account,
        log,
        setup: Setup::of(finding, log, card, catalogue),
        advisor: Advisor { catalogue },
        purpose: purpose(finding, log),
        tool: tool(finding, log),
    };
    let mut all = Vec::new();
    // A wrong shape has to be corrected before any other advice makes sense.
    let is_shape = situations
        .first()
        .is_some_and(|main| main.situation == Situation::ShapeBug);
    for reasoned in situations
        .iter()
        .take(if is_shape { 1 } else { usize::MAX })
    {
        all.extend(case.advice(reasoned.situation));
    }
    let mut kept: Vec<Advice> = Vec::new();
    for each in all {
        if !kept.iter().any(|known| known.what == each.what) {
            kept.push(each);
        }
    }
    // The cards that can be rehearsed on are NVIDIA's.
    if !case.setup.is_nvidia() && kept.len() > 1 {
        kept.retain(|each| each.name != "larger-card");
    }
    if !case.setup.has_autocast && kept.len() > 1 {
        kept.retain(|each| !matches!(each.name.as_str(), "autocast" | "no-graph"));
    }
    // More advice than this goes unread.
    kept.truncate(8);
    kept
}

impl Case<'_> {
    fn advice(&self, situation: Situation) -> Vec<Advice> {
        match self.purpose {
            Purpose::Inference if self.finding.is_pytorch() => self.for_inference(situation),
            Purpose::Unknown if self.finding.is_pytorch() => self.for_either(situation),
            _ => self.for_training(situation),
        }
    }

    /// Nothing about gradients, epochs or optimizers.
    fn for_inference(&self, situation: Situation) -> Vec<Advice> {
        let (advisor, setup) = (&self.advisor, &self.setup);
        let offered = || {
            let is_windows = self.log.environment.is_windows;
            let is_mps = self.finding.kind == Kind::MpsAllocator;
            let mut all = advisor.inference(self.tool, is_windows, is_mps);
            // The limit for all tensors has no part in a single buffer that Metal refuses.
            if is_mps && situation != Situation::OneLargeRequest {
                all.insert(1.min(all.len()), advisor.mps_watermark());
            }
            if self.log.environment.is_jetson {
                all.extend(advisor.jetson());
            }
            let because = match self.tool {
                Some(Tool::Vllm | Tool::Sglang | Tool::Tgi) => "not-a-server",
                _ => "not-training",
            };
            advisor.all_unrehearsed(all, because)
        };
        match situation {
            Situation::Fragmentation => [setup.fragmentation(), offered()].concat(),
            Situation::OtherProcess if self.finding.kind == Kind::MpsAllocator => [
                vec![advisor.unrehearsed(advisor.close_programs(), "not-on-a-mac")],
                offered(),
            ]
            .concat(),
            Situation::OtherProcess => [
                vec![setup.see_processes(self.finding, self.account)],
                offered(),
                vec![setup.empty_card()],
            ]
            .concat(),
            Situation::ModelDoesNotFit if self.tool == Some(Tool::Vllm) => {
                advisor.all_unrehearsed(advisor.vllm_weights(), "not-a-server")
            }
            Situation::ModelDoesNotFit if self.tool == Some(Tool::Sglang) => {
                advisor.all_unrehearsed(advisor.sglang_weights(), "not-a-server")
            }
            // What a picture or a prompt needs grows with its size; nobody prints shapes in such a tool.
            Situation::ShapeBug if self.tool.is_some() => {
                let mut all = offered();
                all.sort_by_key(|each| each.effect != Effect::Service);
                all
            }
            Situation::ModelDoesNotFit if self.tool.is_none() => [
                advisor.all_unrehearsed(advisor.smaller_weights(), "not-training"),
                vec![setup.larger_card()],
            ]
            .concat(),
            Situation::FreeButRefused | Situation::FractionLimit => {
                [self.for_training(situation), offered()].concat()
            }
            Situation::ShapeBug
            | Situation::HostMemory
            | Situation::SharedMemory
            | Situation::PinnedMemory
            | Situation::KernelSharedMemory
            | Situation::ServingCache
            | Situation::Unsaid => self.for_training(situation),
            Situation::Growth => offered(),
            _ => [offered(), vec![setup.larger_card()]].concat(),
        }
    }

    /// The log does not tell whether something is trained: what helps both comes first.
    fn for_either(&self, situation: Situation) -> Vec<Advice> {
        let (advisor, setup) = (&self.advisor, &self.setup);
        let is_mps = self.finding.kind == Kind::MpsAllocator;
        let no_graph = || advisor.unrehearsed(advisor.no_graph(), "not-training");
        match situation {
            Situation::Activations | Situation::Full if is_mps => vec![
                setup.smaller_batch(),
                no_graph(),
                advisor.unrehearsed(advisor.mps_watermark(), "not-on-a-mac"),
                setup.half_precision(),
            ],
            Situation::OtherProcess if is_mps => vec![
                advisor.unrehearsed(advisor.close_programs(), "not-on-a-mac"),
                advisor.unrehearsed(advisor.mps_watermark(), "not-on-a-mac"),
                no_graph(),
                setup.smaller_batch(),
            ],
            Situation::Activations | Situation::Full if self.has_no_hint() => vec![
                setup.smaller_batch(),
                setup.half_precision(),
                no_graph(),
                setup.checkpointing(),
                setup.shorter(),
                setup.larger_card(),
            ],
            situation => self.for_training(situation),
        }
    }

    /// Nothing but the message: neither a traceback nor a progress bar.
    fn has_no_hint(&self) -> bool {
        self.finding.traceback.is_none() && self.finding.progress.is_none()
    }

    fn for_training(&self, situation: Situation) -> Vec<Advice> {
        let (advisor, setup, finding) = (&self.advisor, &self.setup, self.finding);
        let environment = &self.log.environment;
        let is_mps = finding.kind == Kind::MpsAllocator;
        match situation {
            Situation::Fragmentation => [
                setup.fragmentation(),
                vec![setup.smaller_batch(), advisor.steady_shapes()],
            ]
            .concat(),
            Situation::OtherProcess if is_mps => vec![
                advisor.unrehearsed(advisor.close_programs(), "not-on-a-mac"),
                advisor.unrehearsed(advisor.mps_watermark(), "not-on-a-mac"),
                setup.smaller_batch(),
            ],
            Situation::OtherProcess if finding.kind == Kind::VllmNotFree => vec![
                setup.see_processes(finding, self.account),
                advisor.unrehearsed(advisor.utilization_down(finding), "not-a-server"),
            ],
            Situation::OtherProcess
                if !finding.is_pytorch() && finding.kind != Kind::VllmNotFree =>
            {
                let own = self.without_pytorch();
                let all = [vec![advisor.held_by_others()], own].concat();
                advisor.all_unrehearsed(all, "not-pytorch")
            }
            Situation::OtherProcess => {
                let mut found = vec![
                    setup.see_processes(finding, self.account),
                    setup.empty_card(),
                    setup.other_card(),
                    setup.smaller_batch(),
                ];
                let place = if self.may_be_ranks() { 1 } else { 3 };
                found.insert(place, setup.set_device());
                found
            }
            Situation::ModelDoesNotFit | Situation::OneLargeRequest | Situation::Full
                if finding.kind == Kind::LlamaCpp && self.tool == Some(Tool::Whisper) =>
            {
                advisor.all_unrehearsed(advisor.whisper_cpp(), "not-pytorch")
            }
            Situation::ModelDoesNotFit | Situation::OneLargeRequest | Situation::Full
                if finding.kind == Kind::LlamaCpp =>
            {
                let all = advisor.llama_cpp(said::is_scratch(finding), environment.is_jetson);
                advisor.all_unrehearsed(all, "not-pytorch")
            }
            Situation::FreeButRefused if !finding.is_pytorch() => {
                let all = advisor.tensorflow_on_rocm();
                advisor.all_unrehearsed(all, "not-pytorch")
            }
            Situation::FreeButRefused if finding.kind == Kind::XpuAllocator => [
                advisor.all_unrehearsed(advisor.intel_limits(), "not-nvidia"),
                vec![
                    setup.see_processes(finding, self.account),
                    setup.smaller_batch(),
                ],
            ]
            .concat(),
            Situation::Full if finding.kind == Kind::XpuCall => {
                let all = match self.purpose {
                    Purpose::Inference => {
                        self.advisor
                            .inference(self.tool, environment.is_windows, false)
                    }
                    _ => vec![setup.smaller_batch(), setup.half_precision()],
                };
                advisor.all_unrehearsed([all, advisor.intel_limits()].concat(), "not-nvidia")
            }
            Situation::ModelDoesNotFit => vec![
                setup.half_weights(),
                setup.quantised(),
                advisor.shard(),
                setup.larger_card(),
            ],
            Situation::OptimizerState => vec![
                setup.lean_optimizer(),
                setup.half_weights(),
                advisor.lora(),
                advisor.shard(),
                setup.larger_card(),
            ],
            Situation::ShapeBug if !finding.is_pytorch() => {
                advisor.all_unrehearsed(self.without_pytorch(), "not-pytorch")
            }
            Situation::Full if !finding.is_pytorch() => {
                advisor.all_unrehearsed(self.without_pytorch(), "not-pytorch")
            }
            Situation::OneLargeRequest if finding.kind == Kind::Mlx => {
                advisor.all_unrehearsed(advisor.mlx(), "not-on-a-mac")
            }
            Situation::Activations | Situation::Full if is_mps => vec![
                setup.smaller_batch(),
                setup.half_precision(),
                advisor.unrehearsed(advisor.mps_watermark(), "not-on-a-mac"),
            ],
            Situation::Activations | Situation::Full => vec![
                setup.smaller_batch(),
                setup.checkpointing(),
                setup.half_precision(),
                setup.shorter(),
                setup.larger_card(),
            ],
            Situation::OneLargeRequest => vec![
                advisor.in_pieces(finding),
                setup.smaller_batch(),
                setup.half_precision(),
                setup.checkpointing(),
                setup.larger_card(),
            ],
            Situation::Evaluation => vec![
                advisor.no_grad(),
                advisor.outputs_to_cpu(),
                setup.smaller_eval_batch(),
                advisor.leftovers(),
            ],
            Situation::Growth => vec![
                advisor.keep_numbers(),
                setup.find_growth(),
                advisor.detach(),
            ],
            Situation::ShapeBug => vec![advisor.print_shapes(finding), advisor.in_pieces(finding)],
            Situation::FractionLimit => vec![setup.raise_limit(), setup.smaller_batch()],
            Situation::FreeButRefused => [
                advisor
                    .all_unrehearsed(advisor.backing_memory(finding, environment), "not-the-card"),
                vec![
                    setup.empty_card(),
                    setup.see_processes(finding, self.account),
                ],
            ]
            .concat(),
            Situation::RanksOnOneCard => vec![setup.set_device(), setup.fewer_ranks()],
            Situation::OutsideTheAllocator => setup.room_for_libraries(finding),
            Situation::HostMemory => {
                let all = advisor.host_memory(finding, environment, self.purpose);
                advisor.all_unrehearsed(all, "not-the-card")
            }
            Situation::SharedMemory if said::is_object_store(finding) => {
                advisor.all_unrehearsed(advisor.object_store(), "not-the-card")
            }
            Situation::SharedMemory => {
                let all = advisor.shared_memory(said::is_from_nccl(finding));
                advisor.all_unrehearsed(all, "not-the-card")
            }
            Situation::PinnedMemory => {
                let all = advisor.pinned(finding, environment);
                advisor.all_unrehearsed(all, "not-the-card")
            }
            Situation::KernelSharedMemory => {
                advisor.all_unrehearsed(advisor.smaller_kernel(finding), "not-kernels")
            }
            Situation::ServingCache => {
                advisor.all_unrehearsed(advisor.cache(finding), "not-a-server")
            }
            Situation::FrameworkPool => {
                let all = match finding.kind {
                    Kind::OtherAllocator => advisor.beside_pytorch(finding),
                    Kind::Jax => advisor.jax(finding, self.purpose),
                    _ if finding.figures.text_named(LIBRARY) == Some("JAX") => {
                        advisor.jax(finding, self.purpose)
                    }
                    _ => advisor.tensorflow(),
                };
                advisor.all_unrehearsed(all, "not-pytorch")
            }
            Situation::Unsaid => {
                advisor.all_unrehearsed(advisor.find_which_memory(), "not-a-change")
            }
        }
    }

    /// Several processes on the card, or several ranks that name the same one.
    fn may_be_ranks(&self) -> bool {
        let figures = &self.finding.figures;
        let is_beside = |each: &&Finding| {
            each.writer != self.finding.writer && each.figures.device == figures.device
        };
        figures.processes.len() >= 3 || self.log.findings.iter().any(|each| is_beside(&each))
    }

    fn without_pytorch(&self) -> Vec<Advice> {
        if self.finding.kind == Kind::Metal {
            return self.advisor.metal(self.finding);
        }
        if self.finding.kind == Kind::Jetson {
            return self.advisor.jetson();
        }
        if self.finding.kind == Kind::Jax {
            return self.advisor.jax(self.finding, self.purpose);
        }
        if self.finding.figures.text_named(LIBRARY) == Some("llama.cpp") {
            return self
                .advisor
                .llama_cpp(false, self.log.environment.is_jetson);
        }
        if is_beside_pytorch(self.finding) {
            return self.advisor.beside_pytorch(self.finding);
        }
        let own = self.advisor.other_library(self.finding, self.purpose);
        match self.tool {
            // A picture is drawn with DirectML as well.
            Some(tool @ (Tool::WebUi | Tool::ComfyUi)) => {
                let is_windows = self.log.environment.is_windows;
                [self.advisor.inference(Some(tool), is_windows, false), own].concat()
            }
            _ => own,
        }
    }
}
