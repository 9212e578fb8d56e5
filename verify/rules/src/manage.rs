//! The tree itself: who asked for what, whether it was theirs to ask, what a child may answer.

use punctual_kern::{ChildPick, Event, NodeId, NodeTerms, Refusal, Request};
use punctual_model::{Instant, MAX_DEPTH, ThreadId, Work};

use crate::Rule;
use crate::entry::Judge;
use crate::node::{Answer, ROOT};
use crate::queue::Entity;
use crate::thread::Thread;

impl Judge<'_> {
    /// A scheduler decided for `executed` ticks.
    pub(crate) fn child_decided(&mut self, executed: u64) {
        if let Some(child) = self.deciding.filter(|_| executed > 0) {
            self.asked.pays = Some((child, executed));
        }
    }

    /// The core says what a child pays for deciding.
    pub(crate) fn child_charged(&mut self, child: usize, work: Work) {
        let owed = self.asked.pays.take();
        if owed != Some((child, work.ticks())) {
            let (name, work) = (self.node_name(child), work.ticks());
            let what = format!("{name} is charged {work} ticks for deciding, not {owed:?}");
            self.violation(Rule::SupplyRespected, what);
        }
    }

    /// Looks at what is asked before anything has come of it.
    pub(crate) fn ask(&mut self, event: Event) {
        match event {
            Event::ChildPicked(pick) => self.ask_pick(&pick),
            Event::Manage { by, request } => {
                self.asked.unlawful = !self.is_lawful(by, &request);
            }
            Event::Wake(id) => {
                let may = |thread: usize| self.may_wake(self.threads[thread].home, thread);
                self.asked.unlawful = self.find(id).is_some_and(|thread| !may(thread));
            }
            _ => {}
        }
    }

    /// Holds what became of it against what had to.
    pub(crate) fn answered(&mut self, event: Event, refused: Option<Refusal>) {
        let asked = std::mem::take(&mut self.asked);
        if let Some((child, owed)) = asked.pays {
            let what = format!("decided {owed} ticks for nothing");
            self.accuse_node(Rule::SupplyRespected, child, what);
        }
        // What a late entry serves first may make a request lawful, or answer it.
        let certain = refused.is_none() && self.lateness() == 0;
        if asked.unlawful && certain {
            let what = format!("{event:?} was done, and was not lawful");
            self.violation(Rule::PowerRespected, what);
        }
        if refused.is_some() && asked.changed {
            let what = "a request was refused and done all the same".into();
            self.violation(Rule::EntriesAreWhole, what);
        }
        if let (Event::Manage { by, request }, None) = (event, refused) {
            self.blocked_by(by, &request);
        }
        let Event::ChildPicked(pick) = event else {
            return;
        };
        if let Some(child) = asked.tentative.filter(|_| refused.is_some()) {
            self.nodes[child].answer = None;
        }
        // Who is ready changes before a late entry's event, which no record shows.
        let stale = matches!(refused, Some(Refusal::StalePick(_))) && asked.refusal.is_none();
        if refused != asked.refusal && !stale && self.lateness() == 0 {
            let what = format!("{pick:?} got {refused:?}, deserves {:?}", asked.refusal);
            self.violation(Rule::ChildAnswersChecked, what);
        }
    }

    /// A scheduler has blocked a thread, unless that is over at the same instant.
    fn blocked_by(&mut self, by: NodeId, request: &Request) {
        let Request::Block {
            thread, exclusive, ..
        } = *request
        else {
            return;
        };
        let (by, thread) = (self.node(by), self.find(thread));
        let Some(t) = thread.map(|t| &mut self.threads[t]).filter(|t| t.blocked) else {
            return;
        };
        if exclusive {
            t.blocker = by;
        }
    }

    fn ask_pick(&mut self, pick: &ChildPick) {
        let child = self.node(pick.child);
        let Some(child) = child.filter(|_| child == self.deciding) else {
            self.asked.refusal = Some(Refusal::NotDeciding(pick.child));
            return;
        };
        let node = &self.nodes[child];
        let thread = pick.thread.map(|id| (id, self.find(id)));
        let refusal = match thread {
            Some((id, None)) => Some(Refusal::StaleThread(id)),
            Some((id, Some(thread))) => {
                let t = &self.threads[thread];
                if t.dead {
                    Some(Refusal::StaleThread(id))
                } else if t.home != child {
                    Some(Refusal::NotItsOwn(id))
                } else {
                    (!t.ready || t.queue != child).then_some(Refusal::NotReady(id))
                }
            }
            None => None,
        };
        let old = node.changed && node.epoch == Some(pick.epoch);
        let stale = old.then_some(Refusal::StalePick(pick.child));
        self.asked.refusal = refusal.or(stale);
        if self.asked.refusal.is_none() {
            self.asked.tentative = Some(child);
            let node = &mut self.nodes[child];
            node.epoch = Some(pick.epoch);
            node.changed = false;
            node.answer = Some(Answer {
                thread: pick.thread,
                until: pick.until.filter(|until| *until > self.now),
            });
        }
    }

    /// What is ready in a child has changed: its answer counts no more.
    pub(crate) fn forget_answer(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        node.answer = None;
        node.changed = true;
    }

    /// The chosen `entity` of a child that decides on its own supply is what it answered; or it is
    /// asked because no answer stands.
    pub(crate) fn answer_is_kept(&mut self, at: usize, thread: Option<ThreadId>) {
        let node = &self.nodes[at];
        let answer = node.standing(self.now);
        let standing = answer.map(|answer| answer.thread);
        let overstays = answer.and_then(|answer| answer.until);
        let overstays = overstays.is_some_and(|until| !self.is_armed_by(until));
        let what = match (thread, standing) {
            _ if !node.own_time => format!("{} is asked to decide", self.node_name(at)),
            (Some(thread), _) if node.protected == Some(thread) => return,
            (Some(thread), Some(answer)) if answer == Some(thread) && !overstays => return,
            (Some(thread), Some(answer)) if answer == Some(thread) => {
                let name = self.node_name(at);
                format!("{name}: nothing is armed for the end of its answer")
            }
            // Who has just locked what keeps its siblings away has not executed yet.
            (None, None) if node.protected.is_none_or(|p| self.before_id() != Some(p)) => return,
            (Some(thread), _) => {
                let (name, thread) = (self.node_name(at), self.name(thread.index()));
                format!("{thread} runs, which {name} did not choose")
            }
            (None, _) => format!("{} is asked though its answer stands", self.node_name(at)),
        };
        self.violation(Rule::ChildAnswersChecked, what);
    }

    /// Whether `at` is `above`, or below it.
    pub(crate) fn is_below(&self, at: usize, above: usize) -> bool {
        self.lineage(at).any(|node| node == above)
    }

    /// A node and everything above it.
    pub(crate) fn lineage(&self, at: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(at), |&at| self.nodes[at].parent)
    }

    fn is_lawful(&self, by: NodeId, request: &Request) -> bool {
        let Some(by) = self.node(by) else {
            return false;
        };
        let home_of = |id| Some(self.threads[self.find_alive(id)?].home);
        let is_under = |id| home_of(id).is_some_and(|home| self.is_below(home, by));
        match *request {
            Request::Create { home, .. } => {
                let home = self.node(home);
                by == ROOT && home.is_some_and(|home| self.has_room(home, None))
            }
            Request::Grant { thread, to } => self.node(to).is_some_and(|to| {
                let its_own = home_of(thread) == Some(by);
                its_own && self.nodes[to].parent == Some(by) && self.has_room(to, Some(by))
            }),
            Request::Revoke { thread } => is_under(thread) && home_of(thread) != Some(by),
            Request::Lend { to, .. } => self
                .node(to)
                .is_some_and(|to| to != by && self.nodes[to].parent == self.nodes[by].parent),
            Request::Demote(node) => self
                .node(node)
                .is_some_and(|node| node != by && self.is_below(node, by)),
            Request::Promote(_) => {
                let deep = self.lineage(by).count() > MAX_DEPTH;
                !deep && !self.nodes[by].own_time && !self.nodes[by].queue.is_divided()
            }
            Request::Block { thread, .. } => is_under(thread),
            Request::Wake(thread) => {
                is_under(thread) && self.find(thread).is_some_and(|t| self.may_wake(by, t))
            }
        }
    }

    /// Only its blocker and those above it wake a thread that a scheduler blocked for itself.
    fn may_wake(&self, by: usize, thread: usize) -> bool {
        let t = &self.threads[thread];
        let blocker = t.blocker.filter(|_| t.blocked);
        blocker.is_none_or(|blocker| self.is_below(blocker, by))
    }

    /// Whether every quota between `home` and `end` leaves room for one thread more.
    fn has_room(&self, home: usize, end: Option<usize>) -> bool {
        let mut above = self.lineage(home).take_while(|&at| Some(at) != end);
        above.all(|at| {
            let mine = |t: &&Thread| !t.dead && self.is_below(t.home, at);
            let count = self.threads.iter().filter(mine).count();
            let quota = self.nodes[at].quota;
            quota.is_none_or(|quota| count < quota as usize)
        })
    }

    /// A thread is in other care.
    pub(crate) fn moved(&mut self, thread: usize) {
        self.asked.changed = true;
        let asked = matches!(
            self.event,
            Some(Event::Manage {
                request: Request::Grant { .. } | Request::Revoke { .. } | Request::Demote(_),
                ..
            })
        );
        if !asked {
            let what = "moves and nobody asked for it";
            self.accuse(Rule::PowerRespected, thread, what);
        }
    }

    /// A scheduler begins to exist.
    pub(crate) fn promoted(&mut self, id: NodeId, parent: NodeId) {
        self.asked.changed = true;
        let asked = match self.event {
            Some(Event::Manage {
                by,
                request: Request::Promote(terms),
            }) if by == parent => Some(terms),
            _ => None,
        };
        let vacant = |at: &usize| {
            let node = self.nodes.get(*at);
            node.is_some_and(|node| !node.alive && node.generation == id.generation())
        };
        let (place, parent) = (Some(id.index()).filter(vacant), self.node(parent));
        match (asked, place, parent) {
            (Some(terms), Some(at), Some(parent)) => self.install(at, parent, &terms),
            _ => {
                let what = "a scheduler exists that nobody asked for".into();
                self.violation(Rule::PowerRespected, what);
            }
        }
    }

    fn install(&mut self, at: usize, parent: usize, terms: &NodeTerms) {
        let above = self.nodes[parent].background_at;
        self.nodes[at].take_terms((at, parent), terms, above);
    }

    /// A scheduler exists no more, nor what is below it.
    pub(crate) fn scheduler_ended(&mut self, top: usize) {
        self.asked.changed = true;
        let gone: Vec<usize> = (0..self.nodes.len())
            .filter(|&at| self.nodes[at].alive && self.is_below(at, top))
            .collect();
        let left = self
            .threads
            .iter()
            .find(|t| !t.dead && gone.contains(&t.home));
        if let Some(thread) = left.map(|t| t.id.index()) {
            self.accuse(Rule::PowerRespected, thread, "is left without a scheduler");
        }
        let heir = self.nodes[top].parent;
        for t in &mut self.threads {
            if t.blocker.is_some_and(|blocker| gone.contains(&blocker)) {
                t.blocker = heir;
            }
        }
        for at in gone {
            if let Some(parent) = self.nodes[at].parent {
                self.nodes[parent].queue.leave(Entity::Node(at));
            }
            self.nodes[at].end();
        }
    }

    /// When the first child that wants nobody to run, though it could, wants to be asked again.
    pub(crate) fn first_answer_ends(&self) -> Option<Instant> {
        let could = |at: usize| {
            let mut above = self.lineage(at);
            above.all(|at| self.nodes[at].is_funded() && !self.nodes[at].queue.is_divided())
        };
        let idle =
            (ROOT..self.nodes.len()).filter(|&at| self.nodes[at].queue.len() > 0 && could(at));
        idle.filter_map(|at| self.nodes[at].standing(self.now)?.until)
            .min()
    }
}
