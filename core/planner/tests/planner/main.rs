//! Plans of small sets beside every possible one, of large sets beside known shares of success.

mod book;
mod common;
mod counted;
mod exhaustive;
mod success;
