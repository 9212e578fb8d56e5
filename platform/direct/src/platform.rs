//! All that this crate uses of the platform: a light thread with its clock, stacks and storages.

pub(crate) use punctual_linux::direct::{
    Clock, DirectScheduler, Library, LightThread, Registration, Stack, Storage,
    can_write_thread_pointer,
};
pub(crate) use punctual_linux::job::contain;
