//! `punctual check --certificate`: a verdict becomes a certificate that others can verify.

use punctual_analysis::{Subject, Verdict, Witness};
use punctual_certificate::{Certificate, Claims, system as plain};
use punctual_certificate::{certify_admitted, certify_late, certify_overdue};
use punctual_model::{
    Class, Gang, Ns, PolicyKind, Requirement, Scheduler, Slot, Span, Superstep, Supply, System,
    Task, TaskId, Use, Work, WorkSource,
};

use punctual_terminal::output;

/// The certificate of a verdict. Bounds that it cannot have as sharp are remarked upon.
pub(crate) fn issue(system: &System, verdict: &Verdict) -> Result<Certificate, String> {
    let plain = plain(system);
    if verdict.admitted {
        let certificate = certify_admitted(&plain).map_err(|why| why.to_string())?;
        remark_on_bounds(verdict, &certificate);
        return Ok(certificate);
    }
    let mut first = None;
    for refusal in &verdict.refusals {
        let certificate = match refusal.witness {
            Some(Witness::Demand { at, .. }) => match refusal.subject {
                Subject::Scheduler(_) => {
                    certify_late(&plain, &format!("scheduler.{}", refusal.name), 0)
                }
                _ => certify_overdue(&plain, &refusal.name, at.as_ns()),
            },
            Some(Witness::Response { task, offset, .. }) => {
                let name = system
                    .tasks
                    .get(task.index())
                    .map_or("", |t| t.name.as_str());
                certify_late(&plain, name, offset.as_ns())
            }
            None => continue,
        };
        match certificate {
            Ok(certificate) => return Ok(certificate),
            Err(why) => first = first.or(Some(why.to_string())),
        }
    }
    let none = "not certified: a refusal without a witness, by a test that is only sufficient";
    Err(first.unwrap_or_else(|| none.to_string()))
}

/// The bounds of a certificate that are above those of the verdict, by task.
pub(crate) fn looser(verdict: &Verdict, certificate: &Certificate) -> Vec<String> {
    let Claims::Admitted { nodes, .. } = &certificate.claims else {
        return Vec::new();
    };
    let entities = nodes.iter().flat_map(|node| &node.entities);
    let mut above = Vec::new();
    for entity in entities.filter(|entity| !entity.jobs.is_empty()) {
        let row = verdict.tasks.iter().find(|row| row.name == entity.name);
        let bound = row.and_then(|row| row.response_bound).map(Span::as_ns);
        if bound.is_some_and(|bound| entity.bound > bound) {
            above.push(entity.name.clone());
        }
    }
    above
}

/// Tells which bounds of a certificate are above those of the verdict.
pub(crate) fn remark_on_bounds(verdict: &Verdict, certificate: &Certificate) {
    let above = looser(verdict, certificate);
    let wider = wider(verdict, certificate);
    if !wider.is_empty() {
        let names = wider.join(", ");
        output::remark(format!(
            "the certificate knows less of these gangs than check, but it holds: {names}"
        ));
    }
    if !above.is_empty() {
        let names = above.join(", ");
        output::remark(format!(
            "the certificate's bounds are larger than those of check, but hold: {names}"
        ));
    }
}

/// The supersteps whose skew, or the barrier behind them, is known less well than to the verdict.
pub(crate) fn wider(verdict: &Verdict, certificate: &Certificate) -> Vec<String> {
    let Claims::Admitted { gangs, .. } = &certificate.claims else {
        return Vec::new();
    };
    let mut wider = Vec::new();
    for (ours, theirs) in verdict.gangs.iter().zip(gangs) {
        for (own, other) in ours.supersteps.iter().zip(&theirs.supersteps) {
            if own.bound.is_some_and(|bound| other.skew > bound.as_ns()) {
                wider.push(format!("skew of {}", own.name));
            }
        }
        for (own, other) in ours.barriers.iter().zip(&theirs.barriers) {
            if own.left_out && !other.left_out {
                wider.push(format!("barrier {} - {}", own.before, own.next));
            }
        }
    }
    wider
}

/// The system in the words of certificates.
pub(crate) fn plain(system: &System) -> plain::System {
    let cpus = system.cpus.iter().map(|cpu| plain::Cpu {
        name: cpu.name.clone(),
        policy: policy(cpu.policy),
    });
    let required = system
        .requirements
        .iter()
        .map(|requirement| match requirement {
            Requirement::Response { task, within } => plain::Required::Response {
                task: task.index(),
                within: within.as_ns(),
            },
            Requirement::Chain { tasks, within } => plain::Required::Chain {
                tasks: places(tasks),
                within: within.as_ns(),
            },
            Requirement::Jitter { task, within } => plain::Required::Jitter {
                task: task.index(),
                within: within.as_ns(),
            },
        });
    let resources = system.resources.iter().map(|resource| plain::Resource {
        name: resource.name.clone(),
        protocol: resource.protocol.name().into(),
    });
    plain::System {
        cpus: cpus.collect(),
        schedulers: system.schedulers.iter().map(scheduler).collect(),
        tasks: system.tasks.iter().map(task).collect(),
        resources: resources.collect(),
        gangs: system.gangs.iter().map(gang).collect(),
        machine: machine(system),
        required: required.collect(),
    }
}

