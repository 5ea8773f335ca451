//! The network that an RNN descriptor describes.

/// `cudnnRNNMode_t`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// One gate, with either activation.
    Plain,
    Lstm,
    Gru,
}

impl Cell {
    pub fn from_number(number: i32) -> Option<Self> {
        match number {
            0 | 1 => Some(Self::Plain),
            2 => Some(Self::Lstm),
            3 => Some(Self::Gru),
            _ => None,
        }
    }

    pub fn gates(self) -> u64 {
        match self {
            Self::Plain => 1,
            Self::Lstm => 4,
            Self::Gru => 3,
        }
    }
}

/// `cudnnRNNAlgo_t`
pub mod algorithm {
    pub const PERSIST_STATIC: i32 = 1;
    pub const PERSIST_STATIC_SMALL_H: i32 = 3;
}

#[derive(Clone, Debug)]
pub struct Network {
    pub algorithm: i32,
    pub cell: Cell,
    pub directions: u64,
    pub element_bytes: u64,
    pub data_type: i32,
    pub input: u64,
    pub hidden: u64,
    /// Equal to `hidden` when there is no projection.
    pub projection: u64,
    pub layers: u64,
    pub has_dropout: bool,
    /// Input and output are padded to the longest sequence.
    pub is_padded: bool,
}

impl Network {
    pub fn has_projection(&self) -> bool {
        self.projection != self.hidden
    }

    /// The width of what a layer reads.
    pub fn layer_input(&self, layer: u64) -> u64 {
        if layer == 0 {
            self.input
        } else {
            self.directions * self.projection
        }
    }

    /// Elements of all weight matrices, without biases.
    pub fn matrix_elements(&self) -> u64 {
        (0..self.layers)
            .map(|layer| self.directions * self.matrix_elements_of(layer))
            .sum()
    }

    /// Elements of one pseudo-layer's matrices: one direction of one layer.
    pub fn matrix_elements_of(&self, layer: u64) -> u64 {
        let gates = self.cell.gates() * self.hidden * (self.layer_input(layer) + self.projection);
        let projection = if self.has_projection() {
            self.projection * self.hidden
        } else {
            0
        };
        gates + projection
    }
}
