//! The options about the breakdown of memory, shared by the commands that show it.

use std::path::PathBuf;

/// Where the breakdown goes, in addition to the answer.
#[derive(Clone, Debug, clap::Args)]
pub struct BreakdownOptions {
    /// Write the report page to this file; it opens offline in any browser
    #[arg(long, value_name = "FILE.html", conflicts_with = "no_breakdown")]
    pub report: Option<PathBuf>,

    /// Write every allocation with its owner to this file, for `ghostgpu report`
    #[arg(long, value_name = "FILE.ghost", conflicts_with = "no_breakdown")]
    pub record: Option<PathBuf>,

    /// Do not record what the memory is made of
    #[arg(long)]
    pub no_breakdown: bool,
}
