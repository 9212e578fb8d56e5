//! Systems written in Rust: tasks with closures, admitted and run like those of a file.

use std::io;

use punctual_kern::Policy;
use punctual_linux::{Backed, Member};
use punctual_model::{
    Arrivals, Class, Cpu, CpuId, Ns, PolicyKind, RunOptions, Span, System, Task, Work, WorkSource,
};
use punctual_thread::{Constraint, JobContext, Workloads};
use punctual_trace::RunReport;

use crate::{ChildPolicies, Error, LiveOptions, judge, run};

/// A system in the making, with the closures that its tasks execute.
///
/// ```no_run
/// use punctual::{Constraint, Late, OnOverrun, PolicyKind, Program, Span, Work};
///
/// let mut program = Program::new();
/// let cpu = program.cpu(0, PolicyKind::EarliestDeadlineFirst);
/// let every = Constraint::periodic(Span::from_ms(10), Work::from_us(100));
/// let every = every.late(Late::Skip).on_overrun(OnOverrun::Demote);
/// program.task(cpu, "tick", every, |job| {
///     println!("job {}", job.job);
/// });
/// println!("{}", program.run_for(Span::from_ms(1_000))?);
/// # Ok::<(), punctual::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Program {
    system: System,
    workloads: Workloads,
    policies: ChildPolicies,
}

impl Program {
    /// No CPUs, no tasks.
    pub fn new() -> Program {
        Program::default()
    }

    /// Adds host CPU `host` under a policy.
    pub fn cpu(&mut self, host: u32, policy: PolicyKind<Ns>) -> CpuId {
        let id = CpuId(u16::try_from(self.system.cpus.len()).unwrap_or(u16::MAX));
        self.system.cpus.push(Cpu {
            name: host.to_string(),
            host: Some(host),
            policy,
        });
        id
    }

    /// Adds a thread with this constraint: it calls `body` once per job, on its own light thread.
    /// The jobs of a sporadic one arrive as often as its constraint allows.
    /// Names must differ; admission happens in [`Program::run_for`].
    pub fn task(
        &mut self,
        cpu: CpuId,
        name: &str,
        constraint: Constraint,
        body: impl FnMut(JobContext) + Send + 'static,
    ) -> &mut Program {
        let mut task = Task {
            cpu,
            work: Some(WorkSource::Function(name.to_string())),
            ..constraint.task(name)
        };
        if let Class::Sporadic { min_separation, .. } = task.class {
            task.arrivals = Arrivals::Every(min_separation);
        }
        self.system.tasks.push(task);
        let workloads = std::mem::take(&mut self.workloads);
        self.workloads = workloads.with_function(name, Box::new(body));
        self
    }

    /// Adds a reservation, `slice` in every `period`, whose work is a closure on a kernel thread of
    /// its own. It may wait in the kernel, start threads ([`Member::join`]) and hold locks as it
    /// likes. It gets no more of the processor than its slice while others want it. It is told when
    /// the run is over ([`Member::is_over`]).
    ///
    /// # Errors
    /// When the kernel makes no thread for it.
    pub fn backed(
        &mut self,
        cpu: CpuId,
        name: &str,
        (slice, period): (Work<Ns>, Span<Ns>),
        closure: impl FnOnce(&Member) + Send + 'static,
    ) -> io::Result<&mut Program> {
        let mut backed = Some(Backed::try_new(name, closure)?);
        let stand_in = move |_: JobContext| {
            if let Some(backed) = backed.take() {
                // It fails outside of a run only, and this is inside.
                let _ = backed.run_for_good();
            }
        };
        Ok(self.task(cpu, name, Constraint::reservation(period, slice), stand_in))
    }

    /// The scheduler `name`, which is to decide on its own supply, orders its threads by this
    /// policy; see [`ChildPolicies::with`].
    pub fn child_policy<P: Policy + Send + 'static>(
        &mut self,
        name: &str,
        make: impl Fn(usize) -> P + Send + Sync + 'static,
    ) -> &mut Program {
        self.policies = std::mem::take(&mut self.policies).with(name, make);
        self
    }

    /// The system so far, to be refined or asked about with [`crate::admit`].
    pub fn system_mut(&mut self) -> &mut System {
        &mut self.system
    }

    /// Admits the system on this machine, runs it for `duration`, and reports.
    ///
    /// # Errors
    /// As [`crate::run`]; [`Error::Refused`] carries the verdict with its reasons.
    pub fn run_for(mut self, duration: Span<Ns>) -> Result<RunReport, Error> {
        self.system.run = RunOptions {
            duration: Some(duration),
            ..self.system.run
        };
        let options = LiveOptions {
            source: program_name(),
            policies: self.policies,
            ..LiveOptions::default()
        };
        let log = run(&self.system, &options, &mut self.workloads, &mut |_| true)?;
        Ok(judge(&log))
    }
}

pub(crate) fn program_name() -> String {
    let path = std::env::args_os().next().map(std::path::PathBuf::from);
    let name = path.as_deref().and_then(std::path::Path::file_name);
    name.map_or_else(
        || "program".to_string(),
        |name| name.to_string_lossy().into_owned(),
    )
}
