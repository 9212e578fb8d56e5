//! The table at the end of a run: bound beside observation, misses with causes, missing time.

use std::fmt;

use super::{
    CpuReport, ProgramTime, ResourceReport, RunReport, RunVerdict, SchedulerReport, TaskReport,
};
use crate::short::{Count, Short, Times};

/// Misses shown one by one; the report and the JSON have them all.
const SHOWN_MISSES: usize = 10;

impl fmt::Display for RunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.head(f)?;
        self.table(f)?;
        for cpu in &self.cpus {
            write_cpu(f, cpu, self.elapsed_ns)?;
            let below = self.schedulers.iter().filter(|s| s.cpu == cpu.id);
            for scheduler in below {
                write_scheduler(f, scheduler)?;
            }
            for resource in self.resources.iter().filter(|r| r.cpu == cpu.id) {
                write_resource(f, resource)?;
            }
        }
        for requirement in &self.requirements {
            writeln!(f, "{requirement}")?;
        }
        for gang in &self.gangs {
            writeln!(f, "{gang}")?;
        }
        for group in &self.groups {
            writeln!(f, "{group}")?;
        }
        for graph in &self.graphs {
            write!(f, "{graph}")?;
        }
        let taken = self.cpus.iter().any(|cpu| cpu.missing_time_ns > 0);
        if taken
            && self
                .graphs
                .iter()
                .any(|graph| graph.verdict != RunVerdict::Met)
        {
            let why = "the log has no work of its firings, so it is not played again";
            writeln!(f, "missing time excuses no graph: {why}")?;
        }
        for change in &self.changes {
            writeln!(f, "{change}")?;
        }
        self.list_misses(f)?;
        if let Some(why) = &self.unexcused {
            writeln!(f, "nothing is excused: {why}")?;
        }
        for fault in &self.faults {
            writeln!(f, "fault: {fault}")?;
        }
        if let Some(oracle) = self.oracle {
            let steps = Count(oracle.steps);
            match oracle.mismatches {
                0 => writeln!(f, "oracle: {steps} steps equal to the reference")?,
                n => writeln!(
                    f,
                    "oracle: {} of {steps} steps DIFFER from the reference",
                    Count(n)
                )?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for ProgramTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [all, turns, beyond] = [self.processor_ns, self.turns_ns, self.beyond_ns].map(Short);
        write!(
            f,
            "{all} of processor time; its turns were {turns}, {beyond} is beyond them"
        )
    }
}

impl RunReport {
    /// Releases that became no job, by how, if there are any.
    fn dropped(&self) -> impl Iterator<Item = String> {
        let sum = |of: fn(&TaskReport) -> u64| self.tasks.iter().map(of).sum::<u64>();
        let all = [(sum(|t| t.lost), "lost"), (sum(|t| t.skipped), "skipped")];
        let some = all.into_iter().filter(|(count, _)| *count > 0);
        some.map(|(count, word)| format!("{} {word}", Count(count)))
    }

    fn head(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let jobs = Count(self.tasks.iter().map(|t| t.jobs).sum());
        let verdict = match self.verdict {
            RunVerdict::Missed => "MISSED",
            other => other.name(),
        };
        let mode = match self.mode {
            "virtual" => format!("virtual time, seed {}", self.seed),
            "real-time" => "real time".into(),
            other => other.to_uppercase(),
        };
        writeln!(f, "{verdict}: {} on {}, {mode}", self.source, self.platform)?;
        write!(f, "{} covered, {jobs} jobs", Short(self.duration_ns))?;
        let misses = Count(self.tasks.iter().map(|t| t.misses).sum());
        write!(f, ", {misses} missed")?;
        for dropped in self.dropped() {
            write!(f, ", {dropped}")?;
        }
        match &self.stopped {
            Some(why) => writeln!(f, "; stopped after {}: {why}", Short(self.elapsed_ns))?,
            None => writeln!(f)?,
        }
        for lost in &self.lost_capabilities {
            writeln!(f, "  not guaranteed: {lost}")?;
        }
        writeln!(f)
    }

