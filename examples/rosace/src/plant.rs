//! The aircraft: elevator, engine and flight dynamics, 200 Hz, explicit Euler.
//!
//! The operations stand in the order of the published model: floating-point sums depend on their
//! order, and the trajectory is compared bit for bit.

/// Seconds between two steps of the plant.
const DT: f64 = 1.0 / 200.0;

/// Elevator deflection at equilibrium, and the first command for it, in radians.
pub(crate) const DELTA_E_START: f64 = 0.012009615652468;
/// Throttle at equilibrium, and the first command for it.
pub(crate) const DELTA_TH_START: f64 = 1.5868660794926;
/// Altitude at the start, in metres.
pub(crate) const H_START: f64 = 10000.0;
/// Airspeed at the start, in metres per second.
pub(crate) const VA_START: f64 = 230.0;

/// The elevator servo: a second-order lag.
#[derive(Clone, Debug)]
pub struct Elevator {
    deflection: f64,
    rate: f64,
}

impl Elevator {
    /// At rest at the equilibrium deflection.
    #[expect(
        clippy::new_without_default,
        reason = "the start is a state of flight, not a blank"
    )]
    pub fn new() -> Elevator {
        Elevator {
            deflection: DELTA_E_START,
            rate: 0.0,
        }
    }

    /// The deflection before this step, in radians; then one step towards `delta_e_c`.
    pub fn step(&mut self, delta_e_c: f64) -> f64 {
        const OMEGA: f64 = 25.0;
        const XI: f64 = 0.85;
        let (x0, x1) = (self.deflection, self.rate);
        self.deflection = x0 + DT * x1;
        self.rate =
            x1 + DT * (-OMEGA * OMEGA * x0 - 2.0 * XI * OMEGA * x1 + OMEGA * OMEGA * delta_e_c);
        x0
    }
}

/// The engine: a first-order lag from throttle command to thrust.
#[derive(Clone, Debug)]
pub struct Engine {
    throttle: f64,
}

impl Engine {
    /// At the equilibrium throttle.
    #[expect(
        clippy::new_without_default,
        reason = "the start is a state of flight, not a blank"
    )]
    pub fn new() -> Engine {
        Engine {
            throttle: DELTA_TH_START,
        }
    }

    /// The thrust before this step, in newtons; then one step towards `delta_th_c`.
    pub fn step(&mut self, delta_th_c: f64) -> f64 {
        const TAU: f64 = 0.75;
        let x = self.throttle;
        self.throttle = x + DT * (-TAU * x + TAU * delta_th_c);
        26350.0 * x
    }
}

/// What the sensors see of the aircraft in one step.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct State {
    /// Altitude in metres.
    pub h: f64,
    /// Vertical speed in metres per second, positive downwards.
    pub vz: f64,
    /// Airspeed in metres per second.
    pub va: f64,
    /// Pitch rate in radians per second.
    pub q: f64,
    /// Vertical acceleration in metres per second squared.
    pub az: f64,
}

/// The longitudinal motion of the aircraft: a rigid body with three degrees of freedom.
#[derive(Clone, Debug)]
pub struct Dynamics {
    /// Speed along the body's axis, metres per second.
    u: f64,
    /// Speed across the body's axis (downwards), metres per second.
    w: f64,
    /// Pitch rate, radians per second.
    q: f64,
    /// Pitch angle, radians.
    theta: f64,
    /// Altitude, metres.
    h: f64,
}

impl Dynamics {
    /// Level flight at 10,000 m and 230 m/s.
    #[expect(
        clippy::new_without_default,
        reason = "the start is a state of flight, not a blank"
    )]
    pub fn new() -> Dynamics {
        let theta = 0.026485847681737_f64;
        Dynamics {
            u: VA_START * theta.cos(),
            w: VA_START * theta.sin(),
            q: 0.0,
            theta,
            h: H_START,
        }
    }

    /// The state before this step; then one step under deflection `delta_e` (radians) and `thrust`
    /// (newtons).
    ///
    /// Never inlined: the reference and the workload then execute the very same instructions, so
    /// no choice of the compiler (fusing `sin` and `cos` into one call, for one) can part them.
    #[inline(never)]
    pub fn step(&mut self, delta_e: f64, thrust: f64) -> State {
        const G: f64 = 9.80665;
        const S: f64 = 122.6;
        const CBAR: f64 = 4.29;
        const MASS: f64 = 57837.5;
        const IY: f64 = 3781272.0;
        let Dynamics { u, w, q, theta, h } = *self;
        let (sin_theta, cos_theta) = (theta.sin(), theta.cos());

        let base: f64 = 1.0 + (-0.0065) / 288.15 * h;
        let rho = 1.225 * base.powf(-G / (287.05 * (-0.0065)) - 1.0);
        let alpha = (w / u).atan();
        let speed = (u * u + w * w).sqrt();
        let qbar = 0.5 * rho * speed * speed;
        let cl = 0.193 * delta_e + 5.5 * (alpha + 0.05);
        let cd = 0.016 + 0.05 * delta_e + 2.5 * (alpha + 0.05) * (alpha + 0.05);
        let cm = 0.04 - 1.5 * delta_e - 0.83 * alpha + 0.5 * (-30.0) * q * CBAR / speed;
        let xa = -qbar * S * (cd * alpha.cos() - cl * alpha.sin());
        let za = -qbar * S * (cd * alpha.sin() + cl * alpha.cos());
        let ma = qbar * CBAR * S * cm;

        self.u = u + DT * (-G * sin_theta - q * w + (xa + thrust) / MASS);
        self.w = w + DT * (G * cos_theta + q * u + za / MASS);
        self.q = q + DT * (ma / IY);
        self.theta = theta + DT * q;
        self.h = h + DT * (u * sin_theta - w * cos_theta);
        State {
            h,
            vz: w * cos_theta - u * sin_theta,
            va: speed,
            q,
            az: G * cos_theta + za / MASS,
        }
    }
}
