//! Short ways to make sets, and the independent checker on their plans

use punctual_certificate::plan as certificate;
use punctual_certificate::{PlanCertificate, Wrong, verify_plan};
use punctual_generate::DrawnSegment;
use punctual_model::{Instant, Mode, Work};
use punctual_planner::{Capacities, Placement, Segment, Segments, Use};

pub(crate) fn at(ticks: u64) -> Instant {
    Instant::from_ticks(ticks)
}

pub(crate) fn segment(release: u64, wcet: u64, deadline: u64) -> Segment {
    Segment {
        group: 0,
        release: at(release),
        wcet: Work::from_ticks(wcet),
        absolute_deadline: at(deadline),
    }
}

/// Drawn segments for a planner.
pub(crate) fn segments(drawn: &[DrawnSegment], capacities: Capacities) -> Segments {
    let mut segments = Segments::new(capacities);
    for one in drawn {
        let uses = one.uses.iter();
        let uses: Vec<Use> = uses
            .map(|&(resource, mode)| Use { resource, mode })
            .collect();
        let pushed = segments.push(segment(0, one.wcet, one.deadline), &uses);
        assert!(pushed.is_ok(), "{pushed:?}");
    }
    segments
}

/// Whether a plan is one, by code that shares nothing with the planner.
pub(crate) fn verify(
    segments: &Segments,
    placements: &[Placement],
    capacities: Capacities,
) -> Result<(), Wrong> {
    let name = |kind: &str, count: usize| (0..count).map(|i| format!("{kind} {i}")).collect();
    let mut claimed: Vec<certificate::Segment> = Vec::new();
    for (number, segment) in segments.iter().enumerate() {
        let uses = segments.uses(number).iter().map(|used| certificate::Use {
            resource: used.resource,
            alone: used.mode == Mode::Exclusive,
        });
        let before = (0..number).filter(|&one| segments.successors(one).any(|to| to == number));
        claimed.push(certificate::Segment {
            name: format!("segment {number}"),
            release: segment.release.ticks(),
            wcet: segment.wcet.ticks(),
            deadline: segment.absolute_deadline.ticks(),
            uses: uses.collect(),
            after: before.collect(),
        });
    }
    let place = |place: &Placement| certificate::Place {
        cpu: place.cpu,
        start: place.start.ticks(),
    };
    verify_plan(&PlanCertificate {
        format: certificate::PLAN_FORMAT,
        cpus: name("cpu", capacities.cpus),
        resources: name("resource", capacities.resources),
        segments: claimed,
        places: placements.iter().map(place).collect(),
        repeats_from: 0,
        period: 0,
        rest: None,
    })
}
