//! The five anti-aliasing filters: second order, one set of coefficients each.

use crate::plant::{H_START, VA_START};

/// A second-order filter in direct form.
#[derive(Clone, Debug)]
pub struct Filter {
    a0: f64,
    a1: f64,
    b0: f64,
    b1: f64,
    x0: f64,
    x1: f64,
}

impl Filter {
    fn settled([a0, a1]: [f64; 2], [b0, b1]: [f64; 2], equilibrium: f64) -> Filter {
        Filter {
            a0,
            a1,
            b0,
            b1,
            x0: equilibrium * (1.0 + a1 - b1),
            x1: equilibrium,
        }
    }

    /// The altitude filter, 50 Hz, settled at 10,000 m.
    pub fn altitude() -> Filter {
        Filter::settled(
            [0.586756156020839, -1.477888930110354],
            [0.049596808318647, 0.059270417591839],
            H_START,
        )
    }

    /// The filter of the vertical speed, 100 Hz, settled at 0 m/s.
    pub fn vertical_speed() -> Filter {
        Filter::speed(0.0)
    }

    /// The filter of the airspeed, 100 Hz, settled at 230 m/s.
    pub fn airspeed() -> Filter {
        Filter::speed(VA_START)
    }

    fn speed(equilibrium: f64) -> Filter {
        Filter::settled(
            [0.956543675476034, -1.955578398054313],
            [0.000479064865372430, 0.000486212556348925],
            equilibrium,
        )
    }

    /// The filter of the pitch rate, 100 Hz, settled at 0 rad/s.
    pub fn pitch_rate() -> Filter {
        Filter::settled(
            [0.766000101841272, -1.734903205885821],
            [0.014857648981438, 0.016239246974013],
            0.0,
        )
    }

    /// The filter of the vertical acceleration, 100 Hz, settled at 0 m/s².
    pub fn vertical_acceleration() -> Filter {
        Filter::settled(
            [0.411240701442774, -1.158045899830964],
            [0.107849979167580, 0.145344822444230],
            0.0,
        )
    }

    /// The filtered value before this step; then one step with `input`, in the unit of the signal.
    pub fn step(&mut self, input: f64) -> f64 {
        let (x0, x1) = (self.x0, self.x1);
        self.x0 = -self.a0 * x1 + self.b0 * input;
        self.x1 = x0 + (-self.a1 * x1 + self.b1 * input);
        x1
    }
}
