//! Plans of groups: the start of each segment, and a checker that plans nothing
//!
//! The certificate of a plan claims a CPU and a start for each segment. The checker compares every
//! two segments: those that share a CPU, or a resource that one of them uses alone, must not
//! overlap. Neither may a segment and one that comes after it. It keeps no available times and
//! searches nothing.

use serde::{Deserialize, Serialize};

use crate::{Certificate, Claims, Why, Wrong};

/// The version of the format.
pub const PLAN_FORMAT: u32 = 1;

/// Segments, and the place of each.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanCertificate {
    /// [`PLAN_FORMAT`].
    pub format: u32,
    /// The names of the CPUs.
    pub cpus: Vec<String>,
    /// The names of the resources, with those of threads whose place is one.
    pub resources: Vec<String>,
    /// The plan repeats from this instant on; in nanoseconds.
    #[serde(default)]
    pub repeats_from: u64,
    /// The length of the part that repeats; 0: none does.
    #[serde(default)]
    pub period: u64,
    /// In the order of the file.
    pub segments: Vec<Segment>,
    /// A place for each.
    pub places: Vec<Place>,
    /// The certificate of all that is no segment and has a deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<Certificate>,
}

/// Everything about a segment that its place depends on; times in nanoseconds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Segment {
    /// Its name in the file.
    pub name: String,
    /// It does not start before.
    pub release: u64,
    /// With everything that is charged for it.
    pub wcet: u64,
    /// It ends by then.
    pub deadline: u64,
    /// Its resources.
    pub uses: Vec<Use>,
    /// The segments that end before it starts, by place.
    pub after: Vec<usize>,
}

/// A resource that a segment has from start to end.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Use {
    /// By place.
    pub resource: usize,
    /// No other segment has it meanwhile.
    pub alone: bool,
}

/// When and where a segment executes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// By place.
    pub cpu: usize,
    /// In nanoseconds.
    pub start: u64,
}

/// Reads the certificate of a plan strictly.
///
/// # Errors
///
/// [`Wrong::Form`].
pub fn read_plan(text: &str) -> Result<PlanCertificate, Wrong> {
    let read: PlanCertificate =
        serde_json::from_str(text).map_err(|error| Wrong::Form(error.to_string()))?;
    match read.format {
        PLAN_FORMAT => Ok(read),
        other => Err(Wrong::Form(format!(
            "its format is {other}, this checker reads {PLAN_FORMAT}"
        ))),
    }
}

/// Checks CPUs, resources, precedence and deadlines, and the certificate of the rest. O(n²)
/// comparisons for n segments. Segments that repeat stay within one period, so that the next one
/// can follow it. The others end before.
///
/// # Errors
///
/// [`Wrong`]: the first start that cannot be, and what it had to be.
pub fn verify_plan(plan: &PlanCertificate) -> Result<(), Wrong> {
    let (segments, places) = (&plan.segments, &plan.places);
    if segments.len() != places.len() {
        return Err(Wrong::Number {
            place: "the number of places".into(),
            claimed: places.len().to_string(),
            follows: segments.len().to_string(),
        });
    }
    for number in 0..segments.len() {
        alone(plan, number)?;
    }
    for number in 0..segments.len() {
        repeats(plan, number)?;
    }
    for one in 0..segments.len() {
        for other in one + 1..segments.len() {
            together(plan, one, other)?;
        }
    }
    let Some(rest) = &plan.rest else {
        return Ok(());
    };
    if !matches!(rest.claims, Claims::Admitted { .. }) {
        return Err(not("what is no segment is refused".into()));
    }
    crate::verify(rest)
}

/// A segment lies on one side of the beginning of what repeats, and ends within one period of it.
fn repeats(plan: &PlanCertificate, number: usize) -> Result<(), Wrong> {
    let place = &plan.places[number];
    let (from, to) = (plan.repeats_from, end(plan, number, place));
    if place.start < from && to > from {
        let what = format!("before {from} with its end, where the plan begins to repeat");
        return Err(start(number, place, &what));
    }
    let last = from.saturating_add(plan.period);
    if plan.period > 0 && to > last {
        let what = format!("so that it ends by {last}, where the plan repeats");
        return Err(start(number, place, &what));
    }
    Ok(())
}

/// A segment by itself: its numbers mean something, its release, its deadline.
fn alone(plan: &PlanCertificate, number: usize) -> Result<(), Wrong> {
    let (segment, place) = (&plan.segments[number], &plan.places[number]);
    let name = &segment.name;
    if place.cpu >= plan.cpus.len() {
        return Err(not(format!(
            "`{name}` is on CPU {} of {}",
            place.cpu,
            plan.cpus.len()
        )));
    }
    let unknown = |used: &Use| used.resource >= plan.resources.len();
    if segment.uses.iter().any(unknown) {
        return Err(not(format!("`{name}` uses a resource that has no name")));
    }
    if segment.wcet == 0 {
        return Err(not(format!("`{name}` has no work")));
    }
    if place.start < segment.release {
        let why = format!("at least {}, its release", segment.release);
        return Err(start(number, place, &why));
    }
    match segment.deadline.checked_sub(segment.wcet) {
        Some(latest) if place.start <= latest => {}
        latest => {
            let why = match latest {
                Some(latest) => format!("at most {latest}, for the deadline of `{name}`"),
                None => format!("before 0, for the deadline of `{name}`"),
            };
            return Err(start(number, place, &why));
        }
    }
    for &before in &segment.after {
        let Some(first) = plan.places.get(before) else {
            return Err(not(format!(
                "`{name}` comes after segment {before}, which is none"
            )));
        };
        let end = end(plan, before, first);
        if place.start < end {
            let why = format!(
                "at least {end}, the end of `{}`",
                plan.segments[before].name
            );
            return Err(start(number, place, &why));
        }
    }
    Ok(())
}

