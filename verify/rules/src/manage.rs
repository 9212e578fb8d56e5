//! The tree itself: who asked for what, whether it was theirs to ask, what a child may answer.

use punctual_kern::{
    ChildPick, Event, FallbackCause, Grant, NodeId, Refusal, Request, WaitOrder, WakeCause,
};
use punctual_model::{Instant, MAX_DEPTH, PolicyKind, Span, Trust, Work};

use crate::Rule;
use crate::entry::Judge;
use crate::node::{CPU, Node, ROOT};
use crate::queue::Entity;
use crate::server::Supply;
use crate::thread::Thread;

impl Judge<'_> {
    /// The core says what a child pays for deciding.
    pub(crate) fn child_charged(&mut self, child: usize, work: Work) {
        let owed = self.pays.take();
        let right = owed == Some((child, work.ticks()));
        let what = format_args!("is charged {work:?} for deciding, not {owed:?}");
        self.must(right, Rule::SupplyRespected, Entity::Node(child), what);
    }

    /// Holds what is asked, before anything has come of it, against how it is answered. What a late
    /// entry serves first may make a request lawful, or answer it.
    pub(crate) fn ask(&mut self, event: Event, refused: Option<Refusal>) {
        let certain = self.lateness() == 0;
        let unlawful = match event {
            Event::ChildPicked(pick) => return self.ask_pick(&pick, refused, certain),
            Event::Manage { by, request } => self.is_lawful(by, &request) != Some(true),
            Event::ChildFailed(child) => {
                self.node(child).is_none_or(|at| self.deciding != Some(at))
            }
            Event::Wake(id) => {
                let care = |thread: usize| self.care(self.threads[thread].home);
                let may = |thread: usize| self.may_wake(care(thread), thread);
                self.find(id).is_some_and(|thread| !may(thread))
            }
            _ => false,
        };
        let right = !unlawful || refused.is_some() || !certain;
        let what = format_args!("does {event:?}, which is not lawful");
        self.must(right, Rule::PowerRespected, CPU, what);
    }

    /// Holds what became of the entry against its event.
    pub(crate) fn answered(&mut self, refused: Option<Refusal>) {
        if let Some((child, owed)) = self.pays.take() {
            let what = format!("decided {owed} ticks for nothing");
            self.accuse(Rule::SupplyRespected, Entity::Node(child), what);
        }
        let holds = refused.is_none() || !self.tree_changed;
        let what = "refuses a request and does it all the same";
        self.must(holds, Rule::EntriesAreWhole, CPU, what);
        // A scheduler has blocked a thread, unless that is over at the same instant.
        if let Event::Manage { by, request } = self.event
            && let (
                Request::Block {
                    thread, exclusive, ..
                },
                None,
            ) = (request, refused)
            && let (by, Some(thread)) = (self.node(by), self.find(thread))
            && exclusive
            && self.threads[thread].blocked
        {
            self.threads[thread].blocker = by;
        }
    }

    /// A lock handed over wakes nobody whom a more trusted scheduler has blocked for itself.
    pub(crate) fn is_handed_lawfully(&mut self, thread: usize, cause: WakeCause) {
        if let (Event::HandOver { .. }, WakeCause::Wake) = (self.event, cause) {
            let may = self.may_wake(self.care(self.threads[thread].home), thread);
            let what = "is woken by a lock, though a more trusted scheduler has it wait";
            self.must(may, Rule::PowerRespected, Entity::Thread(thread), what);
        }
    }

    fn ask_pick(&mut self, pick: &ChildPick, refused: Option<Refusal>, certain: bool) {
        let lawful = self.lawful_pick(pick);
        // Who is ready changes before a late entry's event, which no record shows.
        let stale = matches!(refused, Some(Refusal::StalePick(_))) && lawful.is_ok();
        let right = refused == lawful.err() || stale || !certain;
        let what = format_args!("answers {pick:?} by {refused:?}, not by {lawful:?}");
        self.must(right, Rule::ChildAnswersChecked, CPU, what);
        if let (Ok(child), None) = (lawful, refused) {
            let is_over = pick.until.is_some_and(|until| until <= self.now);
            let until = match (is_over, pick.thread) {
                (false, _) => pick.until,
                (true, Some(_)) => None,
                // It is asked again.
                (true, None) => Some(self.now.saturating_add(Span::from_ticks(1))),
            };
            let node = &mut self.nodes[child];
            (node.answer, node.changed) = (Some(ChildPick { until, ..*pick }), false);
            if pick.thread.is_some() || pick.until.is_some() {
                node.asked = None;
            }
        }
    }

    /// The child whose answer is lawful, or the refusal that it deserves.
    fn lawful_pick(&self, pick: &ChildPick) -> Result<usize, Refusal> {
        let child = self
            .node(pick.child)
            .filter(|child| self.deciding == Some(*child));
        let child = child.ok_or(Refusal::NotDeciding(pick.child))?;
        if let Some(id) = pick.thread {
            let t = &self.threads[self.find(id).ok_or(Refusal::StaleThread(id))?];
            if t.home != child {
                return Err(Refusal::NotItsOwn(id));
            }
            if !t.ready || t.queue != child {
                return Err(Refusal::NotReady(id));
            }
        }
        let node = &self.nodes[child];
        let old = node.answer.is_some_and(|answer| answer.epoch == pick.epoch);
        match node.changed && old {
            true => Err(Refusal::StalePick(pick.child)),
            false => Ok(child),
        }
    }

    /// What is ready in a child has changed: its answer counts no more.
    pub(crate) fn forget_answer(&mut self, at: usize) {
        self.nodes[at].changed = true;
    }

    /// The chosen `thread` of a child that decides on its own supply is what it answered; or it is
    /// asked because no answer stands.
    pub(crate) fn answer_is_kept(&mut self, at: usize, thread: Option<usize>) {
        let (who, node, protected) = (Entity::Node(at), &self.nodes[at], self.protected(at));
        let answer = node.standing(self.now);
        let standing = answer.map(|answer| answer.thread.and_then(|id| self.find(id)));
        let what = match (thread, standing) {
            _ if !node.decides() => "is asked to decide and is not to",
            (Some(_), _) if protected == thread => return,
            (Some(_), Some(answered)) if answered == thread => {
                let until = answer
                    .and_then(|answer| answer.until)
                    .unwrap_or(Instant::MAX);
                if until < Instant::MAX {
                    self.ends(until, Rule::ChildAnswersChecked, who, "its answer");
                }
                return;
            }
            // Who has just locked what keeps its siblings away has not executed yet.
            (None, None) if protected.is_none() || self.before != protected => return,
            (Some(_), _) => "runs what it did not choose",
            (None, _) => "is asked though its answer stands",
        };
        self.accuse(Rule::ChildAnswersChecked, who, what);
    }

    /// Whether `at` is `above`, or below it.
    pub(crate) fn is_below(&self, at: usize, above: usize) -> bool {
        self.lineage(at).any(|node| node == above)
    }

    /// A node and everything above it.
    pub(crate) fn lineage(&self, at: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(at), |&at| self.nodes[at].parent)
    }

    fn is_lawful(&self, by: NodeId, request: &Request) -> Option<bool> {
        let by = self.node(by)?;
        let home_of = |id| Some(self.care(self.threads[self.find(id)?].home));
        let is_under = |id| Some(self.is_below(home_of(id)?, by));
        let node = &self.nodes[by];
        Some(match *request {
            Request::Create { home, .. } => {
                let home = self.node(home)?;
                by == ROOT && !self.is_slice(home) && self.has_room(home, None)
            }
            Request::Grant { thread, to } => {
                let (to, its_own) = (self.node(to)?, home_of(thread)? == by);
                let below = match self.is_slice(to) {
                    true => self.care(to) == by,
                    false => self.nodes[to].parent == Some(by),
                };
                its_own && below && self.has_room(to, Some(by))
            }
            Request::Revoke { thread } => {
                is_under(thread)? && self.threads[self.find(thread)?].home != by
            }
            Request::Lend { to, .. } => {
                let to = self.node(to)?;
                to != by && self.nodes[to].parent == node.parent
            }
            Request::Demote(top) => {
                let top = self.node(top)?;
                top != by && self.is_below(top, by)
            }
            Request::Supply { node, .. } => {
                let at = self.node(node)?;
                at != by && self.is_below(at, by) && !self.is_slice(at)
            }
            Request::Promote(terms) => {
                let deep = self.lineage(by).count() > MAX_DEPTH;
                let slice = self.may_delegate(by, &terms)?;
                slice && !deep && !node.decides() && !node.queue.is_divided()
            }
            Request::Block { thread, .. } => {
                is_under(thread)? && self.may_wake(by, self.find(thread)?)
            }
            Request::Replace { node, policy } => {
                let at = self.node(node)?;
                self.is_below(at, by) && self.is_replaceable(at, node, policy)
            }
            Request::Wake(thread) => is_under(thread)? && self.may_wake(by, self.find(thread)?),
        })
    }

    /// Whether another policy may order a scheduler: time is not divided anew, and what is shared
    /// goes on being handed on in the same order.
    fn is_replaceable(&self, at: usize, id: NodeId, policy: PolicyKind) -> bool {
        let node = &self.nodes[at];
        let divides = node.queue.is_divided() || matches!(policy, PolicyKind::Tdm { .. });
        let resources = &self.log.tables.cpus[self.cpu].resources;
        let mut shared = resources.iter().filter(|terms| terms.common == id);
        let same_order = shared.all(|terms| terms.wait_order == WaitOrder::of(policy));
        !divides && node.next.is_none() && same_order
    }

    /// Another policy orders what a scheduler orders.
    pub(crate) fn policy_replaced(&mut self, at: usize, policy: PolicyKind) {
        let asked = self.nodes[at].next.take();
        let what = format_args!("is ordered by {policy:?}, and {asked:?} was asked for");
        let right = asked == Some(policy);
        self.must(right, Rule::PowerRespected, Entity::Node(at), what);
        let node = &mut self.nodes[at];
        if node.decides() && !node.falls_back {
            // Its code is another: what that decides is its own.
            (node.changed, node.asked) = (true, None);
            return;
        }
        node.queue.replace(policy, self.now);
        // One that fell back decides no more.
        (node.terms.trust, node.answer, node.falls_back) = (Trust::Inline, None, false);
    }

    /// Without a fallback a child that failed has answered that nobody shall run.
    pub(crate) fn gave_up(&mut self, child: NodeId) {
        let Some(at) = self.node(child) else { return };
        let node = &mut self.nodes[at];
        if node.fallback.is_none() {
            let epoch = node.answer.map_or(0, |answer| answer.epoch);
            let nobody = ChildPick {
                child,
                epoch,
                thread: None,
                until: None,
            };
            (node.answer, node.changed) = (Some(nobody), false);
        }
    }

    /// A scheduler that decided on its own supply has failed, or let its time to answer pass.
    pub(crate) fn fell_back(&mut self, at: usize, cause: FallbackCause) {
        let (event, now) = (self.event, self.now);
        let node = &mut self.nodes[at];
        let fallback = node.fallback.take().filter(|_| node.decides());
        let right = fallback.is_some_and(|fallback| match cause {
            FallbackCause::Failed => {
                matches!(event, Event::ChildFailed(child) if child.index() == at)
            }
            FallbackCause::Unanswered => {
                let ends = |asked: Instant| asked.saturating_add(fallback.patience);
                node.asked.is_some_and(|asked| now >= ends(asked))
            }
        });
        node.next = fallback.map(|fallback| fallback.policy);
        node.falls_back = true;
        let what = format_args!("falls back ({cause:?}) without a reason");
        self.must(right, Rule::ChildAnswersChecked, Entity::Node(at), what);
        self.forget_answer(at);
    }

    /// Since when the child that is let run is asked, and who has nothing to decide on.
    pub(crate) fn patience_passes(&mut self) {
        if let Some(child) = self.deciding {
            let _since = self.nodes[child].asked.get_or_insert(self.now);
        }
        for node in &mut self.nodes {
            if node.queue.first().is_none() {
                node.asked = None;
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
        let mut above = self
            .lineage(self.care(home))
            .take_while(|&at| Some(at) != end);
        above.all(|at| {
            let mine = |t: &&Thread| !t.dead && self.is_below(self.care(t.home), at);
            let count = self.threads.iter().filter(mine).count();
            let quota = self.nodes[at].terms.quota;
            quota.is_none_or(|quota| count < quota as usize)
        })
    }

    /// A thread is in other care, or executes on another slice than before: `from`.
    pub(crate) fn moved(&mut self, thread: usize, from: usize) {
        self.tree_changed = true;
        self.falls_home(thread, from);
        use Request::{Demote, Grant, Revoke};
        let mut asked = false;
        if let Event::Manage { request, .. } = self.event {
            asked = matches!(request, Grant { .. } | Revoke { .. } | Demote(_));
        }
        let (who, what) = (Entity::Thread(thread), "moves and nobody asked for it");
        self.must(asked, Rule::PowerRespected, who, what);
    }

    /// A scheduler begins to exist.
    pub(crate) fn promoted(&mut self, id: NodeId, parent: usize) {
        self.tree_changed = true;
        let asked = match self.event {
            Event::Manage {
                by,
                request: Request::Promote(terms),
            } if self.node(by) == Some(parent) => Some(terms),
            _ => None,
        };
        let above = self.nodes[parent].background_at;
        let at = id.index();
        let vacant =
            |n: &&mut Node| at != ROOT && n.parent.is_none() && n.generation == id.generation();
        let node = self.nodes.get_mut(at).filter(vacant);
        if let (Some(terms), Some(node)) = (asked, node) {
            node.take_terms((at, parent), terms, above);
            self.has_delegated(parent);
        } else {
            let what = "has a scheduler that nobody asked for";
            self.accuse(Rule::PowerRespected, CPU, what);
        }
    }

    /// A scheduler has another server.
    pub(crate) fn supplied(&mut self, at: usize) {
        self.tree_changed = true;
        let asked = match self.event {
            Event::Manage {
                request: Request::Supply { node, supply },
                ..
            } if self.node(node) == Some(at) => Some(supply),
            _ => None,
        };
        match asked {
            Some(Grant::Server(server)) => {
                self.nodes[at].terms.supply = Grant::Server(server);
                self.nodes[at].supply = Some(Supply::new(server));
                self.has_delegated(at);
            }
            _ => {
                let what = "has a server that nobody asked for";
                self.accuse(Rule::PowerRespected, Entity::Node(at), what);
            }
        }
    }

    /// A scheduler exists no more, nor what is below it.
    pub(crate) fn scheduler_ended(&mut self, top: usize) {
        self.tree_changed = true;
        let all = 0..self.nodes.len();
        let gone: Vec<usize> = all.filter(|&at| self.is_below(at, top)).collect();
        let mut threads = self.threads.iter();
        if let Some(thread) = threads.position(|t| !t.dead && gone.contains(&t.home)) {
            let what = "is left without a scheduler";
            self.accuse(Rule::PowerRespected, Entity::Thread(thread), what);
        }
        let heir = self.nodes[top].parent;
        for t in &mut self.threads {
            if t.blocker.is_some_and(|blocker| gone.contains(&blocker)) {
                t.blocker = heir;
            }
        }
        // A giver that ends with its slices forgets them; what has its place then owes nothing.
        for &at in &gone {
            self.slice_ended(at);
        }
        for at in gone {
            if let Some(parent) = self.nodes[at].parent {
                self.nodes[parent].queue.leave(Entity::Node(at));
            }
            let node = &self.nodes[at];
            self.nodes[at] = Node::vacant(node.generation.wrapping_add(1), node.queue.policy);
        }
    }

    /// When the first child that wants nobody to run, though it could, wants to be asked again.
    pub(crate) fn first_answer_ends(&self) -> Option<Instant> {
        let could = |at: usize| {
            let mut above = self.lineage(at);
            above.all(|at| self.nodes[at].is_funded() && !self.nodes[at].queue.is_divided())
        };
        let idle = (ROOT..self.nodes.len())
            .filter(|&at| self.nodes[at].queue.first().is_some() && could(at));
        idle.filter_map(|at| self.nodes[at].standing(self.now)?.until)
            .min()
    }
}
