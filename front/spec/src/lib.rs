//! System description files to models, every mistake with its place and its mending.
//!
//! ```
//! let text = r#"
//! [system]
//! cpus = [0]
//!
//! [cpu.0]
//! policy = "edf"
//!
//! [task.control]
//! class = "periodic"
//! on = "cpu.0"
//! period = "10ms"
//! wect = "2ms"
//! "#;
//! let mistakes = punctual_spec::parse(text, "plant.toml").expect_err("a mistake");
//! assert_eq!(mistakes[0].message, "unknown key `wect` in [task.control]");
//! assert_eq!(mistakes[0].help, "did you mean `wcet`?");
//! ```
//!
//! The way through: `syntax` makes a TOML tree of the text, and `file` and `read` check it against
//! the one table of keys in `sections`. `lower` turns names into numbers and fills in defaults, and
//! [`System::validate`](punctual_model::System::validate) says whether the result means something.
//! `places` leads from there back to a line. [`schema`] is made from the same table of keys, and
//! [`write()`] goes the way back.
//!
//! This crate decides the notation. It does not know whether deadlines hold, and what a library or
//! function named in a file is.
#![forbid(unsafe_code)]

mod description;
mod diagnostic;
mod file;
mod load;
mod lower;
mod nearest;
mod places;
mod platform;
mod read;
mod record;
mod report;
mod scalar;
mod schema;
mod sdf3;
mod sections;
mod shape;
mod source;
mod syntax;
mod units;
mod write;

pub use description::{Description, parse};
pub use diagnostic::Diagnostic;
pub use load::{LoadError, MAX_FILE_BYTES, load};
pub use platform::{Platform, load_platform, parse_platform};
pub use report::MAX_DIAGNOSTICS;
pub use schema::schema;
pub use sdf3::{read_sdf3, write_sdf3};
pub use units::parse_duration;
pub use write::{write, write_platform};
