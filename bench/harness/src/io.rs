//! Reading by light threads: what a call costs that need not wait, and one that blocks its thread.

use std::io::{PipeReader, PipeWriter, Read, Write, pipe};

use punctual_linux::spawn;
use punctual_rivals::reads;

use super::counting::units;
use super::figure::{Bench, Measured, time};
use super::live::{Live, Notebook, constraint, endless};
use super::switching::rival;

/// Bytes of one sample.
const ROUNDS: u32 = 50;
const SAMPLES: usize = if cfg!(debug_assertions) { 10 } else { 500 };

pub(super) fn benches() -> Vec<Bench> {
    vec![
        Bench::in_cycles("io.read_ready", read_ready)
            .against("read by a pthread", rival(reads::ready))
            .against(
                "preadv2 without waiting by a pthread",
                rival(reads::ready_without_waiting),
            ),
        Bench::in_cycles("io.read_blocking", read_blocking)
            .against("read by pthreads", rival(reads::blocking))
            .against("epoll_wait by pthreads", rival(reads::by_epoll)),
    ]
}

fn new() -> Result<(PipeReader, PipeWriter), String> {
    pipe().map_err(failed)
}

fn failed(error: std::io::Error) -> String {
    format!("pipe: {error}")
}

/// A byte that is in a pipe.
fn read_ready() -> Result<Measured, String> {
    let (mut from, mut to) = new()?;
    fly(SAMPLES, move || {
        let rounds = units(ROUNDS);
        let filled = to.write_all(&vec![1; rounds as usize]);
        filled.map_err(failed)?;
        let mut read = Ok(());
        let ns = time(rounds, || {
            for _ in 0..rounds {
                let got = from.read_exact(&mut [0]);
                if got.is_err() {
                    read = got;
                }
            }
        });
        read.map(|()| ns).map_err(failed)
    })
}

/// A byte to a light thread that waits for it in `read`, and one back: half of it, one way.
fn read_blocking() -> Result<Measured, String> {
    let ((mut there, mut out), (mut home, mut back)) = (new()?, new()?);
    let mut partner = Some(move || {
        // It ends when the other end is closed.
        while there.read_exact(&mut [0]).is_ok() && back.write_all(&[1]).is_ok() {}
    });
    fly(SAMPLES / 2, move || {
        if let Some(partner) = partner.take() {
            let thread = constraint(&endless("partner", 1, 2));
            let _detached =
                spawn("partner", thread, partner).map_err(|error| format!("{error:?}"))?;
        }
        let mut came = Ok(());
        let rounds = units(ROUNDS);
        let ns = time(2 * rounds, || {
            for _ in 0..rounds {
                let got = out.write_all(&[1]);
                let got = got.and_then(|()| home.read_exact(&mut [0]));
                if got.is_err() {
                    came = got;
                }
            }
        });
        came.map(|()| ns).map_err(failed)
    })
}

/// A run in which one light thread takes so many samples.
fn fly(
    samples: usize,
    mut sample: impl FnMut() -> Result<f64, String> + Send + 'static,
) -> Result<Measured, String> {
    let notebook = Notebook::default();
    let kept = notebook.clone();
    let live = Live {
        pool: 1,
        record_bytes: 64 << 20,
        ..Live::measuring(1, Box::new(move |_| kept.take_all(samples, &mut sample)))
    };
    live.run(&notebook)
}
