//! Where work is: members that nobody has begun, items that wait, identities in the queue.
//!
//! Carriers that have nothing to do look here again and again. So a look reads as few words as can
//! be, and words that are written in every region stand on other lines of the cache.

use core::sync::atomic::{Ordering, fence};

use crate::parts::{Carrier, Identity, Member, Team};
use crate::pool;
use crate::record::{self, Kind};
use crate::settings::settings;

/// The carrier of the running code.
#[inline]
pub(crate) fn carrier_of(identity: &Identity) -> &'static Carrier {
    // Set before any code of the identity runs.
    identity.carrier.get().expect("running code has a carrier")
}

/// Work for a carrier whose own thread has nothing to do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Elsewhere {
    /// There is none.
    Nothing,
    /// Somebody is in the queue, or pinned to it.
    Somebody,
    /// A member that nobody has begun; its identity was taken for this carrier.
    Taken(&'static Identity),
}

impl Elsewhere {
    /// Whether there is something.
    #[inline]
    pub(crate) fn is_something(self) -> bool {
        !matches!(self, Elsewhere::Nothing)
    }

    /// The carrier of the running thread carries what was taken when that thread has left.
    pub(crate) fn follows(self, identity: &Identity) {
        if let Elsewhere::Taken(taken) = self {
            carrier_of(identity).chosen.set(Some(taken));
        }
    }

    /// The thread does not leave: others may have what was taken.
    pub(crate) fn give_back(self) {
        if let Elsewhere::Taken(taken) = self {
            pool::enqueue(taken);
        }
    }
}

pub(crate) fn bit(member: &Member) -> (usize, u64) {
    (member.number / 64, 1 << (member.number % 64))
}

pub(crate) fn is_unclaimed(member: &Member) -> bool {
    let (word, bit) = bit(member);
    member.team.unclaimed.words[word].load(Ordering::Relaxed) & bit != 0
}

/// Takes an identity that waits.
pub(crate) fn take(identity: &Identity) -> bool {
    let before = record::order();
    let taken = identity.standing.take();
    if taken {
        identity.taken.store(before, Ordering::Relaxed);
        identity.hat().team.waiting.sub();
    }
    taken
}

/// Whether an item of the team waits unstarted.
pub(crate) fn has_items(team: &Team) -> bool {
    let size = team.size.load(Ordering::Relaxed);
    team.spilt.load(Ordering::Relaxed) > 0
        || members(team)
            .iter()
            .take(size)
            .any(|member| member.deque.len() > 0)
}

/// Whether the region of the team has this member: an earlier one may have had more.
#[inline]
pub(crate) fn is_in(member: &Member) -> bool {
    member.number < member.team.size.load(Ordering::Relaxed)
}

/// All members that a team has had.
#[inline]
pub(crate) fn members(team: &Team) -> &'static [&'static Member] {
    // SAFETY: lists of members are never unmade.
    unsafe { &*team.members.load(Ordering::Acquire) }
}

/// Looks for something that the carrier of a waiting thread could begin: in its own team first. A
/// member that another carrier has taken already is nothing to leave for.
pub(crate) fn elsewhere(identity: &Identity) -> Elsewhere {
    let carrier = carrier_of(identity);
    if pool::queued() != 0 || !carrier.pinned.load(Ordering::Relaxed).is_null() {
        return Elsewhere::Somebody;
    }
    let own = claim(identity.hat().team);
    match own.or_else(|| unclaimed(carrier, false)) {
        Some(taken) => Elsewhere::Taken(taken),
        None => Elsewhere::Nothing,
    }
}

fn has_unclaimed(team: &Team) -> bool {
    first_unclaimed(team) != 0
}

