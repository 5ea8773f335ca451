//! Synthetic recordings for tests and benchmarks: a model of equal layers, trained for some steps.
//!
//! The same arguments give the same recording. Every category, stage and kind of event occurs. There are also random
//! recordings, and recordings that a test builds event by event.

mod at_random;
mod by_hand;

pub use at_random::recording_at_random;
pub use by_hand::{ByHand, Origin};

use crate::{
    About, Allocation, AllocationId, CardMemory, Category, Event, Failure, Frame, FrameId,
    FrameOwner, Module, ModuleId, NameId, Names, OperatorId, Phase, PoolId, Recording,
    SegmentChange, StackId, Stage,
};

const MIB: u64 = 1 << 20;
const SEGMENT_BYTES: u64 = 64 * MIB;
const FIRST_ADDRESS: u64 = 0x7f00_0000_0000;

/// The sizes of a synthetic training.
#[derive(Clone, Copy, Debug)]
pub struct MadeUp {
    pub layers: u32,
    pub steps: u32,
}

/// Makes the recording of such a training.
pub fn recording(training: MadeUp) -> Recording {
    let mut maker = Maker::new(training);
    maker.train();
    maker.finish()
}

/// The number of events of one step is about this many times the number of layers.
pub const EVENTS_PER_LAYER_AND_STEP: u32 = 12;

struct Maker {
    training: MadeUp,
    names: Names,
    card: CardMemory,
    next_address: u64,
    reserved_to: u64,
    /// Free ranges by size, so that addresses are used again.
    free: std::collections::BTreeMap<u64, Vec<u64>>,
    step: u32,
}

impl Maker {
    fn new(training: MadeUp) -> Self {
        let mut names = Names::default();
        let file = |owner, file: &str, line, function: &str| Frame {
            file: file.to_owned(),
            line,
            function: function.to_owned(),
            owner,
        };
        names.frames = vec![
            file(
                FrameOwner::Torch,
                "torch/nn/modules/linear.py",
                134,
                "forward",
            ),
            file(FrameOwner::User, "model.py", 31, "forward"),
            file(FrameOwner::User, "train.py", 58, "main"),
        ];
        names.stacks = vec![
            vec![],
            vec![FrameId(0), FrameId(1), FrameId(2)],
            vec![FrameId(2)],
        ];
        names.operators = [
            "",
            "aten::linear",
            "aten::gelu",
            "aten::mm",
            "aten::_foreach_add_",
        ]
        .map(str::to_owned)
        .to_vec();
        names.modules.push(Module {
            path: "[Model]".to_owned(),
            class: "Model".to_owned(),
            output_bytes: 0,
        });
        for layer in 0..training.layers {
            names.modules.push(Module {
                path: format!("layers.{layer}"),
                class: "Layer".to_owned(),
                output_bytes: 3 * MIB,
            });
            names.texts.push(format!("layers.{layer}.weight"));
        }
        Self {
            training,
            names,
            card: CardMemory {
                outside_bytes: 520 * MIB,
                ..CardMemory::default()
            },
            next_address: FIRST_ADDRESS,
            reserved_to: FIRST_ADDRESS,
            free: std::collections::BTreeMap::new(),
            step: 0,
        }
    }

