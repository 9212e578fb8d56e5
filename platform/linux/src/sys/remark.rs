//! Lines for standard error where nothing may be allocated and no lock may be waited for.

use core::fmt::Write;

use crate::sys;

/// A line of fixed size; what does not fit is cut off.
pub(crate) struct Remark {
    text: [u8; 512],
    length: usize,
}

impl Remark {
    pub(crate) const fn new() -> Remark {
        Remark {
            text: [0; 512],
            length: 0,
        }
    }

    /// Writes it, by one call of the system.
    pub(crate) fn say(&self) {
        sys::write_error(&self.text[..self.length]);
    }
}

impl Write for Remark {
    fn write_str(&mut self, part: &str) -> core::fmt::Result {
        for &byte in part.as_bytes() {
            let Some(place) = self.text.get_mut(self.length) else {
                return Err(core::fmt::Error);
            };
            *place = byte;
            self.length += 1;
        }
        Ok(())
    }
}
