//! The modules, parameters, operators and stacks of a synthetic transformer.

use std::collections::BTreeMap;

use crate::{Frame, FrameId, FrameOwner, Module, ModuleId, NameId, Names, OperatorId, StackId};

/// The modules of a layer, and those around the layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Block {
    Embeddings,
    Query,
    Key,
    Value,
    SelfAttention,
    AttentionOutput,
    Intermediate,
    Output,
    Classifier,
}

/// Path inside a layer, class, line of the model's file.
const LAYER: [(Block, &str, &str, u32); 7] = [
    (Block::Query, "attention.self.query", "Linear", 286),
    (Block::Key, "attention.self.key", "Linear", 287),
    (Block::Value, "attention.self.value", "Linear", 288),
    (
        Block::SelfAttention,
        "attention.self",
        "BertSelfAttention",
        312,
    ),
    (
        Block::AttentionOutput,
        "attention.output",
        "BertSelfOutput",
        349,
    ),
    (Block::Intermediate, "intermediate", "BertIntermediate", 421),
    (Block::Output, "output", "BertOutput", 436),
];

/// Everything that has a name in such a training.
pub(super) struct Vocabulary {
    pub(super) names: Names,
    /// Name, module and bytes of each, in the model's order.
    pub(super) parameters: Vec<(NameId, ModuleId, u64)>,
    pub(super) position_ids: NameId,
    pub(super) moving: StackId,
    pub(super) main: StackId,
    pub(super) optimizer: StackId,
    pub(super) evaluation: StackId,
    modules: BTreeMap<(Block, u32), ModuleId>,
    forwards: BTreeMap<Block, StackId>,
    block_of: BTreeMap<ModuleId, Block>,
    operators: BTreeMap<String, OperatorId>,
}

impl Vocabulary {
    pub(super) fn new(layers: u32) -> Self {
        let mut words = Self {
            names: Names::default(),
            parameters: Vec::new(),
            position_ids: NameId(0),
            moving: StackId(0),
            main: StackId(0),
            optimizer: StackId(0),
            evaluation: StackId(0),
            modules: BTreeMap::new(),
            forwards: BTreeMap::new(),
            block_of: BTreeMap::new(),
            operators: BTreeMap::new(),
        };
        words.add_stacks();
        words.add_modules(layers);
        words
    }

    pub(super) fn module(&self, block: Block, layer: u32) -> ModuleId {
        self.modules[&(block, layer)]
    }

    pub(super) fn forward(&self, block: Block) -> StackId {
        self.forwards[&block]
    }

    pub(super) fn forward_of(&self, module: ModuleId) -> StackId {
        self.forward(self.block_of[&module])
    }

    pub(super) fn operator(&mut self, name: &str) -> OperatorId {
        if let Some(&known) = self.operators.get(name) {
            return known;
        }
        let id = OperatorId(self.names.operators.len() as u32);
        self.names.operators.push(name.to_owned());
        self.operators.insert(name.to_owned(), id);
        id
    }

    fn add_stacks(&mut self) {
        let user = FrameOwner::User;
        let training = self.frame(user, "train.py", 71, "main");
        let epoch = self.frame(user, "train.py", 44, "one_epoch");
        let moving = self.frame(user, "train.py", 63, "main");
        let step = self.frame(user, "train.py", 49, "one_epoch");
        let evaluate = self.frame(user, "train.py", 78, "evaluate");
        let adam = self.frame(
            FrameOwner::Torch,
            "torch/optim/adamw.py",
            180,
            "_init_group",
        );
        self.moving = self.stack(vec![moving]);
        self.main = self.stack(vec![epoch, training]);
        self.optimizer = self.stack(vec![adam, step, training]);
        self.evaluation = self.stack(vec![evaluate, training]);
        let file = "transformers/models/bert/modeling_bert.py";
        let linear = self.frame(
            FrameOwner::Torch,
            "torch/nn/modules/linear.py",
            134,
            "forward",
        );
        let around = [(Block::Embeddings, 108), (Block::Classifier, 1571)];
        let inside = LAYER.map(|(block, _, _, line)| (block, line));
        for (block, line) in around.into_iter().chain(inside) {
            let frame = self.frame(FrameOwner::Package, file, line, "forward");
            let stack = self.stack(vec![linear, frame, epoch, training]);
            self.forwards.insert(block, stack);
        }
    }

    fn add_modules(&mut self, layers: u32) {
        self.add_module(
            Block::Embeddings,
            0,
            "bert.embeddings".to_owned(),
            "BertEmbeddings",
        );
        self.position_ids = self.text("bert.embeddings.position_ids".to_owned());
        self.add_parameter(
            Block::Embeddings,
            0,
            "word_embeddings.weight",
            30_522 * 768 * 4,
        );
        for layer in 0..layers {
            for (block, path, class, _) in LAYER {
                self.add_module(
                    block,
                    layer,
                    format!("bert.encoder.layer.{layer}.{path}"),
                    class,
                );
                let bytes = match block {
                    Block::SelfAttention => continue,
                    Block::Intermediate | Block::Output => 4 * 768 * 768 * 4,
                    _ => 768 * 768 * 4,
                };
                self.add_parameter(block, layer, "weight", bytes);
                self.add_parameter(block, layer, "bias", 768 * 4);
            }
        }
        self.add_module(Block::Classifier, 0, "classifier".to_owned(), "Linear");
        self.add_parameter(Block::Classifier, 0, "weight", 2 * 768 * 4);
    }

    fn add_module(&mut self, block: Block, layer: u32, path: String, class: &str) {
        let id = ModuleId(self.names.modules.len() as u32);
        let class = class.to_owned();
        self.names.modules.push(Module {
            path,
            class,
            output_bytes: 0,
        });
        self.modules.insert((block, layer), id);
        self.block_of.insert(id, block);
    }

    fn add_parameter(&mut self, block: Block, layer: u32, name: &str, bytes: u64) {
        let module = self.module(block, layer);
        let path = self.names.modules[module.0 as usize].path.clone();
        let name = self.text(format!("{path}.{name}"));
        self.parameters.push((name, module, bytes));
    }

    fn text(&mut self, text: String) -> NameId {
        self.names.texts.push(text);
        NameId(self.names.texts.len() as u32 - 1)
    }

    fn stack(&mut self, frames: Vec<FrameId>) -> StackId {
        self.names.stacks.push(frames);
        StackId(self.names.stacks.len() as u32 - 1)
    }

    fn frame(&mut self, owner: FrameOwner, file: &str, line: u32, function: &str) -> FrameId {
        self.names.frames.push(Frame {
            file: file.to_owned(),
            line,
            function: function.to_owned(),
            owner,
        });
        FrameId(self.names.frames.len() as u32 - 1)
    }
}
