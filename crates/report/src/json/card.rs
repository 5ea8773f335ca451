//! One card in the JSON document.

use ghostgpu_ledger::Moment as LedgerMoment;
use ghostgpu_ledger::{self as ledger, ByCategory, CardLedger, Place, Places, StageFlow};
use ghostgpu_recording::{CardMemory, FrameId, FrameOwner, PoolId, Recording, Source, StackId};

use super::JsonOptions;
use super::document::{
    Accounts, ByName, Card, Difference, Frame, Growth, GrowthSource, Held, Holder, Layer, Line,
    Module, Moment, Operator, OutOfMemory, Pool, Rows, RuleOfThumb, Segment, Stage, Stages, Step,
};

pub(super) fn describe(recording: &Recording, card: &CardMemory, options: &JsonOptions) -> Card {
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
        let knows_owners = self.recording.about.source == Source::Rehearsal;
        Card {
            card: self.card.index,
            rank: self.card.rank,
            events: self.card.events.len(),
            at_peak: self.accounts(peak),
            at_reserved_peak: self.accounts(ledger.peak_reserved().moment),
            at_end: self.accounts(ledger.end().moment),
            began_us: (self.card.began_us > 0).then_some(self.card.began_us),
            stages: knows_owners.then(|| self.stages()),
            steps: ledger.steps().iter().map(step).collect(),
            modules: match knows_owners {
                true => self.modules(peak),
                false => Vec::new(),
            },
            lines: self.lines(peak),
            operators: knows_owners.then(|| self.operators(peak)),
            holders: self.rows(
                ledger.holders(peak),
                |one| one.held.requested_bytes(),
                |one| self.holder(one),
            ),
            rule_of_thumb: ledger.rule_of_thumb().map(rule_of_thumb),
            growth: knows_owners.then(|| self.growth()),
            out_of_memory: self.out_of_memory(),
            segments_at_end: self.segments(ledger.end().moment),
        }
    }

    fn modules(&self, moment: LedgerMoment) -> Vec<Module> {
        let tree = self.ledger.by_module(moment);
        tree.nodes
            .into_iter()
            .map(|node| self.module(node))
            .collect()
    }

    fn operators(&self, moment: LedgerMoment) -> Rows<Operator> {
        self.rows(
            self.ledger.by_operator(moment),
            |one| one.held.requested_bytes(),
            |one| Operator {
                held: self.held(&one.held),
                operator: one.label,
                is_known: one.is_known,
            },
        )
    }

    fn segments(&self, moment: LedgerMoment) -> Vec<Segment> {
        let segments = self.ledger.segments_at(moment);
        segments
            .iter()
            .map(|segment| self.segment(segment))
            .collect()
    }

    fn segment(&self, segment: &ledger::Segment) -> Segment {
        let count = |counts: fn(&ledger::Block) -> bool| {
            segment.blocks.iter().filter(|one| counts(one)).count()
        };
        Segment {
            address: segment.address,
            bytes: segment.bytes,
            pool: pool(segment.pool),
            is_small: segment.is_small,
            is_expandable: segment.is_expandable,
            live_bytes: segment.live_bytes(),
            requested_bytes: segment.requested_bytes(self.card),
            blocks: segment.blocks.len(),
            live_blocks: count(|one| one.allocation.is_some()),
            pending_blocks: count(|one| one.is_pending),
            largest_free_block_bytes: segment.largest_free_bytes(),
        }
    }

    fn pool(&self, id: PoolId) -> Pool {
        let found = self.card.pools.get(id.0 as usize);
        pool(found.copied().unwrap_or_default())
    }

    /// Bytes by category, of those that this recording can know.
    fn by_name(&self, sums: &ByCategory) -> ByName {
        let source = self.recording.about.source;
        sums.iter()
            .filter(|(category, _)| category.is_known_to(source))
            .map(|(category, bytes)| (category.name(), bytes))
            .collect()
    }

    fn held(&self, held: &ledger::Held) -> Held {
        Held {
            requested_bytes: held.requested_bytes(),
            block_bytes: held.block_bytes,
            blocks: held.count,
            categories: self.by_name(&held.requested),
        }
    }

    fn module(&self, node: ledger::ModuleNode) -> Module {
        Module {
            own_requested_bytes: node.own.requested_bytes(),
            held: self.held(&node.total),
            path: node.path,
            class: node.class,
            parent: node.parent,
        }
    }

    fn stage(&self, flow: &StageFlow) -> Stage {
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
            came: self.by_name(&flow.came),
            went: self.by_name(&flow.went),
            stayed: self.by_name(&flow.stayed),
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
        let source = self.recording.about.source;
        Accounts {
            moment: self.moment(moment),
            on_card_bytes: (source == Source::Rehearsal).then(|| accounts.on_card_bytes()),
            reserved_bytes: accounts.reserved_bytes,
            allocated_bytes: accounts.allocated_bytes,
            requested_bytes: accounts.requested_bytes(),
            parts: accounts
                .parts()
                .filter(|(part, _)| part.is_known_to(source))
                .map(|(part, bytes)| (part.name(), bytes))
                .collect(),
        }
    }

    fn stages(&self) -> Stages {
        let stages = self.ledger.stages();
        Stages {
            later_step: stages.later_step,
            optimizer_state_in_first_step_bytes: stages.optimizer_state_in_first_step_bytes,
            rows: stages.flows.iter().map(|flow| self.stage(flow)).collect(),
        }
    }

    fn lines(&self, moment: LedgerMoment) -> Rows<Line> {
        self.rows(
            self.ledger.by_place(moment),
            |one| one.held.requested_bytes(),
            |one| Line {
                held: self.held(&one.held),
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
            pool: self.pool(largest.map_or(PoolId(0), |one| one.pool)),
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
                FrameOwner::Native => "native",
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
        let failed = self.card.failed_requests();
        failed
            .map(|(at, failure)| OutOfMemory {
                moment: self.moment(LedgerMoment(at as usize + 1)),
                requested_bytes: failure.requested_bytes,
                driver_free_bytes: failure.driver_free_bytes,
                pool: self.pool(failure.pool),
                stack: self.stack(failure.stack),
            })
            .collect()
    }
}

fn pool(pool: ghostgpu_recording::Pool) -> Pool {
    Pool {
        stream: pool.stream,
        pool: pool.number,
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
