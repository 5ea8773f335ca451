//! A convolution as the matrix product it is computed as, and the tiles it is cut into.

use ghostgpu_oracle::{Node, attribute, kind};

use crate::cudnn::data_type;

/// `cudnnBackendKnobType_t`, those that make up a persistent engine's configuration.
mod knob {
    pub const TILE_SIZE: i32 = 2;
    pub const TILE_DEPTH: i32 = 13;
    pub const INDEX_MODE: i32 = 18;
    pub const WORKSPACE: i32 = 25;
    pub const CLUSTER_ROWS: i32 = 27;
    pub const CLUSTER_COLUMNS: i32 = 28;
}

/// Rows and columns of an output tile, by the value of the tile-size knob. Found by growing a
/// problem until cuDNN counts a second tile.
const TILE_SIZES: [(i64, u64, u64); 14] = [
    (0, 128, 128),
    (1, 128, 64),
    (2, 128, 32),
    (3, 256, 128),
    (4, 256, 64),
    (5, 64, 64),
    (6, 128, 256),
    (7, 64, 128),
    (8, 64, 32),
    (9, 64, 256),
    (16, 256, 32),
    (18, 64, 192),
    (19, 128, 192),
    (20, 256, 96),
];

const ACCUMULATOR_BYTES: u64 = 4;

/// The knobs of a persistent engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    pub engine: i64,
    pub tile: i64,
    pub tile_rows: u64,
    pub tile_columns: u64,
    /// Whether it has the larger of two depths (how much of the sum is computed per iteration).
    pub is_deep: bool,
    pub index_mode: i64,
    cluster_rows: u64,
    cluster_columns: u64,
    /// Whether left-over tiles may be split.
    pub may_split: bool,
    knobs: Vec<(i32, i64)>,
}

impl Configuration {
    /// `None` if this is not a persistent engine with a partial-sum buffer.
    pub fn read(engine: i64, knobs: &[(i32, i64)]) -> Option<Self> {
        let value = |wanted: i32| {
            let found = knobs.iter().find(|(knob, _)| *knob == wanted);
            found.map(|&(_, value)| value)
        };
        let tile = value(knob::TILE_SIZE)?;
        let workspace = value(knob::WORKSPACE)?;
        let depth = value(knob::TILE_DEPTH)?;
        let index_mode = value(knob::INDEX_MODE)?;
        let cluster_rows = u64::try_from(value(knob::CLUSTER_ROWS)?).ok()?;
        let cluster_columns = u64::try_from(value(knob::CLUSTER_COLUMNS)?).ok()?;
        if cluster_rows == 0 || cluster_columns == 0 {
            return None;
        }
        let &(_, tile_rows, tile_columns) = TILE_SIZES.iter().find(|(known, ..)| *known == tile)?;
        Some(Self {
            engine,
            tile,
            tile_rows,
            tile_columns,
            is_deep: depth == 1,
            index_mode,
            cluster_rows,
            cluster_columns,
            may_split: workspace == 0,
            knobs: knobs.to_vec(),
        })
    }

    pub fn cluster_blocks(&self) -> u64 {
        self.cluster_rows * self.cluster_columns
    }

    pub fn tile_bytes(&self) -> u64 {
        self.tile_rows * self.tile_columns * ACCUMULATOR_BYTES
    }

    /// The same configuration, not allowed to split tiles.
    pub fn without_splits(&self) -> Vec<(i32, i64)> {
        self.with(&[(knob::WORKSPACE, 1)])
    }

    /// The same configuration with single blocks instead of clusters.
    pub fn without_clusters(&self) -> Vec<(i32, i64)> {
        self.with(&[(knob::CLUSTER_ROWS, 1), (knob::CLUSTER_COLUMNS, 1)])
    }

