//! The C library's calls that may block, entered through here by every caller of the program.
//!
//! As with `interpose`, the executable defines these names: of files and pipes in `files`, of
//! sockets in `sockets`, of waiting and sleeping in `waiting`, and where compilers have them check
//! the room that they are given in `fortified`. A light thread's call goes through the ring of its
//! CPU ([`crate::blocking`]) and returns what it would elsewhere. Everybody else's is made
//! directly, as the library would, except that it is no cancellation point.

mod again;
mod files;
mod fortified;
mod sockets;
mod waiting;
