//! `--count`, which every command about several cards has.

#[derive(Clone, Copy, Debug, clap::Args)]
pub struct CardCount {
    /// Number of cards in the machine
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=64))]
    pub count: u32,
}
