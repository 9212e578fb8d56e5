//! Segments of a plan start and end, as jobs of their threads; messages tell other CPUs of that.

use punctual_model::{Class, CpuId, Instant};
use punctual_order::{Policy, Refusal};

use super::{ConfigError, MAX_RELEASES_PER_ENTRY, Shard};
use crate::agenda::{AgendaStep, AgendaView, Head};
use crate::event::Message;
use crate::trace::{Sink, TraceEvent};

impl<P: Policy> Shard<P> {
    /// Declares that segments here may need the CPU behind a remote predecessor to be so far, and
    /// that CPU `to` hears of this one as slot `there`. Before [`Shard::reserve_agenda`].
    ///
    /// # Errors
    /// When there is no such remote predecessor.
    pub fn add_agenda_peer(&mut self, slot: u32, to: CpuId, there: u32) -> Result<(), ConfigError> {
        if self.precedences.frontier(slot).is_none() {
            return Err(ConfigError::UnknownPredecessor);
        }
        self.agenda
            .get_or_insert_default()
            .add_peer(slot, to, there);
        Ok(())
    }

    /// Makes room for so many segments, those in force and those staged together.
    pub fn reserve_agenda(&mut self, segments: usize) {
        self.agenda.get_or_insert_default().reserve(segments);
        (self.fast_until, self.tree_until) = (Instant::ZERO, Instant::ZERO);
    }

    /// Where this CPU is in its plan. O(1).
    pub fn agenda(&self) -> AgendaView {
        self.agenda
            .as_ref()
            .map_or_else(AgendaView::default, |agenda| agenda.view())
    }

    pub(super) fn set_agenda(&mut self, step: &AgendaStep) -> Result<(), Refusal> {
        if let AgendaStep::Stage(segment) = step {
            let t = self.thread(segment.thread)?;
            let by_plan = t.constraint.fed && matches!(t.constraint.class, Class::Sporadic { .. });
            let funded = !segment.wcet.is_zero() && segment.cleanup <= segment.wcet;
            if !by_plan || !funded {
                return Err(Refusal::InvalidConstraint);
            }
        }
        let agenda = self.agenda.as_mut().ok_or(Refusal::NotPlannable)?;
        let taken = match *step {
            AgendaStep::Hold { cutoff } => {
                agenda.hold(cutoff);
                true
            }
            AgendaStep::Stage(segment) => agenda.stage(segment),
            AgendaStep::Need { slot, frontier } => agenda.need(slot, frontier),
            AgendaStep::Commit { from } => agenda.commit(from),
            AgendaStep::Kill { group, cleans } => {
                agenda.kill(group, cleans);
                true
            }
        };
        taken.then_some(()).ok_or(Refusal::NotPlannable)
    }

    /// Lets the next segments go on, as many as may at this instant. Those that are not executed
    /// are passed over, at most [`MAX_RELEASES_PER_ENTRY`] in one entry.
    pub(super) fn serve_agenda<S: Sink>(&mut self, now: Instant, sink: &mut S) {
        for _ in 0..MAX_RELEASES_PER_ENTRY {
            let Some(agenda) = &mut self.agenda else {
                return;
            };
            let precedences = &self.precedences;
            let remote = |slot| precedences.frontier(slot).unwrap_or(0);
            match agenda.next(now, remote) {
                None => return,
                Some(Head::Skipped(number)) => {
                    sink.trace(now, TraceEvent::SegmentSkipped { number });
                }
                // Its thread has ended meanwhile: the place may be another one's by now.
                Some(Head::Starts(segment, _)) if self.thread(segment.thread).is_err() => {
                    self.skip_first(segment.number, now, sink);
                }
                Some(Head::Starts(segment, cleans)) => {
                    let thread = segment.thread.index();
                    let started = TraceEvent::SegmentStarted {
                        number: segment.number,
                        thread: segment.thread,
                        cleans,
                    };
                    sink.trace(now, started);
                    if let Class::Sporadic {
                        wcet,
                        relative_deadline,
                        ..
                    } = &mut self.threads[thread].constraint.class
                    {
                        *wcet = match cleans {
                            true => segment.cleanup,
                            false => segment.wcet,
                        };
                        *relative_deadline = segment.deadline.since(now);
                    }
                    self.release(thread, now, sink);
                    return;
                }
            }
        }
        self.more = true;
    }

    fn skip_first<S: Sink>(&mut self, number: u64, now: Instant, sink: &mut S) {
        if let Some(agenda) = &mut self.agenda {
            agenda.end();
        }
        sink.trace(now, TraceEvent::SegmentSkipped { number });
    }

    /// A job is over: it was the segment that had started, if it is of that one's thread.
    #[inline]
    pub(super) fn end_segment(&mut self, thread: usize) {
        if let Some(agenda) = &mut self.agenda
            && agenda.running().is_some_and(|id| id.index() == thread)
        {
            agenda.end();
        }
    }

    /// The next message for another CPU. Take them all after each [`Shard::handle`].
    #[inline]
    pub fn take_message(&mut self) -> Option<Message> {
        match self.has_message() {
            true => self.take_first_message(),
            false => None,
        }
    }

    #[inline(never)]
    fn take_first_message(&mut self) -> Option<Message> {
        let frontier = |thread: usize| self.threads[thread].frontier(&self.pool);
        let message = self.precedences.take_message(frontier);
        message.or_else(|| {
            let (to, slot, frontier) = self.agenda.as_mut()?.take_news()?;
            Some(Message { to, slot, frontier })
        })
    }

    /// Whether [`Shard::take_message`] has one.
    #[inline]
    pub fn has_message(&self) -> bool {
        self.precedences.has_message() || self.agenda.as_ref().is_some_and(|a| a.has_message())
    }
}
