//! The functions that compiled programs call, by the names of libgomp.
//!
//! The files below hold what each is called with; the constructs themselves stand in `region`,
//! `shares`, `locks` and `wait`. A name that is not here yet ends the program with a line.

mod absent;
mod loops;
mod parallel;
mod program;
mod sync;
mod tasks;
