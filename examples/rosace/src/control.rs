//! The three controllers, 50 Hz: altitude hold, vertical speed, airspeed.

use crate::plant::{DELTA_E_START, DELTA_TH_START, H_START, VA_START};

/// Seconds between two steps of a controller.
const DT: f64 = 1.0 / 50.0;

/// Who sets the target of the vertical speed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// The pilot: the target is [`Targets::vz`].
    Commanded,
    /// The altitude controller: climb or descend to [`Targets::h`] and stay there.
    Hold,
}

/// What the pilot asks for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Targets {
    /// Who sets the target of the vertical speed.
    pub mode: Mode,
    /// Vertical speed in metres per second, positive downwards; in mode *hold*, the speed to climb
    /// at when far below the altitude (so negative), and its opposite far above.
    pub vz: f64,
    /// Airspeed in metres per second.
    pub va: f64,
    /// Altitude to hold, in metres.
    pub h: f64,
}

impl Targets {
    /// The published run: descend at 2.5 m/s, at 230 m/s.
    pub const PUBLISHED: Targets = Targets {
        mode: Mode::Commanded,
        vz: 2.5,
        va: VA_START,
        h: H_START,
    };
}

/// Turns an altitude to hold into a target of the vertical speed.
#[derive(Clone, Debug)]
pub struct AltitudeHold {
    targets: Targets,
    integrator: f64,
    last_target: f64,
    restart: bool,
}

impl AltitudeHold {
    /// Not holding yet: the first step near the altitude starts the integrator.
    pub fn new(targets: Targets) -> AltitudeHold {
        AltitudeHold {
            targets,
            integrator: 0.0,
            last_target: targets.vz,
            restart: true,
        }
    }

    /// The target of the vertical speed, from the filtered altitude.
    pub fn step(&mut self, h_f: f64) -> f64 {
        const PROPORTIONAL: f64 = 0.1014048;
        const INTEGRAL: f64 = 0.0048288;
        const CAPTURE_BAND: f64 = 50.0;
        let target = match self.targets.mode {
            Mode::Commanded => self.targets.vz,
            Mode::Hold => {
                let d = h_f - self.targets.h;
                if d.abs() > CAPTURE_BAND {
                    self.restart = true;
                    if d < 0.0 {
                        self.targets.vz
                    } else {
                        -self.targets.vz
                    }
                } else {
                    if self.restart {
                        self.restart = false;
                        self.integrator = self.last_target - PROPORTIONAL * d;
                    }
                    let target = PROPORTIONAL * d + self.integrator;
                    self.integrator += DT * INTEGRAL * d;
                    target
                }
            }
        };
        self.last_target = target;
        target
    }
}

/// Holds a vertical speed with the elevator.
#[derive(Clone, Debug)]
pub struct VzControl {
    integrator: f64,
}

impl VzControl {
    /// In equilibrium.
    #[expect(
        clippy::new_without_default,
        reason = "the start is a state of flight, not a blank"
    )]
    pub fn new() -> VzControl {
        VzControl {
            integrator: DELTA_E_START,
        }
    }

    /// The elevator command in radians, from filtered values and the target `vz_c`.
    pub fn step(&mut self, vz_f: f64, vz_c: f64, q_f: f64, az_f: f64) -> f64 {
        let delta_e_c = self.integrator - 0.003252836726554 * vz_f + 0.376071446897134 * q_f
            - 0.001566907423747 * az_f;
        self.integrator += DT * 0.000627342822264 * (vz_c - vz_f);
        delta_e_c
    }
}

/// Holds an airspeed with the throttle.
#[derive(Clone, Debug)]
pub struct VaControl {
    integrator: f64,
}

impl VaControl {
    /// In equilibrium.
    #[expect(
        clippy::new_without_default,
        reason = "the start is a state of flight, not a blank"
    )]
    pub fn new() -> VaControl {
        VaControl {
            integrator: DELTA_TH_START,
        }
    }

    /// The throttle command, from filtered values and the target `va_c`.
    #[expect(
        clippy::excessive_precision,
        reason = "the digits are those of the publication"
    )]
    pub fn step(&mut self, va_f: f64, va_c: f64, vz_f: f64, q_f: f64) -> f64 {
        let delta_th_c =
            self.integrator - 0.486813084356079 * (va_f - VA_START) - 0.077603095495388 * vz_f
                + 21.692383376322041 * q_f;
        self.integrator += DT * 0.049802610664357 * (va_c - va_f);
        delta_th_c
    }
}
