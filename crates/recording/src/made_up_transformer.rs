//! A synthetic training of a transformer: nested modules, sequences of varying length, and an allocator that splits and
//! merges blocks, so that memory fragments as in a real training.
//!
//! The same arguments give the same recording. What [`made_up`](crate::made_up) leaves out occurs here:
//! several stacks for each operator, blocks older than the recording, segments that go back to the driver.

mod allocator;
mod names;

use crate::{
    About, Allocation, AllocationId, Answer, CardMemory, Category, Event, Failure, ModuleId,
    NameId, OperatorId, Phase, PoolId, Recording, StackId, Stage, Verdict,
};
use allocator::SplittingAllocator;
use names::{Block, Vocabulary};

const MIB: u64 = 1 << 20;
const HIDDEN: u64 = 768;
const BATCH: u64 = 16;

/// Sizes of such a training.
#[derive(Clone, Copy, Debug)]
pub struct MadeUpTransformer {
    pub layers: u32,
    pub steps: u32,
    /// The card's memory, for the answer.
    pub gpu_total_bytes: u64,
}

/// Makes the recording of such a training.
pub fn recording(training: MadeUpTransformer) -> Recording {
    let mut maker = Maker {
        training,
        words: Vocabulary::new(training.layers),
        card: CardMemory {
            outside_bytes: 478 * MIB,
            ..CardMemory::default()
        },
        memory: SplittingAllocator::default(),
        allocated_bytes: 0,
        peak_allocated_bytes: 0,
        peak_reserved_bytes: 0,
        step: 0,
    };
    maker.train();
    maker.finish()
}

struct Maker {
    training: MadeUpTransformer,
    words: Vocabulary,
    card: CardMemory,
    memory: SplittingAllocator,
    allocated_bytes: u64,
    peak_allocated_bytes: u64,
    peak_reserved_bytes: u64,
    step: u32,
}

/// What a layer saved for its backward pass, and where.
type Saved = Vec<(ModuleId, AllocationId)>;

impl Maker {
    fn train(&mut self) {
        let parameters = self.words.parameters.clone();
        // The first parameter is older than the recording, because a script may begin to record late.
        let (eldest, younger) = parameters.split_at(1);
        for &(name, module, bytes) in eldest {
            self.older(bytes, name, module);
        }
        self.enter(Stage::Script);
        self.enter(Stage::Moving);
        for &(name, module, bytes) in younger {
            let stack = self.words.moving;
            self.allocate(
                bytes,
                Category::Parameter,
                name,
                module,
                "aten::empty",
                stack,
            );
        }
        let embeddings = self.words.module(Block::Embeddings, 0);
        let (name, stack) = (self.words.position_ids, self.words.moving);
        self.allocate(
            512 * 8,
            Category::Buffer,
            name,
            embeddings,
            "aten::copy_",
            stack,
        );
        for step in 0..self.training.steps {
            self.step = step;
            self.one_step(&parameters);
        }
        self.evaluate();
    }

