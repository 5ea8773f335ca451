//! A request that no card could satisfy: which shape is likely wrong.

use ghostgpu_text::grouped;
use serde::Serialize;

use crate::amount::Amount;
use crate::catalogue::Catalogue;
use crate::finding::Finding;
use crate::say;

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
    pub fn sentence(self, requested: Option<Amount>, catalogue: &Catalogue) -> String {
        let square = requested.map(|requested| {
            let side = grouped(((requested.bytes / 2) as f64).sqrt() as u64);
            say!(
                catalogue,
                "square-values",
                requested = requested,
                side = side
            )
        });
        let square = square.unwrap_or_default();
        let values = requested.map(|requested| {
            let count = grouped(requested.bytes / 4);
            say!(catalogue, "four-byte-values", count = count)
        });
        let values = values.unwrap_or_default();
        let id = match self {
            Self::AttentionScores => "suspect-attention",
            Self::Logits => "suspect-logits",
            Self::OneHot => "suspect-one-hot",
            Self::Pairwise => "suspect-pairwise",
            Self::Convolution => "suspect-convolution",
            Self::Resolution => "suspect-resolution",
            Self::Repeat => "suspect-repeat",
            Self::Padding => "suspect-padding",
            Self::ExplicitSize => "suspect-size",
            Self::Concatenation => "suspect-concatenation",
            Self::Embedding => "suspect-embedding",
            Self::Mask => "suspect-mask",
            Self::Overflow => "suspect-overflow",
            Self::Unknown => "suspect-unknown",
        };
        let suspect = say!(catalogue, id, square = square, values = values);
        say!(catalogue, "likely", suspect = suspect)
    }
}
