//! Known graphs with known answers, and random graphs whose answers agree.

mod drawn;
mod random;
mod reference;