    fn one_step(&mut self, parameters: &[(NameId, ModuleId, u64)]) {
        let sequence = 64 + u64::from(self.step * 37 % 13) * 32;
        let main = self.words.main;
        self.enter(Stage::Script);
        let tokens = BATCH * sequence * 8;
        let inputs =
            [0, 1].map(|_| self.plain(tokens, Category::Input, ModuleId(0), "aten::to", main));

        self.enter(Stage::Forward);
        let mut saved: Vec<Saved> = Vec::new();
        let embeddings = self.words.module(Block::Embeddings, 0);
        let hidden_bytes = BATCH * sequence * HIDDEN * 4;
        let embedded = self.forward(hidden_bytes, embeddings, "aten::embedding");
        saved.push(vec![(embeddings, embedded)]);
        for layer in 0..self.training.layers {
            saved.push(self.forward_layer(layer, sequence));
        }
        let classifier = self.words.module(Block::Classifier, 0);
        let logits = self.forward(BATCH * 2 * 4, classifier, "aten::linear");
        saved.push(vec![(classifier, logits)]);
        // `losses.append(loss)`: a little more after every step, and a graph's output every tenth.
        let kept = if self.step % 10 == 9 { 3 * MIB } else { 4 };
        self.plain(
            kept,
            Category::Kept,
            ModuleId(0),
            "aten::nll_loss_forward",
            main,
        );

        self.enter(Stage::Backward);
        let mut gradients = Vec::new();
        let mut missing = parameters.to_vec();
        while let Some(layer) = saved.pop() {
            for (module, activation) in layer.into_iter().rev() {
                let bytes = self.card.allocations[activation.0 as usize].requested_bytes;
                let outer = self.plain(bytes, Category::Temporary, module, "aten::mm", StackId(0));
                while let Some((name, of, bytes)) = missing.pop_if(|&mut (_, of, _)| of >= module) {
                    let gradient =
                        self.allocate(bytes, Category::Gradient, name, of, "aten::mm", StackId(0));
                    gradients.push(gradient);
                }
                self.free(activation);
                self.free(outer);
            }
        }
        self.enter(Stage::OptimizerStep);
        let step_line = self.words.optimizer;
        if self.step == 0 {
            for &(name, module, bytes) in parameters {
                for _ in 0..2 {
                    let (kind, operator) = (Category::OptimizerState, "aten::zeros_like");
                    self.allocate(bytes, kind, name, module, operator, step_line);
                }
            }
        }
        let scratch: Vec<_> = parameters
            .iter()
            .map(|&(_, _, bytes)| {
                self.plain(
                    bytes,
                    Category::Temporary,
                    ModuleId(0),
                    "aten::_foreach_sqrt",
                    step_line,
                )
            })
            .collect();
        scratch.into_iter().for_each(|each| self.free(each));
        self.enter(Stage::ZeroGrad);
        gradients.into_iter().for_each(|each| self.free(each));
        inputs.into_iter().for_each(|each| self.free(each));
        if self.step % 25 == 24 {
            // `torch.cuda.empty_cache()`.
            for change in self.memory.give_back() {
                let event = self.card.release(change);
                self.push(event);
            }
        }
    }

    fn forward_layer(&mut self, layer: u32, sequence: u64) -> Saved {
        let hidden = BATCH * sequence * HIDDEN * 4;
        let scores = BATCH * 12 * sequence * sequence * 4;
        let mut saved = Vec::new();
        for (block, bytes, operator, workspace) in [
            (Block::Query, hidden, "aten::linear", 8 * MIB + 131_072),
            (Block::Key, hidden, "aten::linear", 8 * MIB + 131_072),
            (Block::Value, hidden, "aten::linear", 0),
            (Block::SelfAttention, scores, "aten::_softmax", 0),
            (Block::SelfAttention, hidden, "aten::bmm", 0),
            (
                Block::AttentionOutput,
                hidden,
                "aten::linear",
                8 * MIB + 131_072,
            ),
            (Block::AttentionOutput, hidden, "aten::native_layer_norm", 0),
            (
                Block::Intermediate,
                4 * hidden,
                "aten::linear",
                8 * MIB + 131_072,
            ),
            (Block::Intermediate, 4 * hidden, "aten::gelu", 0),
            (Block::Output, hidden, "aten::linear", 0),
            (Block::Output, hidden, "aten::native_layer_norm", 0),
        ] {
            let module = self.words.module(block, layer);
            let stack = self.words.forward(block);
            let scratch = self.plain(bytes / 2 + 52, Category::Temporary, module, operator, stack);
            let work = (workspace > 0)
                .then(|| self.plain(workspace, Category::Workspace, module, operator, stack));
            saved.push((module, self.forward(bytes, module, operator)));
            work.into_iter().for_each(|each| self.free(each));
            self.free(scratch);
        }
        saved
    }

    fn evaluate(&mut self) {
        self.enter(Stage::Evaluation);
        let module = self.words.module(Block::Classifier, 0);
        let stack = self.words.evaluation;
        let answer = self.plain(24 * MIB, Category::Temporary, module, "aten::linear", stack);
        if !self.fits() {
            let requested_bytes = self.training.gpu_total_bytes;
            let event = self.card.fail(Failure {
                requested_bytes,
                ..Failure::default()
            });
            self.push(event);
        }
        self.free(answer);
    }

    fn fits(&self) -> bool {
        self.peak_reserved_bytes + self.card.outside_bytes <= self.training.gpu_total_bytes
    }