    fn with(&self, changes: &[(i32, i64)]) -> Vec<(i32, i64)> {
        let changed = |knob| changes.iter().find(|(name, _)| *name == knob);
        self.knobs
            .iter()
            .map(|&(knob, value)| (knob, changed(knob).map_or(value, |&(_, new)| new)))
            .collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Forward,
    Data,
    Filter,
}

/// One convolution: what decides its tiles and the length of its sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    pub direction: Direction,
    pub data_type: i32,
    input_pixels: u64,
    output_pixels: u64,
    taps: u64,
    /// Channels and filters of one group, or of several that are computed together.
    channels: u64,
    filters: u64,
    groups: u64,
}

/// Groups narrower than this are computed together.
const PACKED_CHANNELS: u64 = 64;

impl Problem {
    /// `None` if the graph is anything but one convolution.
    pub fn read(graph: &Node) -> Option<Self> {
        let [operation] = graph.nodes(attribute::GRAPH_OPERATIONS) else {
            return None;
        };
        let (direction, first) = match operation.kind {
            kind::CONVOLUTION_FORWARD => (Direction::Forward, 703),
            kind::CONVOLUTION_BACKWARD_DATA => (Direction::Data, 709),
            kind::CONVOLUTION_BACKWARD_FILTER => (Direction::Filter, 715),
            _ => return None,
        };
        let tensor = |offset: i32| operation.nodes(first + offset).first();
        let (filter, input, output) = (tensor(0)?, tensor(1)?, tensor(2)?);
        let dimensions = |node: &Node| -> Option<Vec<u64>> {
            let numbers = node.numbers(attribute::TENSOR_DIMENSIONS);
            let sizes: Result<Vec<u64>, _> =
                numbers.iter().map(|&size| u64::try_from(size)).collect();
            sizes.ok().filter(|sizes| sizes.len() > 2)
        };
        let (filter, x, y) = (dimensions(filter)?, dimensions(input)?, dimensions(output)?);
        let data_type = *input.numbers(attribute::TENSOR_DATA_TYPE).first()? as i32;
        let pixels = |sizes: &[u64]| sizes[0] * sizes[2..].iter().product::<u64>();
        let channels_per_group = filter[1].max(1);
        let groups = (x[1] / channels_per_group).max(1);
        let together = if groups > 1 {
            (PACKED_CHANNELS / channels_per_group).clamp(1, groups)
        } else {
            1
        };
        Some(Self {
            direction,
            data_type,
            input_pixels: pixels(&x),
            output_pixels: pixels(&y),
            taps: filter[2..].iter().product(),
            channels: channels_per_group * together,
            filters: y[1] / groups * together,
            groups: groups.div_ceil(together),
        })
    }

    /// The number of output tiles, including those that only fill up a cluster.
    pub fn tiles(&self, configuration: &Configuration) -> u64 {
        let (rows, columns, repeats) = match self.direction {
            Direction::Forward => (self.output_pixels, self.filters, 1),
            Direction::Data => (self.input_pixels, self.channels, 1),
            // Each tap of the filter is a separate matrix.
            Direction::Filter => (self.filters, self.channels, self.taps),
        };
        let down = rows.div_ceil(configuration.tile_rows);
        let across = columns.div_ceil(configuration.tile_columns) * repeats;
        down.next_multiple_of(configuration.cluster_rows)
            * across.next_multiple_of(configuration.cluster_columns)
            * self.groups
    }

    /// How much of a sum is computed per iteration.
    pub fn depth(&self, configuration: &Configuration) -> u64 {
        let is_half = [data_type::HALF, data_type::BFLOAT16].contains(&self.data_type);
        if is_half && configuration.is_deep {
            64
        } else {
            32
        }
    }

    /// How many iterations one output tile takes.
    pub fn iterations(&self, configuration: &Configuration) -> u64 {
        let depth = self.depth(configuration);
        match self.direction {
            Direction::Forward => self.taps * self.channels.div_ceil(depth),
            Direction::Data => self.taps * self.filters.div_ceil(depth),
            Direction::Filter => self.output_pixels.div_ceil(depth),
        }
    }
}