    fn table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |name: fn(&TaskReport) -> &str, least: usize| {
            let longest = self.tasks.iter().map(|t| name(t).chars().count()).max();
            longest.unwrap_or(0).max(least)
        };
        let (task, cpu) = (width(|t| &t.name, 4), width(place, 3));
        writeln!(
            f,
            "  {:task$}  {:cpu$} {:>9} {:>7} {:>9} {:>9} {:>9} {:>9} {:>13}",
            "task",
            self.where_tasks_are(),
            "N",
            "misses",
            "p50",
            "p99",
            "max",
            "bound",
            "machine bound"
        )?;
        for t in &self.tasks {
            let q = t.response_ns;
            writeln!(
                f,
                "  {:task$}  {:cpu$} {:>9} {:>7} {:>9} {:>9} {:>9} {:>9} {:>13}{}",
                t.name,
                place(t),
                Count(t.jobs),
                Count(t.misses),
                maybe(q.p50),
                maybe(q.p99),
                maybe(q.max),
                maybe(t.bound_ns),
                maybe(t.machine_bound_ns),
                remarks(t)
            )?;
        }
        for (task, had) in self.tasks.iter().filter_map(|t| Some((t, t.program?))) {
            writeln!(f, "  the program of `{}` had {had}", task.name)?;
        }
        writeln!(f)
    }

    /// Heading of the column that says where a task stands.
    fn where_tasks_are(&self) -> &'static str {
        match self.schedulers.is_empty() {
            true => "cpu",
            false => "on",
        }
    }

    fn list_misses(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.misses.is_empty() {
            return Ok(());
        }
        writeln!(f, "misses:")?;
        for m in self.misses.iter().take(SHOWN_MISSES) {
            let at = Short(m.release_ns);
            let cause = m.cause.name();
            writeln!(
                f,
                "  {} job {} at {at}: {cause}: {}",
                m.task, m.job, m.detail
            )?;
        }
        let hidden = self.misses.len().saturating_sub(SHOWN_MISSES) as u64 + self.misses_not_listed;
        if hidden > 0 {
            writeln!(
                f,
                "  ... and {} more (all in --json and --report)",
                Count(hidden)
            )?;
        }
        Ok(())
    }
}

impl RunReport {
    /// What decided the verdict, each in a few words; nothing for a run that met everything.
    pub fn reasons(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        let mut causes: Vec<(&str, u64)> = Vec::new();
        for miss in &self.misses {
            let name = miss.cause.name();
            match causes.iter_mut().find(|(cause, _)| *cause == name) {
                Some((_, count)) => *count += 1,
                None => causes.push((name, 1)),
            }
        }
        for (cause, count) in causes {
            reasons.push(format!("{} late by {cause}", Count(count)));
        }
        if self.misses_not_listed > 0 {
            reasons.push(format!(
                "{} late that are not listed",
                Count(self.misses_not_listed)
            ));
        }
        reasons.extend(self.dropped());
        let broken = self.requirements.iter();
        let broken = broken.filter(|r| r.verdict != RunVerdict::Met);
        reasons.extend(broken.map(ToString::to_string));
        let broken = self.graphs.iter();
        let broken = broken.filter(|graph| graph.verdict != RunVerdict::Met);
        reasons.extend(broken.map(|graph| format!("graph {} not as required", graph.name)));
        let apart = self.gangs.iter().filter(|gang| gang.not_in_step);
        reasons.extend(apart.map(|gang| format!("gang {} not kept in step", gang.name)));
        let broken = self.groups.iter().filter(|group| group.is_broken());
        reasons.extend(broken.map(|group| format!("group {} not as guaranteed", group.name)));
        let cut = self.cpus.iter().any(|cpu| cpu.lost_from_ns.is_some());
        let whole = self.stopped.is_none() && !cut;
        let end_ns = whole.then_some(self.duration_ns);
        let owed = self.changes.iter().filter(|change| change.is_owed(end_ns));
        reasons.extend(owed.map(|change| format!("change {} not done", change.name)));
        if let Some(oracle) = self.oracle.filter(|oracle| oracle.mismatches > 0) {
            let differ = Count(oracle.mismatches);
            reasons.push(format!("{differ} steps differ from the reference"));
        }
        for cpu in &self.cpus {
            if let Some(at) = cpu.lost_from_ns {
                reasons.push(format!("CPU {}: not recorded after {}", cpu.id, Short(at)));
            }
        }
        reasons.extend(self.faults.iter().map(|fault| format!("fault: {fault}")));
        reasons
    }
}

/// Where a task stands: its scheduler, or its CPU.
fn place(t: &TaskReport) -> &str {
    t.scheduler.as_deref().unwrap_or(&t.cpu)
}

fn maybe(ns: Option<u64>) -> String {
    ns.map_or_else(|| "-".into(), |ns| Short(ns).to_string())
}

fn remarks(t: &TaskReport) -> String {
    let counts = [
        ("over budget", t.overruns),
        ("skipped", t.skipped),
        ("lost", t.lost),
        ("unfinished", t.unfinished),
        ("excused", t.excused),
    ];
    let shown = counts.iter().filter(|(_, n)| *n > 0);
    let mut remarks: String = shown
        .map(|(what, n)| format!("  {} {what}", Count(*n)))
        .collect();
    if t.exceeds_bound() {
        remarks.push_str("  max above its bound");
    }
    remarks
}

/// A slice of a scheduler's supply in other hands: given, used, background.
fn write_slice(f: &mut fmt::Formatter<'_>, s: &SchedulerReport, receiver: &str) -> fmt::Result {
    write!(f, "  slice {} of {}, held by {receiver}: ", s.name, s.on)?;
    if let (Some(budget), Some(period)) = (s.budget_ns, s.period_ns) {
        write!(f, "{} in every {}; ", Short(budget), Short(period))?;
    }
    let given = Short(s.granted_ns.unwrap_or(0));
    write!(f, "given {given}, used {}", Short(s.executed_ns))?;
    let background = Short(s.background_ns.unwrap_or(0));
    write!(f, ", {background} of that in the background")?;
    if s.exhausted > 0 {
        write!(f, ", exhausted {}", Times(s.exhausted))?;
    }
    if s.lent_ns > 0 {
        write!(f, ", lent {}", Short(s.lent_ns))?;
    }
    writeln!(f)
}

