//! What a thread asks for, as a structure of C.

use ::punctual_thread::Constraint;
use punctual_model::{Late, OnOverrun, Span, Work};

use crate::status::punctual_status as Status;

/// Kinds of work: what `kind` of a constraint says.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum punctual_kind {
    /// Background work, by priority: whatever the others leave. No guarantee, no admission.
    PUNCTUAL_APERIODIC = 0,
    /// A job in every period, of `work_ns` at most, done within `deadline_ns` of its release.
    PUNCTUAL_PERIODIC = 1,
    /// A job per `punctual_thread_release`, never closer than `period_ns`.
    PUNCTUAL_SPORADIC = 2,
    /// `work_ns` of processor time in every period.
    PUNCTUAL_RESERVATION = 3,
    /// `work_ns` of processor time within `deadline_ns` from now, afterwards background work.
    PUNCTUAL_ONCE = 4,
}

/// The rule for a job that needs more than its budget: the values of `on_overrun` of a constraint.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum punctual_on_overrun {
    /// The rest of it continues in the next period.
    PUNCTUAL_THROTTLE = 0,
    /// The rest of it continues below all real-time work.
    PUNCTUAL_DEMOTE = 1,
    /// The thread is cancelled: see `PUNCTUAL_CANCELLED`.
    PUNCTUAL_STOP = 2,
    /// `punctual_has_overrun` says so; otherwise as `PUNCTUAL_THROTTLE`.
    PUNCTUAL_SIGNAL = 3,
}

/// The rule for a release that finds the job before unfinished: the values of `late` of a
/// constraint.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum punctual_late {
    /// It waits, with up to 63 others.
    PUNCTUAL_QUEUE = 0,
    /// It is dropped.
    PUNCTUAL_SKIP = 1,
}

/// The constraint that a thread asks for. Made by `punctual_periodic` and its like below, which set
/// `size`; fields that a kind does not name must be 0. Times are nanoseconds.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct punctual_constraint {
    /// `sizeof(punctual_constraint)`, by which later versions tell earlier ones.
    pub size: usize,
    /// One of `punctual_kind`.
    pub kind: u32,
    /// Urgency under fixed priority and among background work: a larger number is more urgent.
    pub priority: u32,
    /// The period; of sporadic work, the least distance between two releases.
    pub period_ns: u64,
    /// Processor time: of a job at most, of a reservation in every period, of `PUNCTUAL_ONCE` in
    /// all.
    pub work_ns: u64,
    /// From release to deadline; 0: the period.
    pub deadline_ns: u64,
    /// The first release, counted from the creation or the change; of all but background work.
    pub phase_ns: u64,
    /// One of `punctual_late`, of periodic and sporadic work.
    pub late: u32,
    /// One of `punctual_on_overrun`, of periodic and sporadic work.
    pub on_overrun: u32,
    /// How long a job waits in total, by itself or blocked by a scheduler, of periodic and sporadic
    /// work.
    pub suspension_ns: u64,
    /// In how many waits, at most.
    pub suspensions: u32,
}

