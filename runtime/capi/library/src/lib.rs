//! libpunctual: what C programs link with; everything in it is in `punctual-capi`.
pub use punctual_capi::*;
