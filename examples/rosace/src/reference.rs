//! The sequential reference: one loop, in the published order.

use std::fmt::Write;

use crate::control::{AltitudeHold, Targets, VaControl, VzControl};
use crate::filter::Filter;
use crate::plant::{DELTA_E_START, DELTA_TH_START, Dynamics, Elevator, Engine};

/// One point of the trajectory: what the flight dynamics put out in one step of 5 ms.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Row {
    /// Altitude in metres.
    pub altitude: f64,
    /// Vertical speed in metres per second, positive downwards.
    pub vertical_speed: f64,
    /// Airspeed in metres per second.
    pub airspeed: f64,
}

/// The bits of one row: what two trajectories are compared by.
pub(crate) type RowBits = [u64; 3];

impl Row {
    pub(crate) fn bits(&self) -> RowBits {
        [
            self.altitude.to_bits(),
            self.vertical_speed.to_bits(),
            self.airspeed.to_bits(),
        ]
    }
}

/// The first `steps` steps of 5 ms under `targets`, computed one after the other. O(`steps`), about
/// 0.3 us each.
///
/// Under [`Targets::PUBLISHED`], 10,000 steps print as the published trajectory of 50 s.
pub fn reference(targets: Targets, steps: usize) -> Vec<Row> {
    let mut elevator = Elevator::new();
    let mut engine = Engine::new();
    let mut dynamics = Dynamics::new();
    let mut h_filter = Filter::altitude();
    let mut vz_filter = Filter::vertical_speed();
    let mut va_filter = Filter::airspeed();
    let mut q_filter = Filter::pitch_rate();
    let mut az_filter = Filter::vertical_acceleration();
    let mut altitude_hold = AltitudeHold::new(targets);
    let mut vz_control = VzControl::new();
    let mut va_control = VaControl::new();
    let (mut delta_e_c, mut delta_th_c) = (DELTA_E_START, DELTA_TH_START);
    let (mut vz_f, mut va_f, mut q_f, mut az_f);
    (vz_f, va_f, q_f, az_f) = (0.0, 0.0, 0.0, 0.0);

    let mut rows = Vec::with_capacity(steps);
    for k in 0..steps {
        let delta_e = elevator.step(delta_e_c);
        let thrust = engine.step(delta_th_c);
        let state = dynamics.step(delta_e, thrust);
        rows.push(Row {
            altitude: state.h,
            vertical_speed: state.vz,
            airspeed: state.va,
        });
        if k % 2 == 0 {
            vz_f = vz_filter.step(state.vz);
            va_f = va_filter.step(state.va);
            q_f = q_filter.step(state.q);
            az_f = az_filter.step(state.az);
        }
        if k % 4 == 0 {
            let vz_c = altitude_hold.step(h_filter.step(state.h));
            delta_e_c = vz_control.step(vz_f, vz_c, q_f, az_f);
            delta_th_c = va_control.step(va_f, targets.va, vz_f, q_f);
        }
    }
    rows
}

/// The trajectory in the form of the published file: a header, then time, altitude, vertical speed
/// and airspeed; the time is that of the end of the step.
pub fn csv(rows: &[Row]) -> String {
    let mut text = String::from("time (s),altitude (m),vertical speed (m/s),airspeed (m/s)\n");
    // Milliseconds in integers: 0.005·k is exact in the three digits that are printed.
    for (row, ms) in rows.iter().zip((5_u64..).step_by(5)) {
        let Row {
            altitude,
            vertical_speed,
            airspeed,
        } = row;
        let (seconds, rest) = (ms / 1000, ms % 1000);
        // Writing to a `String` cannot fail.
        let _ = writeln!(
            text,
            "{seconds}.{rest:03},{altitude:5.6},{vertical_speed:5.6},{airspeed:5.6}"
        );
    }
    text
}
