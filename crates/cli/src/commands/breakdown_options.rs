//! The options about whose memory it is, shared by the commands that say so.

use std::path::PathBuf;

/// Where what the memory was made of goes, beside the answer.
#[derive(Clone, Debug, clap::Args)]
pub struct BreakdownOptions {
    /// Write what the memory was made of as a page to this file: it opens offline in any browser
    #[arg(long, value_name = "FILE.html", conflicts_with = "no_breakdown")]
    pub report: Option<PathBuf>,

    /// Write the recording to this file: every allocation with its owner, for `ghostgpu report`
    #[arg(long, value_name = "FILE.ghost", conflicts_with = "no_breakdown")]
    pub record: Option<PathBuf>,

    /// Do not record whose memory it is, and leave the breakdown out of the answer
    #[arg(long)]
    pub no_breakdown: bool,
}
