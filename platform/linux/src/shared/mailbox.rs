//! How a CPU learns that there is news for it, whatever it does just then.
//!
//! ```text
//!   sender:    write the news -> fence -> what does the CPU do?  sleeping: wake it
//!                                                                executing: signal, once
//!                                                                looking by itself: nothing
//!   sleeper:   say so         -> fence -> is there news?         no: sleep
//!   executing: say so         -> fence -> look for news, then go on
//!   signalled: exchange the flag       -> look for news
//!
//!   sender:    put something on a list -> raise the flag of lists
//!   an entry:  exchange that flag, if it is up -> look at the lists
//! ```
//!
//! Both flags are in one word, at which each entry of a CPU looks: there is no other news.
//!
//! Of a sender and a CPU that says what it does, one always sees the other, because of the two
//! fences; of a sender that found the flag up and the CPU that takes it down, the CPU sees what the
//! sender had written, because both exchange the flag. Checked in every order of its accesses by
//! `interleave`, with `kicks`.

use super::atomic::{AtomicU32, Ordering, fence};

/// What a CPU does, for those who have news for it.
mod activity {
    /// It executes a thread: only a signal reaches it before its next entry.
    pub(super) const RUNNING: u32 = 0;
    /// It looks at its rings all the time.
    pub(super) const POLLING: u32 = 1;
    /// It sleeps on its word.
    pub(super) const SLEEPING: u32 = 2;
}

/// Things at which the next entry of a CPU that executes looks.
mod news {
    /// A kick by signal is on its way.
    pub(super) const KICK: u32 = 1;
    /// Something has been put on a list.
    pub(super) const LISTED: u32 = 2;
}

/// What has to be done for a CPU to look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Call {
    /// Nothing: it looks by itself, or is on its way to.
    Nothing,
    /// Wake whoever sleeps on its word.
    Wake,
    /// Send it the signal.
    Signal,
}

/// One CPU as the others see it.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Mailbox {
    /// One of [`activity`].
    activity: AtomicU32,
    /// Changes with every wake-up; the futex a CPU sleeps on.
    wakes: AtomicU32,
    /// Flags of [`news`].
    news: AtomicU32,
}

impl Mailbox {
    /// Of a CPU that executes.
    pub(crate) fn new() -> Mailbox {
        Mailbox {
            activity: AtomicU32::new(activity::RUNNING),
            wakes: AtomicU32::new(0),
            news: AtomicU32::new(0),
        }
    }

    /// The word that the CPU sleeps on.
    pub(crate) fn word(&self) -> &AtomicU32 {
        &self.wakes
    }

    /// Any CPU, after it has written its news: what it has to do. `soon`: also when the CPU
    /// executes a thread.
    #[must_use = "the CPU does not look by itself"]
    pub(crate) fn kick(&self, soon: bool) -> Call {
        fence(Ordering::SeqCst);
        match self.activity.load(Ordering::Relaxed) {
            activity::SLEEPING => {
                self.wakes.fetch_add(1, Ordering::Relaxed);
                Call::Wake
            }
            // What this CPU has written is covered by the fence.
            activity::RUNNING if soon => {
                match self.news.fetch_or(news::KICK, Ordering::Relaxed) & news::KICK {
                    0 => Call::Signal,
                    _ => Call::Nothing,
                }
            }
            _ => Call::Nothing,
        }
    }

    /// This CPU executes from now on. PendingList from before is seen after this.
    pub(crate) fn executes(&self) {
        self.activity.store(activity::RUNNING, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// This CPU looks for news all the time from now on, so sooner or later it sees any.
    pub(crate) fn polls(&self) {
        self.activity.store(activity::POLLING, Ordering::Relaxed);
    }

    /// Any CPU: something has been put on a list.
    pub(crate) fn note_listed(&self) {
        self.news.fetch_or(news::LISTED, Ordering::Release);
    }

    /// Whether this CPU, which executes, has anything to look at. One load.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.news.load(Ordering::Relaxed) != 0
    }

    /// Whether somebody kicks this CPU, which executes.
    #[inline]
    pub(crate) fn is_signalled(&self) -> bool {
        self.news.load(Ordering::Relaxed) & news::KICK != 0
    }

    /// Things that are put on a list from now on are news again. Called before the lists are looked
    /// at.
    pub(crate) fn hear_listed(&self) {
        self.news.fetch_and(!news::LISTED, Ordering::Acquire);
    }

    /// Others may send a kick by signal again. Called before the news is looked for.
    pub(crate) fn acknowledge(&self) {
        self.news.fetch_and(!news::KICK, Ordering::AcqRel);
    }

    /// Sleeps until the next wake-up, or not at all when there is news. `wait` sleeps while a word
    /// has a value; it may return early.
    pub(crate) fn sleep(
        &self,
        has_news: impl FnOnce() -> bool,
        wait: impl FnOnce(&AtomicU32, u32),
    ) {
        let seen = self.wakes.load(Ordering::Relaxed);
        self.activity.store(activity::SLEEPING, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !has_news() {
            wait(&self.wakes, seen);
        }
        self.polls();
    }
}
