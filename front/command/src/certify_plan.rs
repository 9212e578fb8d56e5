//! `punctual check --certificate` of planned groups: their plan, and the rest beside it.

use punctual_analysis::{Plan, PlannedSegment, Verdict};
use punctual_certificate::plan::{Place, Segment, Use};
use punctual_certificate::{Certificate, PLAN_FORMAT, PlanCertificate, certify_admitted};
use punctual_model::{Mode, Spawn, System};

use crate::certify;

/// The certificate of an admitted plan, with that of all tasks that have deadlines.
pub(crate) fn issue(system: &System, verdict: &Verdict) -> Result<PlanCertificate, String> {
    let rest = match has_deadlines(system) {
        true => Some(certify_admitted(&certify::plain(system)).map_err(|why| why.to_string())?),
        false => None,
    };
    certificate(system, verdict, rest)
}

/// Whether something beside the groups needs a proof.
pub(crate) fn has_deadlines(system: &System) -> bool {
    system.tasks.iter().any(|task| task.class.is_real_time())
}

/// The same without deriving the rest: for the comparison with a file.
pub(crate) fn certificate(
    system: &System,
    verdict: &Verdict,
    rest: Option<Certificate>,
) -> Result<PlanCertificate, String> {
    let plan = verdict
        .plan
        .as_ref()
        .and_then(|answer| answer.plan.as_ref());
    let plan = plan.filter(|_| verdict.admitted);
    let plan = plan.ok_or("not certified: it is refused, and a plan is the proof of a yes")?;
    let segments = plan.segments.iter().enumerate();
    let segments = segments.map(|(at, planned)| segment(system, plan, at, planned));
    let places = plan.segments.iter().map(|planned| Place {
        cpu: planned.node,
        start: planned.start.as_ns(),
    });
    Ok(PlanCertificate {
        format: PLAN_FORMAT,
        cpus: plan.nodes.clone(),
        resources: resources(system),
        repeats_from: plan.repeats_from.as_ns(),
        period: plan.period.as_ns(),
        segments: segments.collect::<Result<_, String>>()?,
        places: places.collect(),
        rest,
    })
}

/// The resources of the file, then the threads of all groups.
fn resources(system: &System) -> Vec<String> {
    let own = system
        .resources
        .iter()
        .map(|resource| resource.name.clone());
    let threads = system.groups.iter().flat_map(|group| {
        let names = group.threads.iter();
        names.map(|thread| format!("thread {}.{}", group.name, thread.name))
    });
    own.chain(threads).collect()
}

fn segment(
    system: &System,
    plan: &Plan,
    at: usize,
    planned: &PlannedSegment,
) -> Result<Segment, String> {
    let group = &system.groups[planned.group.index()];
    let own = &group.segments[planned.segment];
    let before = &system.groups[..planned.group.index()];
    let threads: usize = before.iter().map(|group| group.threads.len()).sum();
    let uses = own.uses.iter().map(|used| Use {
        resource: used.resource.index(),
        alone: used.mode == Mode::Exclusive,
    });
    let place = Use {
        resource: system.resources.len() + threads + own.thread,
        alone: true,
    };
    let latest = || format!("not certified: segment {at} is beyond 64 bits");
    let instant = |span| planned.arrival.checked_add(span).ok_or_else(latest);
    let same = |other: &PlannedSegment| other.instance == planned.instance;
    let mut after = Vec::new();
    for (place, other) in plan.segments.iter().enumerate() {
        let in_group = other.group == planned.group
            && group
                .predecessors(planned.segment)
                .any(|p| p == other.segment);
        let theirs = &system.groups[other.group.index()].segments[other.segment];
        let child = Spawn::Dependent {
            group: planned.group,
        };
        if same(other) && (in_group || theirs.spawn.as_ref() == Some(&child)) {
            after.push(place);
        }
    }
    Ok(Segment {
        name: format!("{}.{} #{}", group.name, own.name, planned.instance),
        release: instant(group.release)?.as_ns(),
        wcet: planned.end.since(planned.start).as_ns(),
        deadline: instant(group.relative_deadline)?.as_ns(),
        uses: uses.chain([place]).collect(),
        after,
    })
}