fn places(tasks: &[TaskId]) -> Vec<usize> {
    tasks.iter().map(|t| t.index()).collect()
}

fn policy(kind: PolicyKind<Ns>) -> plain::Policy {
    match kind {
        PolicyKind::Fifo => plain::Policy::Fifo,
        PolicyKind::RoundRobin { timeslice } => plain::Policy::RoundRobin {
            timeslice: timeslice.as_ns(),
        },
        PolicyKind::FixedPriority { preemptive } => plain::Policy::FixedPriority { preemptive },
        PolicyKind::EarliestDeadlineFirst => plain::Policy::Edf,
        PolicyKind::Planned => plain::Policy::Planned,
        PolicyKind::Tdm { frame, .. } => plain::Policy::Tdm {
            frame: frame.as_ns(),
        },
    }
}

fn scheduler(scheduler: &Scheduler) -> plain::Scheduler {
    plain::Scheduler {
        name: scheduler.name.clone(),
        cpu: scheduler.cpu.index(),
        parent: scheduler.parent.map(|p| p.index()),
        policy: policy(scheduler.policy),
        priority: scheduler.priority.number(),
        supply: match &scheduler.supply {
            Supply::Shared => plain::Supply::Shared,
            Supply::Server(server) => plain::Supply::Server {
                kind: server.kind.name().into(),
                budget: server.budget.as_ns(),
                period: server.period.as_ns(),
            },
            Supply::Slots(list) => plain::Supply::Slots(slots(list)),
        },
    }
}

fn slots(list: &[Slot<Ns>]) -> Vec<plain::Slot> {
    let slot = |slot: &Slot<Ns>| plain::Slot {
        at: slot.at.as_ns(),
        length: slot.length.as_ns(),
    };
    list.iter().map(slot).collect()
}

fn task(task: &Task) -> plain::Task {
    let budget = task.class.budget();
    let shortest = match (&task.class, &task.work) {
        (Class::Reservation { slice, .. }, _) => slice.as_ns(),
        (_, Some(WorkSource::Burn(burn))) => budget.map_or(0, |budget| budget.min(*burn).as_ns()),
        _ => 0,
    };
    plain::Task {
        name: task.name.clone(),
        cpu: task.cpu.index(),
        scheduler: task.scheduler.map(|s| s.index()),
        slots: slots(&task.slots),
        class: task.class.name().into(),
        separation: task.class.min_separation().map(Span::as_ns),
        wcet: budget.map(Work::as_ns),
        deadline: task.class.relative_deadline().map(Span::as_ns),
        priority: task.priority.number(),
        phase: task.phase.as_ns(),
        jitter: task.jitter.as_ns(),
        places: task.late.places(),
        suspension: task.max_suspension.as_ns(),
        suspensions: task.suspensions,
        section: task.non_preemptive.as_ns(),
        shortest,
        uses: task.uses.iter().map(section).collect(),
        after: places(&task.after),
        follows: places(&task.follows),
    }
}

fn section(section: &Use) -> plain::Use {
    plain::Use {
        resource: section.resource.index(),
        length: section.length.as_ns(),
        inside: section.inside.map(|outer| outer.index()),
    }
}

fn gang(gang: &Gang) -> plain::Gang {
    let supersteps = gang.supersteps.iter().enumerate();
    let superstep = |(index, step): (usize, &Superstep)| plain::Superstep {
        name: gang.name_of(index),
        members: places(&step.members),
    };
    plain::Gang {
        name: gang.name.clone(),
        supersteps: supersteps.map(superstep).collect(),
    }
}

fn machine(system: &System) -> plain::Machine {
    let machine = &system.machine;
    let reserves = machine.reserves.iter().chain(&machine.missing_time);
    let reserves = reserves.map(|reserve| plain::Reserve {
        name: reserve.name.clone(),
        budget: reserve.budget.as_ns(),
        period: reserve.period.as_ns(),
    });
    plain::Machine {
        switch: machine.switch.as_ns(),
        timer: machine.timer.as_ns(),
        budget_timer: machine.budget_timer.as_ns(),
        preemption: machine.preemption.as_ns(),
        cache_delay: machine.cache_delay.as_ns(),
        clock_error: machine.clock_error.as_ns(),
        limit_ppm: machine.limits.utilization.ppm().into(),
        reserves: reserves.collect(),
    }
}

#[cfg(test)]
mod tests;
