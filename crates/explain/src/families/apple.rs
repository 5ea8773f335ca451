//! MLX on Apple GPUs.

use super::{Family, Message, number, pattern, range};
use crate::amount::Amount;
use crate::kind::Kind;
use crate::window::Window;

pub const FAMILY: Family = Family {
    needles: &["[metal::malloc]"],
    read,
};

pattern!(
    MALLOC,
    r"\[metal::malloc\](?:Attempting|Unable)toallocate(\d+)bytes(?:whichisgreaterthanthemaximumallowedbuffersizeof(\d+)bytes)?"
);

fn read(window: &Window) -> Vec<Message> {
    let messages = MALLOC.printed(window.squeezed()).map(|found| {
        let (start, end) = range(&found);
        let mut message = Message::new(Kind::Mlx, start, end);
        message.figures.requested = number(&found, 1).map(Amount::exact);
        message.figures.allowed = number(&found, 2).map(Amount::exact);
        message
    });
    messages.collect()
}
