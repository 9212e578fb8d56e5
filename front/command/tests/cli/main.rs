//! The built `punctual` command, seen from outside: exit codes, output, files.

mod bench;
mod c_functions;
mod check;
mod common;
mod conform;
mod doctor;
mod help;
mod replay;
mod report;
mod run;
mod sim;
mod sweep;
