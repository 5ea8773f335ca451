//! A request that no card could satisfy: which shape is likely wrong.

use ghostgpu_text::grouped;
use serde::Serialize;

use crate::amount::Amount;
use crate::finding::Finding;

/// The most likely mistake in a shape.
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

/// Words that calls contain; the first match in the innermost call decides.
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

/// The likely mistake, from the calls that led to the request.
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
    pub fn sentence(self, requested: Option<Amount>) -> String {
        let square = requested.map(|requested| {
            let side = ((requested.bytes / 2) as f64).sqrt() as u64;
            format!(
                " ({requested} is {} x {} values of 2 bytes)",
                grouped(side),
                grouped(side)
            )
        });
        let square = square.unwrap_or_default();
        let values = requested
            .map(|requested| format!(" ({} values of 4 bytes)", grouped(requested.bytes / 4)));
        let values = values.unwrap_or_default();
        match self {
            Self::AttentionScores => format!(
                "attention scores: heads x length x length values{square}; they explode with long \
                 sequences or large images. Flash or memory-efficient attention never stores them"
            ),
            Self::Logits => format!(
                "logits: batch x length x vocabulary values{values}; check the length, or compute the loss \
                 in chunks"
            ),
            Self::OneHot => {
                format!("a one-hot encoding: samples x classes values{values}; use indices instead")
            }
            Self::Pairwise => format!(
                "all pairs of two sets: N x M values{square}; an extra dimension was broadcast, or the \
                 sets have to be processed in chunks"
            ),
            Self::Convolution => {
                format!(
                    "a convolution: images too large, or channels and spatial dimensions swapped{values}"
                )
            }
            Self::Resolution => format!("resizing or sampling to the wrong resolution{values}"),
            Self::Repeat => format!("a tensor repeated along the wrong dimension{values}"),
            Self::Padding => format!(
                "padding to one very long sample{values}: truncate samples, or sort them by length"
            ),
            Self::ExplicitSize => format!("a wrongly computed size{values}"),
            Self::Concatenation => format!("everything collected in one tensor{values}"),
            Self::Embedding => format!("an embedding with the wrong number of rows{values}"),
            Self::Mask => format!("a product or mask with mismatched shapes{square}"),
            Self::Overflow => {
                "a size that overflowed or is negative: print the shape on the line before"
                    .to_owned()
            }
            Self::Unknown => {
                format!("a wrong dimension{values}: print the shapes on the line that failed")
            }
        }
    }
}
