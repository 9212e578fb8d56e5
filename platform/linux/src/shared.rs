//! Words that the CPUs of a run share; a model checker compiles these files with words of its own.

pub(crate) mod atomic;
pub(crate) mod kicks;
pub(crate) mod mailbox;
pub(crate) mod pending;
pub(crate) mod ring;
pub(crate) mod ticket_lock;
