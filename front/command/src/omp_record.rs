//! The record of a program of OpenMP: read, held against the promise of no idle carrier, and drawn.
//!
//! A carrier is idle in vain when it looks around twice in a row and finds nothing, though one item
//! that it could begin waited unstarted all the while. It is also when it stays asleep while an
//! item is offered and nobody is woken. Both follow from the order of events; no clock is asked.

use std::collections::BTreeMap;

/// Everything of one file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    /// Cycles in a nanosecond.
    rate: f64,
    functions: BTreeMap<u64, String>,
    carriers: Vec<Carrier>,
}

#[derive(Clone, Debug)]
struct Carrier {
    number: u64,
    is_pool: bool,
    events: Vec<Event>,
}

#[derive(Clone, Debug)]
struct Event {
    kind: String,
    order: u64,
    time: u64,
    values: [u64; 3],
}

/// An item that waited: surely from one order until before another.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    region: u64,
    members: u64,
    from: u64,
    announced: u64,
    woken: u64,
    until: u64,
}

/// A time in which nobody carried an identity.
#[derive(Clone, Copy, Debug)]
struct Free {
    region: u64,
    number: u64,
    from: u64,
    until: u64,
}

/// The state of a carrier between two of its events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// It runs an item: number, function, member.
    Runs(u64, u64, u64),
    /// It looks for work.
    Looks,
    /// It sleeps.
    Sleeps,
}

/// A state, from one time to another in nanoseconds.
pub(crate) type Span = (u64, u64, State);

/// What the check has looked at, and what it found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    /// Items that were offered.
    pub(crate) items: usize,
    /// Looks in vain.
    pub(crate) looks: usize,
    /// Sleeps of carriers.
    pub(crate) sleeps: usize,
    /// Idle in vain, a sentence each.
    pub(crate) idle: Vec<String>,
}

/// Reads a record; the first line that is none, if any.
pub(crate) fn read(text: &str) -> Result<Record, String> {
    let mut lines = text.lines();
    if lines.next() != Some("punctual-openmp record 1") {
        return Err("this is no record of `PUNCTUAL_OMP_TRACE`".to_owned());
    }
    let mut record = Record::default();
    for line in lines {
        read_line(&mut record, line).ok_or_else(|| format!("this is no event: {line}"))?;
    }
    Ok(record)
}

fn read_line(record: &mut Record, line: &str) -> Option<()> {
    let words: Vec<&str> = line.split(' ').collect();
    match words[..] {
        ["clock", cycles, "cycles", time, "ns"] => {
            record.rate = cycles.parse::<f64>().ok()? / time.parse::<f64>().ok()?.max(1.0);
        }
        ["carrier", number, kind, "lost", lost] => {
            if lost != "0" {
                eprintln!("punctual: {lost} events of carrier {number} found no room");
            }
            record.carriers.push(Carrier {
                number: number.parse().ok()?,
                is_pool: kind == "pool",
                events: Vec::new(),
            });
        }
        ["function", address, ..] => {
            let name = line.splitn(3, ' ').nth(2)?;
            record
                .functions
                .insert(address.parse().ok()?, name.to_owned());
        }
        [kind, _, order, time, a, b, c] => {
            let number = |word: &str| word.parse::<u64>().ok();
            let event = Event {
                kind: kind.to_owned(),
                order: number(order)?,
                time: number(time)?,
                values: [number(a)?, number(b)?, number(c)?],
            };
            // A look ends after it has begun.
            if kind == "Looked" && event.values[0] >= event.order {
                return None;
            }
            record.carriers.last_mut()?.events.push(event);
        }
        _ => return None,
    }
    Some(())
}

impl Record {
    fn events(&self, kind: &'static str) -> impl Iterator<Item = &Event> {
        let all = self.carriers.iter().flat_map(|carrier| &carrier.events);
        all.filter(move |event| event.kind == kind)
    }

    /// Items, by the order in which they were offered.
    fn waiting(&self) -> Vec<Waiting> {
        let mut items: BTreeMap<u64, Waiting> = BTreeMap::new();
        for event in self.events("Offered") {
            let [number, region, members] = event.values;
            let item = Waiting {
                region,
                members,
                from: event.order,
                announced: u64::MAX,
                woken: 0,
                until: u64::MAX,
            };
            items.insert(number, item);
        }
        for event in self.events("Announced") {
            if let Some(item) = items.get_mut(&event.values[0]) {
                (item.announced, item.woken) = (event.order, event.values[1]);
            }
        }
        for event in self.events("Taken") {
            if let Some(item) = items.get_mut(&event.values[0]) {
                item.until = event.values[1];
            }
        }
        let mut items: Vec<Waiting> = items.into_values().collect();
        items.sort_by_key(|item| item.from);
        items
    }

