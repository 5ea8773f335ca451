//! One card in the JSON document.

use ghostgpu_ledger::Moment as LedgerMoment;
use ghostgpu_ledger::recording::{
    self as ledger, ByCategory, CardLedger, Place, Places, StageFlow,
};
use ghostgpu_recording::{CardMemory, Event, FrameId, FrameOwner, Recording, StackId};

use super::RecordingJsonOptions;
use super::document::{
    Accounts, ByName, Card, Difference, Frame, Growth, GrowthSource, Held, Holder, Layer, Line,
    Module, Moment, Operator, OutOfMemory, Rows, RuleOfThumb, Stage, Stages, Step,
};

pub(super) fn describe(
    recording: &Recording,
    card: &CardMemory,
    options: &RecordingJsonOptions,
) -> Card {
    let describer = Describer {
        recording,
        card,
        ledger: CardLedger::new(recording, card),
        max_rows: options.max_rows,
    };
    describer.card()
}

struct Describer<'a> {
    recording: &'a Recording,
    card: &'a CardMemory,
    ledger: CardLedger<'a>,
    max_rows: usize,
}

impl Describer<'_> {
    fn card(&self) -> Card {
        let ledger = &self.ledger;
        let peak = ledger.peak().moment;
        Card {
            card: self.card.index,
            events: self.card.events.len(),
            at_peak: self.accounts(peak),
            at_reserved_peak: self.accounts(ledger.peak_reserved().moment),
            at_end: self.accounts(ledger.end().moment),
            stages: self.stages(),
            steps: ledger.steps().iter().map(step).collect(),
            modules: ledger
                .by_module(peak)
                .nodes
                .into_iter()
                .map(module)
                .collect(),
            lines: self.lines(peak),
            operators: self.rows(
                ledger.by_operator(peak),
                |one| one.held.requested_bytes(),
                |one| Operator {
                    held: held(&one.held),
                    operator: one.label,
                    is_known: one.is_known,
                },
            ),
            holders: self.rows(
                ledger.holders(peak),
                |one| one.held.requested_bytes(),
                |one| self.holder(one),
            ),
            rule_of_thumb: ledger.rule_of_thumb().map(rule_of_thumb),
            growth: self.growth(),
            out_of_memory: self.out_of_memory(),
        }
    }

    fn moment(&self, moment: LedgerMoment) -> Moment {
        let event = moment.0.checked_sub(1);
        let phase = event.and_then(|event| self.card.phase_of(event as u32));
        Moment {
            event,
            time_us: self.ledger.time_us(moment),
            step: phase.map(|phase| phase.step),
            stage: phase.map(|phase| phase.stage.name()),
        }
    }

    fn accounts(&self, moment: LedgerMoment) -> Accounts {
        let accounts = self.ledger.accounts(moment);
        Accounts {
            moment: self.moment(moment),
            on_card_bytes: accounts.on_card_bytes(),
            reserved_bytes: accounts.reserved_bytes,
            allocated_bytes: accounts.allocated_bytes,
            requested_bytes: accounts.requested_bytes(),
            parts: accounts
                .parts()
                .map(|(part, bytes)| (part.name(), bytes))
                .collect(),
        }
    }

    fn stages(&self) -> Stages {
        let stages = self.ledger.stages();
        Stages {
            later_step: stages.later_step,
            optimizer_state_in_first_step_bytes: stages.optimizer_state_in_first_step_bytes,
            rows: stages.flows.iter().map(stage).collect(),
        }
    }

    fn lines(&self, moment: LedgerMoment) -> Rows<Line> {
        self.rows(
            self.ledger.by_place(moment),
            |one| one.held.requested_bytes(),
            |one| Line {
                held: held(&one.held),
                frame: match one.place {
                    Place::Line(id) => self.frame(id),
                    Place::NoStack { .. } | Place::Older => None,
                },
                place: one.label,
            },
        )
    }

    fn rows<T, Row>(
        &self,
        mut all: Vec<T>,
        requested_bytes: fn(&T) -> u64,
        row: impl Fn(T) -> Row,
    ) -> Rows<Row> {
        let others = all.split_off(self.max_rows.min(all.len()));
        let sums = others.iter().map(requested_bytes);
        Rows {
            other_rows: others.len(),
            other_requested_bytes: sums.fold(0, u64::saturating_add),
            rows: all.into_iter().map(row).collect(),
        }
    }

    fn holder(&self, group: ledger::HolderGroup) -> Holder {
        let names = &self.recording.names;
        let largest = self.card.allocations.get(group.largest.0 as usize);
        let name = largest.and_then(|one| names.texts.get(one.name.0 as usize));
        let operator = names.operators.get(group.operator.0 as usize);
        Holder {
            category: group.category.name(),
            requested_bytes: group.held.requested_bytes(),
            block_bytes: group.held.block_bytes,
            blocks: group.held.count,
            place: group.label,
            module: group.module,
            operator: operator.cloned().unwrap_or_default(),
            name: name.cloned().unwrap_or_default(),
            largest_requested_bytes: largest.map_or(0, |one| one.requested_bytes),
            stack: self.stack(group.stack),
        }
    }

    fn stack(&self, stack: StackId) -> Vec<Frame> {
        let frames = self.recording.names.stacks.get(stack.0 as usize);
        let frames = frames.into_iter().flatten();
        frames.filter_map(|id| self.frame(*id)).collect()
    }

    fn frame(&self, id: FrameId) -> Option<Frame> {
        let frame = self.recording.names.frames.get(id.0 as usize)?;
        Some(Frame {
            file: frame.file.clone(),
            line: frame.line,
            function: frame.function.clone(),
            owner: match frame.owner {
                FrameOwner::User => "user",
                FrameOwner::Package => "package",
                FrameOwner::Torch => "torch",
            },
        })
    }

    fn growth(&self) -> Growth {
        let growth = self.ledger.growth();
        let places = Places::of(self.recording, self.card);
        Growth {
            steps_compared: growth.steps,
            bytes_per_step: growth.bytes_per_step,
            steps_until_full: growth.steps_until_full,
            sources: growth
                .sources
                .into_iter()
                .map(|source| GrowthSource {
                    place: places.label(&source.place),
                    category: source.category.name(),
                    bytes_per_step: source.bytes_per_step,
                    blocks: source.count,
                    kept_in: source.kept_in,
                    bytes_at_ends: source.bytes_at_ends,
                    stack: self.stack(source.stack),
                })
                .collect(),
        }
    }

    fn out_of_memory(&self) -> Vec<OutOfMemory> {
        let events = self.card.events.iter().enumerate();
        let failed = events.filter_map(|(at, event)| match event {
            Event::OutOfMemory { requested_bytes } => Some((at, *requested_bytes)),
            _ => None,
        });
        failed
            .map(|(at, requested_bytes)| OutOfMemory {
                moment: self.moment(LedgerMoment(at + 1)),
                requested_bytes,
            })
            .collect()
    }
}