fn write_scheduler(f: &mut fmt::Formatter<'_>, s: &SchedulerReport) -> fmt::Result {
    if let Some(receiver) = &s.receiver {
        return write_slice(f, s, receiver);
    }
    write!(f, "  scheduler {} on {}: {}, ", s.name, s.on, s.policy)?;
    match (s.budget_ns, s.period_ns) {
        (Some(budget), Some(period)) => {
            write!(f, "{} {} in {}", s.supply, Short(budget), Short(period))?;
        }
        _ => write!(f, "{}", s.supply)?,
    }
    write!(f, "; executed {}", Short(s.executed_ns))?;
    if let Some(granted) = s.granted_ns {
        let share = u128::from(s.executed_ns) * 1_000 / u128::from(granted.max(1));
        let granted = Short(granted);
        write!(f, " of {granted} granted ({}.{} %)", share / 10, share % 10)?;
    }
    if s.exhausted > 0 {
        write!(f, ", exhausted {}", Times(s.exhausted))?;
        if s.starved_ns > 0 {
            write!(f, ", work waited {} for budget", Short(s.starved_ns))?;
        }
    }
    if s.trust == "own-time" {
        let (deciding, decisions) = (Short(s.deciding_ns), Times(s.decisions));
        write!(f, ", decided {decisions} in {deciding}")?;
        if s.refused > 0 {
            write!(f, ", {} answers refused", Count(s.refused))?;
        }
    }
    if s.lent_ns > 0 {
        write!(f, ", lent {}", Short(s.lent_ns))?;
    }
    if let Some(fell) = &s.fell_back {
        let (at, why) = (Short(fell.at_ns), fell.reason());
        write!(f, ", under {} since {at}: {why}", fell.policy)?;
    } else if s.policies_replaced > 0 {
        write!(f, ", its policy replaced {}", Times(s.policies_replaced))?;
    }
    writeln!(f)
}

fn write_resource(f: &mut fmt::Formatter<'_>, r: &ResourceReport) -> fmt::Result {
    write!(
        f,
        "  resource {}: {}, locked {}, held at most {}",
        r.name,
        r.protocol,
        Times(r.locks),
        Short(r.held_max_ns)
    )?;
    if r.waits > 0 {
        let longest = Short(r.wait_max_ns);
        write!(f, ", waited for {}, longest {longest}", Times(r.waits))?;
    }
    if r.overran > 0 {
        write!(f, ", {} sections longer than declared", Count(r.overran))?;
    }
    writeln!(f)
}

fn write_cpu(f: &mut fmt::Formatter<'_>, cpu: &CpuReport, elapsed_ns: u64) -> fmt::Result {
    let busy = u128::from(cpu.executed_ns) * 1_000 / u128::from(elapsed_ns.max(1));
    writeln!(
        f,
        "  cpu {}: {}, {}.{} % busy, {} decisions, {} switches, {} preemptions",
        cpu.id,
        cpu.policy,
        busy / 10,
        busy % 10,
        Count(cpu.decisions),
        Count(cpu.switches),
        Count(cpu.preemptions)
    )?;
    if cpu.deferrals > 0 {
        let deferral = &cpu.deferral_ns;
        writeln!(
            f,
            "    deferral of {} preemptions: p50 {}, p99 {}, max {}",
            Count(deferral.n),
            Short(deferral.p50.unwrap_or(0)),
            Short(deferral.p99.unwrap_or(0)),
            Short(cpu.deferred_max_ns)
        )?;
    }
    if !cpu.missing_method.is_empty() || cpu.missing_time_ns > 0 {
        write!(
            f,
            "    missing time {}, longest {}",
            Short(cpu.missing_time_ns),
            Short(cpu.missing_time_max_ns)
        )?;
        match cpu.missing_method.as_str() {
            "" => writeln!(f)?,
            method => writeln!(f, " (by {method}, +-{} each)", Short(cpu.missing_error_ns))?,
        }
        let by = cpu.missing_time_by.to_string();
        if !by.is_empty() {
            writeln!(f, "      taken by: {by}")?;
        }
    }
    if let Some(boundaries) = &cpu.boundaries {
        writeln!(f, "    slots: {boundaries}")?;
    }
    if cpu.given_back_ns > 0 {
        writeln!(
            f,
            "    given back to the system {}",
            Short(cpu.given_back_ns)
        )?;
    }
    match cpu.lost_from_ns {
        Some(at) => writeln!(f, "    RECORDING ENDED: nothing known after {}", Short(at)),
        None => Ok(()),
    }
}