    /// Times in which identities were free: until before the first that took one.
    fn free(&self) -> Vec<Free> {
        let mut carried: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
        for event in self.events("Carried") {
            let [identity, before, _] = event.values;
            carried
                .entry(identity)
                .or_default()
                .push((event.order, before));
        }
        carried.values_mut().for_each(|list| list.sort_unstable());
        let mut free = Vec::new();
        for carrier in &self.carriers {
            let mut about = 0;
            for event in &carrier.events {
                let [identity, region, number] = event.values;
                match event.kind.as_str() {
                    "Frees" => about = event.order,
                    "Free" => {
                        let list = carried.get(&identity).map_or(&[][..], Vec::as_slice);
                        let next = list.partition_point(|(order, _)| *order < about);
                        let until = list.get(next).map_or(u64::MAX, |(_, before)| *before);
                        let from = event.order;
                        free.push(Free {
                            region,
                            number,
                            from,
                            until,
                        });
                    }
                    _ => {}
                }
            }
        }
        free
    }

    /// The name of a function: that in its file, where the program tells one.
    pub(crate) fn function(&self, address: u64) -> &str {
        self.functions.get(&address).map_or("?", String::as_str)
    }

    /// The states of each carrier that did anything.
    pub(crate) fn spans(&self) -> Vec<(String, Vec<Span>)> {
        let carriers = self.carriers.iter().filter(|it| !it.events.is_empty());
        let row = |carrier: &Carrier| {
            let kind = if carrier.is_pool { "pool" } else { "program" };
            let name = format!("carrier {} ({kind})", carrier.number);
            (name, self.states(&carrier.events))
        };
        carriers.map(row).collect()
    }

    fn states(&self, events: &[Event]) -> Vec<Span> {
        let mut spans: Vec<Span> = Vec::new();
        let mut now = None;
        for event in events {
            let next = match event.kind.as_str() {
                "Runs" => State::Runs(event.values[0], event.values[1], event.values[2]),
                "Asleep" => State::Sleeps,
                "Looked" | "Hub" | "Woken" => State::Looks,
                _ => continue,
            };
            let at = self.nanoseconds(event.time);
            match now {
                Some((_, state)) if state == next => continue,
                Some((since, state)) => spans.push((since, at, state)),
                None => {}
            }
            now = Some((at, next));
        }
        let end = events
            .last()
            .map_or(0, |event| self.nanoseconds(event.time));
        spans.extend(now.map(|(since, state)| (since, end, state)));
        spans.retain(|(since, until, _)| since < until);
        spans
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "cycles of a run, drawn as lengths"
    )]
    fn nanoseconds(&self, cycles: u64) -> u64 {
        (cycles as f64 / self.rate.max(f64::MIN_POSITIVE)) as u64
    }

    /// Holds the record against the promise.
    pub(crate) fn check(&self) -> Findings {
        let (items, free) = (self.waiting(), self.free());
        let mut findings = Findings {
            items: items.len(),
            ..Findings::default()
        };
        let could = |item: &Waiting, from: u64, until: u64| {
            free.iter().any(|free| {
                let fits = free.region == item.region && free.number < item.members;
                fits && free.from < from && free.until > until
            })
        };
        for carrier in &self.carriers {
            let mut before: Option<&Event> = None;
            let mut asleep = 0;
            for event in &carrier.events {
                match event.kind.as_str() {
                    "Looked" => {
                        findings.looks += 1;
                        let region = event.values[1];
                        if let Some(first) = before.filter(|first| first.values[1] == region) {
                            let ends = (first.values[0], event.order);
                            findings.missed(carrier, &items, region, ends, &could);
                        }
                        before = Some(event);
                        continue;
                    }
                    "Asleep" => asleep = event.order,
                    "Woken" => {
                        findings.sleeps += 1;
                        findings.slept(carrier, &items, (asleep, event.values[0]), &could);
                    }
                    _ => {}
                }
                before = None;
            }
        }
        findings
    }
}

impl Findings {
    /// Two looks in a row, from one order to another.
    fn missed(
        &mut self,
        carrier: &Carrier,
        items: &[Waiting],
        region: u64,
        (from, until): (u64, u64),
        could: &impl Fn(&Waiting, u64, u64) -> bool,
    ) {
        let before = items.partition_point(|item| item.from < from);
        // The threads of a program carry members of their own regions only.
        let all = region == 0 && carrier.is_pool;
        let missed = items[..before].iter().rev().take(LATEST).find(|item| {
            let fits = item.region == region || (all && could(item, from, until));
            fits && item.until > until
        });
        if let Some(item) = missed {
            self.idle.push(format!(
                "carrier {} looked twice, {from} to {until}, while an item waited from {} to {}",
                carrier.number, item.from, item.until
            ));
        }
    }

    /// A sleep, from one order to another.
    fn slept(
        &mut self,
        carrier: &Carrier,
        items: &[Waiting],
        (from, until): (u64, u64),
        could: &impl Fn(&Waiting, u64, u64) -> bool,
    ) {
        let first = items.partition_point(|item| item.from <= from);
        let here = items[first..].iter().take_while(|item| item.from < until);
        for item in here.filter(|item| carrier.is_pool && item.woken == 0) {
            let over = item.announced < until && item.until > item.announced;
            if over && could(item, item.from, item.announced) {
                self.idle.push(format!(
                    "carrier {} slept from {from} to {until}, and nobody was woken for the item \
                     of {}",
                    carrier.number, item.from
                ));
            }
        }
    }
}

/// Unstarted items at a time at most, with room for those that were taken between: older ones are
/// looked at no more.
const LATEST: usize = 4_096;