fn by_name(sums: &ByCategory) -> ByName {
    sums.iter()
        .map(|(category, bytes)| (category.name(), bytes))
        .collect()
}

fn held(held: &ledger::Held) -> Held {
    Held {
        requested_bytes: held.requested_bytes(),
        block_bytes: held.block_bytes,
        blocks: held.count,
        categories: by_name(&held.requested),
    }
}

fn stage(flow: &StageFlow) -> Stage {
    Stage {
        part: flow.part.name(),
        step: flow.part.step(),
        stage: flow.stage.name(),
        phases: flow.phases,
        first_event: flow.from.0,
        came_bytes: flow.came.total(),
        went_bytes: flow.went.total(),
        stayed_bytes: flow.stayed.total(),
        peak_allocated_bytes: flow.peak_allocated_bytes,
        peak_event: flow.peak.0.checked_sub(1),
        came: by_name(&flow.came),
        went: by_name(&flow.went),
        stayed: by_name(&flow.stayed),
    }
}

fn step(step: &ledger::StepSummary) -> Step {
    Step {
        step: step.step,
        first_event: step.from.0,
        is_complete: step.optimizer_done.is_some(),
        peak_allocated_bytes: step.peak_allocated_bytes,
        peak_reserved_bytes: step.peak_reserved_bytes,
        allocated_after_bytes: step.allocated_after_bytes,
    }
}

fn module(node: ledger::ModuleNode) -> Module {
    Module {
        own_requested_bytes: node.own.requested_bytes(),
        held: held(&node.total),
        path: node.path,
        class: node.class,
        parent: node.parent,
    }
}

fn rule_of_thumb(rule: ledger::RuleOfThumb) -> RuleOfThumb {
    RuleOfThumb {
        optimizer: rule.optimizer.title(),
        copies: rule.optimizer.copies(),
        parameter_bytes: rule.parameter_bytes,
        output_bytes: rule.output_bytes,
        rule_bytes: rule.rule_bytes,
        exact_bytes: rule.exact_bytes,
        differences: rule
            .differences
            .iter()
            .map(|one| Difference {
                part: one.name,
                bytes: one.bytes,
                reason: one.reason,
            })
            .collect(),
        layers: rule
            .layers
            .into_iter()
            .map(|layer| Layer {
                exact_bytes: layer.exact.requested_bytes(),
                path: layer.path,
                class: layer.class,
                parameter_bytes: layer.parameter_bytes,
                output_bytes: layer.output_bytes,
                rule_bytes: layer.rule_bytes,
            })
            .collect(),
    }
}
