//! System files: read, refused with their place and remedy, written.

mod fuzz;
mod gangs;
mod graphs;
mod groups;
mod guide;
mod load;
mod mistakes;
mod mutations;
mod schema;
mod sdf3;
mod two_tasks;
mod valid;
mod write;
