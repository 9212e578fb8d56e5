//! Models of gangs: members that meet, and one that leaves meanwhile.

use std::sync::Arc;

use loom::thread;

use crate::atomic::pause;
use crate::check::{Model, in_every_order};
use crate::gang::{Broken, Form, Gang, Why};
use crate::member::{Member, Operation, Outcome, Step};

/// The models. A member that waits looks at nothing but the word that it was named.
pub const MODELS: [Model; 3] = [
    Model {
        property: "members of a linear gang get the value of all, round after round",
        run: || in_every_order(|| rounds(Form::Linear)),
    },
    Model {
        property: "members of a tree get the value of all, and every bell is heard",
        run: || in_every_order(|| rounds(Form::Tree)),
    },
    Model {
        property: "a member that leaves is named, and all see the same end of a round",
        run: || in_every_order(|| leaving(Form::Linear)) + in_every_order(|| leaving(Form::Tree)),
    },
];

type Party = Member<Arc<Gang>>;

fn crew(members: usize, form: Form) -> Vec<Party> {
    let gang = Arc::new(Gang::new(members, form, 1).unwrap());
    let join = |_| Member::join(Arc::clone(&gang)).unwrap();
    (0..members).map(join).collect()
}

fn sum(value: u64) -> Operation {
    let fold = u64::wrapping_add;
    Operation::Reduce { value, fold }
}

/// Steps to the end of an operation, and waits as a driver does.
fn drive(member: &mut Party, operation: Operation) -> Outcome {
    loop {
        match member.step(operation) {
            Step::More => {}
            Step::Wait(wait) => {
                while member.gang().look(wait.word) == wait.seen {
                    pause();
                }
            }
            Step::End(outcome) => return outcome,
        }
    }
}

/// Two rounds: the second uses every word again.
fn rounds(form: Form) {
    let mut crew = crew(2, form);
    let (mut other, mut one) = (crew.pop().unwrap(), crew.pop().unwrap());
    let there = thread::spawn(move || {
        let values = [drive(&mut other, sum(2)), drive(&mut other, sum(20))];
        (other, values)
    });
    let values = [drive(&mut one, sum(1)), drive(&mut one, sum(10))];
    let (_other, others) = there.join().unwrap();
    assert_eq!(values, [Outcome::Done(3), Outcome::Done(30)]);
    assert_eq!(others, values);
}

/// One leaves after its first operation, or in the middle of it, as the other sees it.
fn leaving(form: Form) {
    let mut crew = crew(2, form);
    let (other, mut one) = (crew.pop().unwrap(), crew.pop().unwrap());
    let there = thread::spawn(move || {
        let mut other = other;
        let end = drive(&mut other, sum(2));
        other.leave(Why::Cancelled);
        end
    });
    let ends = [drive(&mut one, sum(1)), drive(&mut one, sum(10))];
    let cancelled = Broken {
        member: 1,
        why: Why::Cancelled,
    };
    assert_eq!(ends, [Outcome::Done(3), Outcome::Broken(cancelled)]);
    assert_eq!(there.join().unwrap(), ends[0]);
}
