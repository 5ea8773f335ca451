//! What a snapshot says and what it cannot say, in one short line each.

/// What every figure of a snapshot's page comes from.
pub(super) const KNOWN: [&str; 5] = [
    "When each allocation was made and freed, and what was asked for, to the byte.",
    "The stack that made it, as far as stacks were recorded.",
    "Its stream and pool, its address, and the segment around it.",
    "What PyTorch had reserved, and how much of it was free.",
    "Requests that failed, and what the driver had left then.",
];

/// What a snapshot does not contain.
pub(super) const UNKNOWN: [&str; 5] = [
    "Whose memory it is: parameters, gradients, optimizer state and activations look alike.",
    "Steps and stages: where a forward or a backward pass began.",
    "Modules and operators, except where a stack names them.",
    "The rest of the card: its size, its name, the CUDA context, libraries, other processes.",
    "The exact sizes of freed blocks: requests are rounded up as the allocator does, and a large block may have been up to 1 MiB larger.",
];