/// A constraint of the kind that it says, or nothing.
pub(crate) fn constraint(from: &punctual_constraint) -> Result<Constraint, Status> {
    let invalid = Err(Status::PUNCTUAL_INVALID);
    let [period, deadline] = [from.period_ns, from.deadline_ns].map(Span::from_ns);
    let work = Work::from_ns(from.work_ns);
    let (kind, has) = (from.kind, |field: u64| field != 0);
    let waits = has(from.suspension_ns) || from.suspensions != 0;
    let has_rules = from.late != 0 || from.on_overrun != 0 || waits;
    let made = match kind {
        k if k == punctual_kind::PUNCTUAL_APERIODIC as u32 => {
            let fields = [
                from.period_ns,
                from.work_ns,
                from.deadline_ns,
                from.phase_ns,
            ];
            if fields.into_iter().any(has) || has_rules {
                return invalid;
            }
            Constraint::aperiodic(from.priority)
        }
        k if k == punctual_kind::PUNCTUAL_PERIODIC as u32 => Constraint::periodic(period, work),
        k if k == punctual_kind::PUNCTUAL_SPORADIC as u32 => Constraint::sporadic(period, work),
        k if k == punctual_kind::PUNCTUAL_RESERVATION as u32 => {
            if has(from.deadline_ns) || has_rules {
                return invalid;
            }
            Constraint::reservation(period, work)
        }
        k if k == punctual_kind::PUNCTUAL_ONCE as u32 => {
            if has(from.period_ns) || !has(from.deadline_ns) || has_rules {
                return invalid;
            }
            Constraint::once(work, deadline)
        }
        _ => return invalid,
    };
    let made = match has(from.deadline_ns) {
        true => made.deadline(deadline),
        false => made,
    };
    let late = match from.late {
        0 => Late::default(),
        1 => Late::Skip,
        _ => return invalid,
    };
    let on_overrun = match from.on_overrun {
        0 => OnOverrun::Throttle,
        1 => OnOverrun::Demote,
        2 => OnOverrun::Stop,
        3 => OnOverrun::Signal,
        _ => return invalid,
    };
    let phase = Span::from_ns(from.phase_ns);
    let made = made.priority(from.priority).phase(phase);
    let suspension = Span::from_ns(from.suspension_ns);
    let made = made.suspension(suspension, from.suspensions);
    Ok(made.late(late).on_overrun(on_overrun))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: u32, period_ns: u64, work_ns: u64, deadline_ns: u64) -> punctual_constraint {
        punctual_constraint {
            size: size_of::<punctual_constraint>(),
            kind,
            priority: 3,
            period_ns,
            work_ns,
            deadline_ns,
            phase_ns: 0,
            late: 0,
            on_overrun: 0,
            suspension_ns: 0,
            suspensions: 0,
        }
    }

    #[test]
    fn every_kind_is_what_the_library_of_rust_makes() {
        let (ms, us) = (Span::from_ms, Work::from_us);
        let every = Constraint::periodic(ms(4), us(7)).priority(3);
        assert_eq!(constraint(&of(1, 4_000_000, 7_000, 0)), Ok(every));
        let sooner = Ok(every.deadline(ms(2)));
        assert_eq!(constraint(&of(1, 4_000_000, 7_000, 2_000_000)), sooner);
        let sporadic = Constraint::sporadic(ms(4), us(7)).priority(3);
        assert_eq!(constraint(&of(2, 4_000_000, 7_000, 0)), Ok(sporadic));
        let reserved = Constraint::reservation(ms(4), us(7)).priority(3);
        assert_eq!(constraint(&of(3, 4_000_000, 7_000, 0)), Ok(reserved));
        let waiting = punctual_constraint {
            suspension_ns: 2_000,
            suspensions: 2,
            ..of(1, 4_000_000, 7_000, 0)
        };
        let waits = every.suspension(Span::from_us(2), 2);
        assert_eq!(constraint(&waiting), Ok(waits));
        let once = Constraint::once(us(7), ms(9)).priority(3);
        assert_eq!(constraint(&of(4, 0, 7_000, 9_000_000)), Ok(once));
        assert_eq!(constraint(&of(0, 0, 0, 0)), Ok(Constraint::aperiodic(3)));
    }

    #[test]
    fn fields_that_a_kind_has_not_are_refused() {
        let refused = Err(Status::PUNCTUAL_INVALID);
        for wrong in [
            of(0, 1, 0, 0),
            of(3, 5, 1, 5),
            of(4, 1, 1, 1),
            of(4, 0, 1, 0),
            of(5, 1, 1, 1),
        ] {
            assert_eq!(constraint(&wrong), refused, "{wrong:?}");
        }
        let plain = [of(0, 0, 0, 0), of(3, 5, 1, 0), of(4, 0, 1, 5)];
        for plain in plain {
            let (mut late, mut rule, mut waits) = (plain, plain, plain);
            (late.late, rule.on_overrun, waits.suspensions) = (1, 1, 1);
            assert_eq!(constraint(&waits), refused, "{waits:?}");
            assert_eq!(constraint(&late), refused, "{late:?}");
            assert_eq!(constraint(&rule), refused, "{rule:?}");
        }
        let mut phased = plain[0];
        phased.phase_ns = 1;
        assert_eq!(constraint(&phased), refused);
        let mut wrong = of(1, 9, 1, 0);
        wrong.late = 2;
        assert_eq!(constraint(&wrong), refused);
        wrong = punctual_constraint {
            late: 0,
            on_overrun: 4,
            ..wrong
        };
        assert_eq!(constraint(&wrong), refused);
    }
}