/// Two segments: on one CPU, or with a resource that one of them uses alone, they do not overlap.
fn together(plan: &PlanCertificate, one: usize, other: usize) -> Result<(), Wrong> {
    let (a, b) = (&plan.places[one], &plan.places[other]);
    if end(plan, one, a) <= b.start || end(plan, other, b) <= a.start {
        return Ok(());
    }
    let (first, second) = (&plan.segments[one], &plan.segments[other]);
    let shared = if a.cpu == b.cpu {
        Some(&plan.cpus[a.cpu])
    } else {
        let mut uses = first.uses.iter();
        let conflict = uses.find(|used| {
            let with = |theirs: &&Use| theirs.resource == used.resource;
            let mut same = second.uses.iter().filter(with);
            same.any(|theirs| theirs.alone || used.alone)
        });
        conflict.map(|used| &plan.resources[used.resource])
    };
    let Some(shared) = shared else {
        return Ok(());
    };
    let (late, before) = if a.start > b.start {
        (one, other)
    } else {
        (other, one)
    };
    let why = format!(
        "at least {}, when `{}` leaves {shared} to `{}`",
        end(plan, before, &plan.places[before]),
        plan.segments[before].name,
        plan.segments[late].name
    );
    Err(start(late, &plan.places[late], &why))
}

fn end(plan: &PlanCertificate, number: usize, place: &Place) -> u64 {
    place.start.saturating_add(plan.segments[number].wcet)
}

fn start(number: usize, place: &Place, follows: &str) -> Wrong {
    Wrong::Number {
        place: format!("places[{number}].start"),
        claimed: place.start.to_string(),
        follows: follows.to_string(),
    }
}

fn not(what: String) -> Wrong {
    Wrong::Verdict(Why::new(what))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(name: &str, uses: &[(usize, bool)], after: &[usize]) -> Segment {
        let uses = uses
            .iter()
            .map(|&(resource, alone)| Use { resource, alone });
        Segment {
            name: name.into(),
            release: 5,
            wcet: 10,
            deadline: 60,
            uses: uses.collect(),
            after: after.to_vec(),
        }
    }

    /// `a` writes a resource, `b` and `c` read it after that, `d` comes after both.
    fn plan() -> PlanCertificate {
        PlanCertificate {
            format: PLAN_FORMAT,
            cpus: vec!["cpu 0".into(), "cpu 1".into()],
            resources: vec!["table".into()],
            segments: vec![
                segment("a", &[(0, true)], &[]),
                segment("b", &[(0, false)], &[]),
                segment("c", &[(0, false)], &[]),
                segment("d", &[], &[1, 2]),
            ],
            repeats_from: 0,
            period: 0,
            rest: None,
            places: [(0, 5), (0, 15), (1, 20), (0, 50)]
                .map(|(cpu, start)| Place { cpu, start })
                .to_vec(),
        }
    }

    /// The fault of the plan with a segment somewhere else.
    fn moved(number: usize, cpu: usize, start: u64) -> String {
        let mut plan = plan();
        plan.places[number] = Place { cpu, start };
        verify_plan(&plan).map_or_else(|wrong| wrong.to_string(), |()| "right".into())
    }

    #[test]
    fn a_plan_is_its_own_proof_and_every_start_moved_too_far_is_named() {
        assert_eq!(verify_plan(&plan()), Ok(()));
        let text = serde_json::to_string(&plan()).expect("it is plain data");
        assert_eq!(read_plan(&text), Ok(plan()));
        let named = |number, cpu, start, why| {
            let told = moved(number, cpu, start);
            assert!(
                told.starts_with(&format!("places[{number}].start is {start}, but")),
                "{told}"
            );
            assert!(told.contains(why), "{told}");
        };
        named(0, 0, 4, "at least 5, its release");
        named(3, 0, 51, "at most 50, for the deadline of `d`");
        named(3, 0, 29, "at least 30, the end of `c`");
        named(2, 0, 24, "at least 25, when `b` leaves cpu 0 to `c`");
        named(2, 1, 14, "at least 15, when `a` leaves table to `c`");
        assert!(moved(1, 2, 15).contains("on CPU 2 of 2"));
        // What repeats leaves room for its next part, and is not begun before.
        let mut turns = plan();
        turns.period = 60;
        assert_eq!(verify_plan(&turns), Ok(()));
        turns.period = 59;
        let told = verify_plan(&turns).expect_err("d ends at 60").to_string();
        assert!(told.contains("ends by 59"), "{told}");
        (turns.period, turns.repeats_from) = (60, 55);
        let told = verify_plan(&turns).expect_err("d goes across").to_string();
        assert!(told.contains("before 55 with its end"), "{told}");
        // Readers overlap, and the last instants of all are lawful.
        assert_eq!(moved(2, 1, 15), "right");
        assert_eq!(moved(3, 1, 30), "right");
    }
}
