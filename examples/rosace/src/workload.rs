//! The controller as named steps that share signals.

use std::sync::Arc;

use punctual_thread::{Oracle, Step, Workload};

use crate::control::{AltitudeHold, Targets, VaControl, VzControl};
use crate::filter::Filter;
use crate::plant::{Dynamics, Elevator, Engine};
use crate::recording::Recording;
use crate::reference::{Row, reference};
use crate::signal::Signals;

/// One hour of flight.
const HOUR_OF_STEPS: usize = 60 * 60 * 200;

/// The eleven steps of the controller, each with its own state, joined by signals.
///
/// # Examples
///
/// ```
/// use punctual_rosace::RosaceWorkload;
/// use punctual_thread::{JobContext, Workload};
///
/// let mut rosace = RosaceWorkload::new();
/// let mut elevator = rosace.step("elevator").ok_or("no such step")?;
/// elevator(JobContext { job: 0, arrival_ns: 0 });
/// assert!(rosace.step("rudder").is_none());
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug)]
pub struct RosaceWorkload {
    targets: Targets,
    signals: Arc<Signals>,
    capacity: usize,
    /// Made when the dynamics step is asked for: a workload that is only listed costs nothing.
    recording: Option<Arc<Recording>>,
}

impl Default for RosaceWorkload {
    fn default() -> Self {
        RosaceWorkload::new()
    }
}

impl RosaceWorkload {
    /// The published flight, with a recording of up to one hour (17 MB, allocated with the dynamics
    /// step). Of a longer run the first hour is compared.
    pub fn new() -> RosaceWorkload {
        RosaceWorkload::with(Targets::PUBLISHED, HOUR_OF_STEPS)
    }

    /// A flight under other targets, of which up to `capacity` steps are recorded.
    pub fn with(targets: Targets, capacity: usize) -> RosaceWorkload {
        RosaceWorkload {
            targets,
            signals: Arc::new(Signals::new()),
            capacity,
            recording: None,
        }
    }

    fn dynamics(&mut self) -> Step {
        let mut dynamics = Dynamics::new();
        let s = Arc::clone(&self.signals);
        let capacity = self.capacity;
        let recording = Arc::clone(
            self.recording
                .get_or_insert_with(|| Arc::new(Recording::new(capacity))),
        );
        Box::new(move |_| {
            let state = dynamics.step(s.delta_e.read(), s.thrust.read());
            s.h.write(state.h);
            s.vz.write(state.vz);
            s.va.write(state.va);
            s.q.write(state.q);
            s.az.write(state.az);
            let row = Row {
                altitude: state.h,
                vertical_speed: state.vz,
                airspeed: state.va,
            };
            recording.push(&row);
        })
    }
}

const STEPS: [&str; 11] = [
    "elevator",
    "engine",
    "dynamics",
    "h_filter",
    "vz_filter",
    "va_filter",
    "q_filter",
    "az_filter",
    "altitude_hold",
    "vz_control",
    "va_control",
];

impl Workload for RosaceWorkload {
    fn name(&self) -> &str {
        "rosace"
    }

    fn steps(&self) -> Vec<&'static str> {
        STEPS.to_vec()
    }

    fn step(&mut self, name: &str) -> Option<Step> {
        let s = Arc::clone(&self.signals);
        let targets = self.targets;
        Some(match name {
            "elevator" => {
                let mut elevator = Elevator::new();
                Box::new(move |_| s.delta_e.write(elevator.step(s.delta_e_c.read())))
            }
            "engine" => {
                let mut engine = Engine::new();
                Box::new(move |_| s.thrust.write(engine.step(s.delta_th_c.read())))
            }
            "dynamics" => self.dynamics(),
            "h_filter" => {
                let mut filter = Filter::altitude();
                Box::new(move |_| s.h_f.write(filter.step(s.h.read())))
            }
            "vz_filter" => {
                let mut filter = Filter::vertical_speed();
                Box::new(move |_| s.vz_f.write(filter.step(s.vz.read())))
            }
            "va_filter" => {
                let mut filter = Filter::airspeed();
                Box::new(move |_| s.va_f.write(filter.step(s.va.read())))
            }
            "q_filter" => {
                let mut filter = Filter::pitch_rate();
                Box::new(move |_| s.q_f.write(filter.step(s.q.read())))
            }
            "az_filter" => {
                let mut filter = Filter::vertical_acceleration();
                Box::new(move |_| s.az_f.write(filter.step(s.az.read())))
            }
            "altitude_hold" => {
                let mut hold = AltitudeHold::new(targets);
                Box::new(move |_| s.vz_c.write(hold.step(s.h_f.read())))
            }
            "vz_control" => {
                let mut control = VzControl::new();
                Box::new(move |_| {
                    let [vz, vz_c] = [s.vz_f.read(), s.vz_c.read()];
                    s.delta_e_c
                        .write(control.step(vz, vz_c, s.q_f.read(), s.az_f.read()));
                })
            }
            "va_control" => {
                let mut control = VaControl::new();
                Box::new(move |_| {
                    let [va, vz] = [s.va_f.read(), s.vz_f.read()];
                    s.delta_th_c
                        .write(control.step(va, targets.va, vz, s.q_f.read()));
                })
            }
            _ => return None,
        })
    }

    fn check(&mut self) -> Option<Oracle> {
        let flown = self.recording.as_ref()?;
        let expected = reference(self.targets, flown.len());
        let differs = |(flown, expected): &(_, &Row)| *flown != expected.bits();
        let mismatches = flown.rows().zip(&expected).filter(differs).count();
        // A count of rows in memory always fits.
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        Some(Oracle {
            steps: count(expected.len()),
            mismatches: count(mismatches),
        })
    }
}