    fn train(&mut self) {
        let layers = self.training.layers;
        self.enter(Stage::Script);
        self.enter(Stage::Moving);
        for layer in 0..layers {
            self.allocate(4 * MIB - 300, Category::Parameter, layer, 0);
        }
        self.allocate(MIB / 2, Category::Buffer, 0, 0);
        for step in 0..self.training.steps {
            self.step = step;
            self.enter(Stage::Script);
            let input = self.allocate(MIB, Category::Input, 0, 0);
            let loss = self.allocate(512, Category::Kept, 0, 2);
            self.enter(Stage::Forward);
            let mut saved = Vec::new();
            for layer in 0..layers {
                let work = self.allocate(8 * MIB, Category::Workspace, layer, 1);
                saved.push(self.allocate(6 * MIB + 17, Category::Activation, layer, 1));
                self.release(work);
                let scratch = self.allocate(3 * MIB, Category::Temporary, layer, 2);
                saved.push(self.allocate(3 * MIB, Category::Activation, layer, 2));
                self.release(scratch);
            }
            self.enter(Stage::Backward);
            let mut gradients = Vec::new();
            for layer in (0..layers).rev() {
                let scratch = self.allocate(6 * MIB, Category::Temporary, layer, 3);
                gradients.push(self.allocate(4 * MIB - 300, Category::Gradient, layer, 3));
                self.release(scratch);
                for _ in 0..2 {
                    if let Some(each) = saved.pop() {
                        self.release(each);
                    }
                }
            }
            self.enter(Stage::OptimizerStep);
            if step == 0 {
                for layer in 0..layers {
                    self.allocate(4 * MIB - 300, Category::OptimizerState, layer, 4);
                    self.allocate(4 * MIB - 300, Category::OptimizerState, layer, 4);
                }
            }
            self.enter(Stage::ZeroGrad);
            for each in gradients {
                self.release(each);
            }
            self.release(input);
            if step + 1 == self.training.steps {
                self.release(loss);
            }
        }
        self.enter(Stage::Evaluation);
        let answer = self.allocate(2 * MIB, Category::Temporary, 0, 1);
        let failed = self.card.fail(Failure {
            requested_bytes: 90_000 * MIB,
            ..Failure::default()
        });
        self.push(failed);
        self.release(answer);
    }

    fn enter(&mut self, stage: Stage) {
        self.card.phases.push(Phase {
            stage,
            step: self.step,
            first_event: self.card.events.len() as u32,
        });
    }

    fn push(&mut self, event: Event) {
        self.card.times_us.push(self.card.events.len() as u64 * 3);
        self.card.events.push(event);
    }

    fn allocate(
        &mut self,
        bytes: u64,
        category: Category,
        layer: u32,
        operator: u32,
    ) -> AllocationId {
        let block_bytes = bytes.next_multiple_of(512);
        let address = self
            .free
            .get_mut(&block_bytes)
            .and_then(Vec::pop)
            .unwrap_or_else(|| self.fresh(block_bytes));
        let id = AllocationId(self.card.allocations.len() as u32);
        let has_name = matches!(
            category,
            Category::Parameter | Category::Gradient | Category::OptimizerState
        );
        self.card.allocations.push(Allocation {
            address,
            requested_bytes: bytes,
            block_bytes,
            allocated_at: Some(self.card.events.len() as u32),
            freed_at: None,
            category,
            name: NameId(if has_name { layer + 1 } else { 0 }),
            module: ModuleId(layer + 2),
            operator: OperatorId(operator),
            stack: StackId(if category == Category::Gradient { 0 } else { 1 }),
            pool: PoolId(0),
        });
        self.push(Event::Allocate(id));
        id
    }

    fn fresh(&mut self, bytes: u64) -> u64 {
        let address = self.next_address;
        self.next_address += bytes;
        while self.next_address > self.reserved_to {
            let change = SegmentChange {
                address: self.reserved_to,
                bytes: SEGMENT_BYTES,
                ..SegmentChange::default()
            };
            let reserved = self.card.reserve(change);
            self.push(reserved);
            self.reserved_to += SEGMENT_BYTES;
        }
        address
    }

    fn release(&mut self, id: AllocationId) {
        let now = self.card.events.len() as u32;
        let allocation = &mut self.card.allocations[id.0 as usize];
        allocation.freed_at = Some(now);
        let (address, bytes) = (allocation.address, allocation.block_bytes);
        self.free.entry(bytes).or_default().push(address);
        self.push(Event::Free(id));
    }

    fn finish(self) -> Recording {
        Recording {
            about: About {
                command: vec!["train.py".to_owned()],
                torch: "2.11.0".to_owned(),
                gpu: "NVIDIA GeForce RTX 3060".to_owned(),
                gpu_total_bytes: 12 << 30,
                capability: "8.6".to_owned(),
                steps: self.training.steps,
                ..About::default()
            },
            names: self.names,
            cards: vec![self.card],
            failed_run: None,
            warnings: Vec::new(),
        }
    }
}