/// The next identity to carry: pinned, queued, not begun, or able to begin an item. The work of
/// short regions is left to the carrier that offered them, unless the caller has waited for a
/// moment.
pub(crate) fn next(carrier: &'static Carrier, is_patient: bool) -> Option<&'static Identity> {
    let pinned = carrier.pinned.load(Ordering::Relaxed);
    if !pinned.is_null() {
        carrier
            .pinned
            .store(core::ptr::null_mut(), Ordering::Relaxed);
        fence(Ordering::Acquire);
        // SAFETY: identities are never unmade; the one who pinned it has let go of it.
        return unsafe { pinned.as_ref() };
    }
    let before = record::order();
    let found = pool::dequeue(carrier)
        .or_else(|| unclaimed(carrier, is_patient))
        .or_else(|| starter(carrier, is_patient));
    if found.is_none() {
        record::note(carrier, Kind::Looked, [before, 0, 0]);
    }
    found
}

/// How many members could be carried and are not, for the monitor.
pub(crate) fn runnable() -> usize {
    let of_team = |team: &Team| {
        let bits = team
            .unclaimed
            .words
            .iter()
            .map(|word| word.load(Ordering::Relaxed).count_ones());
        let waiting = team.waiting.count();
        let starters = if waiting > 0 && has_items(team) {
            waiting
        } else {
            0
        };
        starters.max(bits.sum::<u32>() as usize)
    };
    pool::queued() + pool::teams().map(of_team).sum::<usize>()
}

/// Whether it may carry members of a team whose regions were short of late.
pub(crate) fn serves_short(carrier: &Carrier) -> bool {
    let mut short = pool::teams().filter(|team| team.is_short.load(Ordering::Relaxed));
    short.any(|team| pool::may_carry(carrier, team.root.get()))
}

/// How many regions there have been of such teams, as far as they are short.
pub(crate) fn short_regions(carrier: &Carrier) -> u64 {
    let short = pool::teams().filter(|team| team.is_short.load(Ordering::Relaxed));
    let own = short.filter(|team| pool::may_carry(carrier, team.root.get()));
    let regions = own.map(|team| team.unclaimed.region.load(Ordering::Relaxed));
    regions.fold(0, u64::wrapping_add)
}

/// The first members that nobody has begun and that the carrier may carry: their team, the number
/// of its region, and their word.
pub(crate) fn sees_unclaimed(carrier: &Carrier) -> Option<(*const Team, u64, u64)> {
    let teams = pool::teams().filter(|team| pool::may_carry(carrier, team.root.get()));
    let mut words = teams.map(|team| {
        let region = team.unclaimed.region.load(Ordering::Relaxed);
        (core::ptr::from_ref(team), region, first_unclaimed(team))
    });
    words.find(|(_, _, word)| *word != 0)
}

fn first_unclaimed(team: &Team) -> u64 {
    let words = team.size.load(Ordering::Relaxed).div_ceil(64);
    let words = team.unclaimed.words.iter().take(words);
    let mut words = words.map(|word| word.load(Ordering::Relaxed));
    words.find(|word| *word != 0).unwrap_or(0)
}

/// A member whose implicit item nobody has begun.
fn unclaimed(carrier: &Carrier, is_patient: bool) -> Option<&'static Identity> {
    let teams = pool::teams().filter(|team| is_patient || !is_left(carrier, team));
    let teams = teams.filter(|team| has_unclaimed(team));
    let mut teams = teams.filter(|team| pool::may_carry(carrier, team.root.get()));
    teams.find_map(claim)
}

/// Whether the work of a team is left to the carrier that offered it: its regions are short.
fn is_left(carrier: &Carrier, team: &Team) -> bool {
    let by = || core::ptr::eq(team.offered_by.load(Ordering::Relaxed), carrier);
    team.is_short.load(Ordering::Relaxed) && !by()
}

/// Such a member of one team.
fn claim(team: &'static Team) -> Option<&'static Identity> {
    let size = team.size.load(Ordering::Relaxed);
    for (index, word) in team
        .unclaimed
        .words
        .iter()
        .take(size.div_ceil(64))
        .enumerate()
    {
        let mut bits = word.load(Ordering::Relaxed);
        while bits != 0 {
            let number = index * 64 + bits.trailing_zeros() as usize;
            bits &= bits - 1;
            let member = members(team).get(number)?;
            if take(member.identity) {
                return Some(member.identity);
            }
        }
    }
    None
}

/// A member that waits, in a team with an unstarted item.
fn starter(carrier: &Carrier, is_patient: bool) -> Option<&'static Identity> {
    let teams = pool::teams().filter(|team| team.waiting.count() > 0);
    let teams = teams.filter(|team| is_patient || !is_left(carrier, team));
    let mut teams =
        teams.filter(|team| pool::may_carry(carrier, team.root.get()) && has_items(team));
    teams.find_map(|team| {
        let size = team.size.load(Ordering::Relaxed);
        let here = members(team).iter().take(size);
        let mut fit = here.filter(|member| {
            let identity = member.identity;
            let is_free = identity.standing.waits() && may_start(identity);
            is_free && is_hat(identity, member) && take(identity)
        });
        fit.next().map(|member| member.identity)
    })
}

fn is_hat(identity: &Identity, member: &Member) -> bool {
    identity
        .member
        .get()
        .is_some_and(|hat| core::ptr::eq(hat, member))
}

/// Whether an identity may begin items that have nothing to do with its blocked ones.
pub(crate) fn may_start(identity: &Identity) -> bool {
    !settings().strict || identity.blocked.get() == 0
}
