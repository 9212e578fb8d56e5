//! The built `punctual` command, seen from outside: exit codes, output, files.

mod bench;
mod check;
mod common;
mod help;
mod sim;
