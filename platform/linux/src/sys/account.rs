//! The kernel's account of threads, which it tells every user.

use std::fs::File;
use std::os::fd::AsRawFd;

use super::{address, call, word};

/// Two numbers of the `schedstat` of one thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Account {
    /// How long it executed, in nanoseconds.
    pub(crate) executed_ns: u64,
    /// How long it was ready while others had its CPU.
    pub(crate) waited_ns: u64,
}

impl Account {
    /// Reads `schedstat`: three numbers.
    fn parsed(text: &[u8]) -> Option<Account> {
        let text = core::str::from_utf8(text).ok()?;
        let mut numbers = text.split_ascii_whitespace().map(str::parse);
        let mut next = || numbers.next()?.ok();
        Some(Account {
            executed_ns: next()?,
            waited_ns: next()?,
        })
    }
}

/// The account of one thread of this machine; `None`: it has ended, or the kernel keeps none.
pub(crate) fn account_of(process: u32, thread: u32) -> Option<Account> {
    let path = format!("/proc/{process}/task/{thread}/schedstat");
    Account::parsed(&std::fs::read(path).ok()?)
}

/// The account of the thread that opened it, for a look out of an entry.
#[derive(Debug)]
pub(crate) struct OwnAccount(Option<File>);

impl OwnAccount {
    /// That of the calling thread, if the kernel keeps one.
    pub(crate) fn open() -> OwnAccount {
        OwnAccount(File::open("/proc/thread-self/schedstat").ok())
    }

    /// Reads it: one system call, and nothing is allocated.
    pub(crate) fn read(&self) -> Option<Account> {
        let file = self.0.as_ref()?;
        let mut text = [0_u8; 96];
        let arguments = [
            word(file.as_raw_fd()),
            address(text.as_mut_ptr()),
            text.len() as u64,
            0,
        ];
        // SAFETY: the kernel writes at most the length of the text, which outlives the call.
        let read = unsafe { call(libc::SYS_pread64, arguments) };
        Account::parsed(text.get(..usize::try_from(read).ok()?)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_two_of_three_numbers() {
        let of = |executed_ns, waited_ns| {
            Some(Account {
                executed_ns,
                waited_ns,
            })
        };
        assert_eq!(Account::parsed(b"12 7 3\n"), of(12, 7));
        assert_eq!([Account::parsed(b"12"), Account::parsed(b"")], [None; 2]);
    }

    #[test]
    fn a_thread_reads_its_own_account_and_that_of_others() {
        let own = OwnAccount::open();
        let Some(before) = own.read() else {
            eprintln!("skipped: this kernel keeps no accounts");
            return;
        };
        let process = std::process::id();
        let start = std::time::Instant::now();
        while own
            .read()
            .is_some_and(|now| now.executed_ns == before.executed_ns)
        {
            assert!(start.elapsed().as_secs() < 60, "it executes");
        }
        assert!(account_of(process, process).is_some());
        assert_eq!(account_of(process, u32::MAX), None);
    }
}
