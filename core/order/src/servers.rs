//! The built-in servers, one rule each; note 0006 says which promise what.

mod allotment;
mod any_server;
mod constant_bandwidth;
mod deferrable;
mod periodic_resource;
mod polling;
mod sporadic;

pub use any_server::AnyServer;
pub use constant_bandwidth::ConstantBandwidth;
pub use deferrable::Deferrable;
pub use periodic_resource::PeriodicResource;
pub use polling::Polling;
pub use sporadic::Sporadic;
