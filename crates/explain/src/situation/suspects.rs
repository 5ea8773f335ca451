//! A request that no card could serve: which shape is the likely mistake.

use ghostgpu_text::grouped;
use serde::Serialize;

use crate::amount::Amount;
use crate::finding::Finding;

/// What went wrong with a shape, most likely.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Suspect {
    AttentionScores,
    Logits,
    OneHot,
    Pairwise,
    Convolution,
    Resolution,
    Repeat,
    Padding,
    ExplicitSize,
    Concatenation,
    Embedding,
    Mask,
    Overflow,
    Unknown,
}

/// Words of calls, innermost first; the first that is found decides.
const CLUES: [(Suspect, &[&str]); 12] = [
    (
        Suspect::AttentionScores,
        &[
            "scaled_dot_product_attention",
            "attention_scores",
            "attn_weights",
            "attention_probs",
            "attn",
            "attention",
            "proj_query",
            "query_states",
            "baddbmm",
            "query",
            "scores",
            "energy",
        ],
    ),
    (Suspect::OneHot, &["one_hot", "onehot", "scatter_("]),
    (
        Suspect::Pairwise,
        &[
            "cdist",
            "pdist",
            "pairwise",
            "chamfer",
            "unsqueeze(0) - ",
            "[:, none]",
            "[none, :]",
            "outer(",
            "meshgrid",
            "dist(",
        ],
    ),
    (
        Suspect::Logits,
        &[
            "cross_entropy",
            "log_softmax",
            "lm_head",
            "logits",
            "nll_loss",
            "vocab",
        ],
    ),
    (Suspect::Embedding, &["embedding"]),
    (
        Suspect::Resolution,
        &[
            "interpolate",
            "grid_sample",
            "upsample",
            "resize",
            "affine_grid",
        ],
    ),
    (
        Suspect::Convolution,
        &[
            "conv2d",
            "conv3d",
            "conv1d",
            "conv_transpose",
            "unfold",
            "im2col",
        ],
    ),
    (
        Suspect::Repeat,
        &[
            "repeat(",
            "repeat_interleave",
            "expand(",
            "tile(",
            "broadcast",
        ],
    ),
    (
        Suspect::Padding,
        &["pad_sequence", "f.pad", "padding", ".pad("],
    ),
    (
        Suspect::Concatenation,
        &[
            "torch.cat",
            "torch.stack",
            "nested_concat",
            "hstack",
            "vstack",
        ],
    ),
    (
        Suspect::ExplicitSize,
        &[
            "torch.zeros",
            "torch.ones",
            "torch.empty",
            "torch.rand",
            "torch.arange",
            "torch.full",
            "eye(",
            "new_zeros",
        ],
    ),
    (
        Suspect::Mask,
        &[
            "nonzero",
            "where(",
            "mask",
            "index_select",
            "matmul",
            "bmm",
            "einsum",
        ],
    ),
];

/// Names the likely one from the calls that led to the request.
pub fn suspect(finding: &Finding) -> Suspect {
    if finding.kind == crate::kind::Kind::CudaAbsurdSize {
        return Suspect::Overflow;
    }
    let frames = finding
        .traceback
        .as_ref()
        .map(|found| found.frames.as_slice());
    for frame in frames.unwrap_or_default().iter().rev().take(6) {
        let text = format!("{} {}", frame.code, frame.function).to_lowercase();
        let found = CLUES
            .iter()
            .find(|(_, words)| words.iter().any(|word| text.contains(word)));
        if let Some((suspect, _)) = found {
            return *suspect;
        }
    }
    Suspect::Unknown
}

impl Suspect {
    /// What to look at, with a number from the size of the request.
    pub fn sentence(self, asked: Option<Amount>) -> String {
        let square = asked.map(|asked| {
            let side = ((asked.bytes / 2) as f64).sqrt() as u64;
            format!(
                " ({asked} is a square of {} x {} values of 2 bytes)",
                grouped(side),
                grouped(side)
            )
        });
        let square = square.unwrap_or_default();
        let values =
            asked.map(|asked| format!(" ({} values of 4 bytes)", grouped(asked.bytes / 4)));
        let values = values.unwrap_or_default();
        match self {
            Self::AttentionScores => format!(
                "attention scores: heads x length x length values{square}; a long sequence or a large \
                 image makes them explode, and flash or memory-efficient attention never makes them"
            ),
            Self::Logits => format!(
                "logits: batch x length x vocabulary values{values}; check the length, or compute the loss \
                 in chunks"
            ),
            Self::OneHot => {
                format!("a one-hot encoding: samples x classes values{values}; use indices instead")
            }
            Self::Pairwise => format!(
                "all pairs of two sets: N x M values{square}; a dimension too many was broadcast, or the \
                 sets must be taken in pieces"
            ),
            Self::Convolution => {
                format!("a convolution: images too large, or channels and sides exchanged{values}")
            }
            Self::Resolution => format!("resizing or sampling to a wrong resolution{values}"),
            Self::Repeat => format!("a tensor repeated along a wrong dimension{values}"),
            Self::Padding => format!(
                "padding to one very long sample{values}: cut samples at a length, or sort by it"
            ),
            Self::ExplicitSize => format!("a size that was computed wrongly{values}"),
            Self::Concatenation => format!("collecting everything in one tensor{values}"),
            Self::Embedding => format!("an embedding with a wrong number of rows{values}"),
            Self::Mask => format!("a product or mask of mismatched shapes{square}"),
            Self::Overflow => {
                "a size that overflowed or is negative: print the shape in the line before"
                    .to_owned()
            }
            Self::Unknown => {
                format!("one dimension is wrong{values}: print the shapes in the line that failed")
            }
        }
    }
}
