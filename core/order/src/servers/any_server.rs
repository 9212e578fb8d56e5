//! The built-in servers behind one type, for servers that a file chooses.

use crate::server::Server;
use punctual_model::{Instant, ServerKind, Work};

use super::{ConstantBandwidth, Deferrable, PeriodicResource, Polling, Sporadic};

/// One of the built-in servers.
#[derive(Clone, Copy, Debug)]
pub enum AnyServer {
    /// Full if something is pending at a period start.
    Polling(Polling),
    /// Kept to the end of the period.
    Deferrable(Deferrable),
    /// Comes back one period after its use.
    Sporadic(Sporadic),
    /// A deadline that moves.
    ConstantBandwidth(ConstantBandwidth),
    /// Passes whether used or not.
    PeriodicResource(PeriodicResource),
}

/// Runs `$body` with `$server` bound to whichever server it is.
macro_rules! each {
    ($any:expr, $server:ident => $body:expr) => {
        match $any {
            AnyServer::Polling($server) => $body,
            AnyServer::Deferrable($server) => $body,
            AnyServer::Sporadic($server) => $body,
            AnyServer::ConstantBandwidth($server) => $body,
            AnyServer::PeriodicResource($server) => $body,
        }
    };
}

impl Server for AnyServer {
    fn new(terms: &punctual_model::Server) -> Self {
        match terms.kind {
            ServerKind::Polling => AnyServer::Polling(Polling::new(terms)),
            ServerKind::Deferrable => AnyServer::Deferrable(Deferrable::new(terms)),
            ServerKind::Sporadic => AnyServer::Sporadic(Sporadic::new(terms)),
            ServerKind::ConstantBandwidth => {
                AnyServer::ConstantBandwidth(ConstantBandwidth::new(terms))
            }
            ServerKind::PeriodicResource => {
                AnyServer::PeriodicResource(PeriodicResource::new(terms))
            }
        }
    }
    #[inline]
    fn wake(&mut self, now: Instant, since: Instant) {
        each!(self, s => s.wake(now, since));
    }
    #[inline]
    fn idle(&mut self, at: Instant) {
        each!(self, s => s.idle(at));
    }
    fn charge(&mut self, now: Instant, work: Work) {
        each!(self, s => s.charge(now, work));
    }
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn spend(&mut self, now: Instant, work: Work) -> Option<Work> {
        each!(self, s => s.spend(now, work))
    }
    fn timer(&mut self, now: Instant) {
        each!(self, s => s.timer(now));
    }
    #[inline]
    fn budget(&self) -> Work {
        each!(self, s => s.budget())
    }
    fn capacity(&self) -> Work {
        each!(self, s => s.capacity())
    }
    fn give_up(&mut self) {
        each!(self, s => s.give_up());
    }
    #[inline]
    fn next(&self) -> Option<Instant> {
        each!(self, s => s.next())
    }
    fn returns(&self) -> Option<Instant> {
        each!(self, s => s.returns())
    }
    #[inline]
    fn deadline(&self) -> Instant {
        each!(self, s => s.deadline())
    }
    fn check(&self) -> Result<(), &'static str> {
        each!(self, s => s.check())
    }
}
