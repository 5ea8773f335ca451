//! cuDNN: engines and workspaces of operation graphs, sizes of recurrent networks and dropout states.

mod backend;
mod engines;
mod recurrent;