    fn forward(&mut self, bytes: u64, module: ModuleId, operator: &str) -> AllocationId {
        let stack = self.words.forward_of(module);
        self.plain(bytes, Category::Activation, module, operator, stack)
    }

    fn plain(
        &mut self,
        bytes: u64,
        category: Category,
        module: ModuleId,
        operator: &str,
        stack: StackId,
    ) -> AllocationId {
        self.allocate(bytes, category, NameId(0), module, operator, stack)
    }

    fn enter(&mut self, stage: Stage) {
        self.card.phases.push(Phase {
            stage,
            step: self.step,
            first_event: self.card.events.len() as u32,
        });
    }

    fn push(&mut self, event: Event) {
        self.card.times_us.push(self.card.events.len() as u64 * 7);
        self.card.events.push(event);
    }

    fn older(&mut self, bytes: u64, name: NameId, module: ModuleId) {
        let (address, segment) = self.memory.allocate(bytes.next_multiple_of(512));
        self.card.reserved_before.extend(segment);
        let id = self.note(bytes, address, Category::Parameter, name, module);
        self.card.allocations[id.0 as usize].stack = self.words.moving;
    }

    fn allocate(
        &mut self,
        bytes: u64,
        category: Category,
        name: NameId,
        module: ModuleId,
        operator: &str,
        stack: StackId,
    ) -> AllocationId {
        let (address, segment) = self.memory.allocate(bytes.next_multiple_of(512));
        if let Some(change) = segment {
            let event = self.card.reserve(change);
            self.push(event);
        }
        let operator = self.words.operator(operator);
        let now = self.card.events.len() as u32;
        let id = self.note(bytes, address, category, name, module);
        let allocation = &mut self.card.allocations[id.0 as usize];
        allocation.allocated_at = Some(now);
        allocation.operator = operator;
        allocation.stack = stack;
        self.push(Event::Allocate(id));
        id
    }

    fn note(
        &mut self,
        requested_bytes: u64,
        address: u64,
        category: Category,
        name: NameId,
        module: ModuleId,
    ) -> AllocationId {
        let block_bytes = requested_bytes.next_multiple_of(512);
        self.allocated_bytes += block_bytes;
        self.peak_allocated_bytes = self.peak_allocated_bytes.max(self.allocated_bytes);
        self.peak_reserved_bytes = self.peak_reserved_bytes.max(self.memory.reserved_bytes());
        let id = AllocationId(self.card.allocations.len() as u32);
        self.card.allocations.push(Allocation {
            address,
            requested_bytes,
            block_bytes,
            allocated_at: None,
            freed_at: None,
            category,
            name,
            module,
            operator: OperatorId(0),
            stack: StackId(0),
            pool: PoolId(0),
        });
        id
    }

    fn free(&mut self, id: AllocationId) {
        let now = self.card.events.len() as u32;
        let allocation = &mut self.card.allocations[id.0 as usize];
        allocation.freed_at = Some(now);
        self.allocated_bytes -= allocation.block_bytes;
        self.memory.free(allocation.address);
        self.push(Event::Free(id));
    }

    fn finish(self) -> Recording {
        let device_bytes = self.peak_reserved_bytes + self.card.outside_bytes;
        let answer = Answer {
            fits: Some(self.fits()),
            verdict: match self.fits() {
                true => Verdict::Fits,
                false => Verdict::DoesNotFit,
            },
            peak_allocated_bytes: Some(self.peak_allocated_bytes),
            peak_reserved_bytes: Some(self.peak_reserved_bytes),
            peak_device_bytes: device_bytes.min(self.training.gpu_total_bytes),
            needed_device_bytes: Some(device_bytes),
            steps: self.training.steps.into(),
            assumptions: vec!["this training is made up".to_owned()],
            ..Answer::default()
        };
        Recording {
            about: About {
                command: ["train.py", "--batch-size", "16"]
                    .map(str::to_owned)
                    .to_vec(),
                torch: "2.11.0+cu130".to_owned(),
                gpu: "NVIDIA GeForce RTX 3060".to_owned(),
                gpu_total_bytes: self.training.gpu_total_bytes,
                capability: "8.6".to_owned(),
                steps: self.training.steps,
                answer: Some(answer),
                ..About::default()
            },
            names: self.words.names,
            cards: vec![self.card],
            failed_run: None,
            warnings: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
