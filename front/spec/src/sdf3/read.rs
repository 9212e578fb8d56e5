//! From the XML of SDF3 to a system.

use std::collections::BTreeMap;
use std::ops::Range;

use punctual_model::{
    Actor, ActorId, Cpu, CpuId, Fault, Fifo, Graph, Place, PolicyKind, System, Tile, Work,
};
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use super::{ONCE, keeps_apart};
use crate::diagnostic::Diagnostic;
use crate::source::Source;

/// A mistake: its place, its words, and its mending.
type Mistake = (Range<usize>, String, String);

/// Reads a graph in the XML of SDF3 as a system of its own: every actor alone on a CPU. `origin`
/// names the text in messages. O(n log n) in its length; never panics.
///
/// # Errors
///
/// The first mistake of the text, or those that make the graph meaningless.
pub fn read_sdf3(text: &str, origin: &str) -> Result<System, Vec<Diagnostic>> {
    let source = Source::new(text, origin);
    let told = |(range, message, help): Mistake| source.diagnostic(&range, message, help);
    let mut file = File::default();
    file.read(text).map_err(|mistake| vec![told(mistake)])?;
    let (system, places) = file.finish().map_err(|mistake| vec![told(mistake)])?;
    let Err(errors) = system.validate() else {
        return Ok(system);
    };
    let errors = errors.into_iter().map(|error| {
        let range = places.of(&error.fault);
        source.diagnostic(&range, error.message, error.help)
    });
    Err(errors.collect())
}

/// An element, with its place.
struct Element {
    range: Range<usize>,
    name: String,
    attributes: BTreeMap<String, String>,
}

/// An actor as it is read.
#[derive(Default)]
struct RawActor {
    name: String,
    range: Range<usize>,
    /// Of each port: whether tokens go out of it, and its rates.
    ports: BTreeMap<String, (bool, Vec<u32>)>,
    times: Option<Vec<u64>>,
    /// The times are those of the default processor.
    is_default: bool,
}

/// A channel as it is read.
struct RawChannel {
    name: String,
    range: Range<usize>,
    from: (String, String),
    to: (String, String),
    initial: u32,
    capacity: Option<u32>,
    token_size: u32,
}

/// The parts of a file so far.
#[derive(Default)]
struct File {
    name: String,
    has_graph: bool,
    actors: Vec<RawActor>,
    channels: Vec<RawChannel>,
    actor_named: BTreeMap<String, usize>,
    channel_named: BTreeMap<String, usize>,
    /// The actor or channel whose properties are being read.
    about_actor: Option<usize>,
    about_channel: Option<usize>,
    in_default: bool,
}

/// The places of the parts.
struct Places {
    actors: Vec<Range<usize>>,
    fifos: Vec<Range<usize>>,
}

impl Places {
    fn of(&self, fault: &Fault) -> Range<usize> {
        let range = match fault {
            Fault::Actor(_, actor, _) => self.actors.get(actor.index()),
            Fault::Fifo(_, fifo, _) => self.fifos.get(*fifo),
            _ => None,
        };
        range.cloned().unwrap_or(0..0)
    }
}

impl File {
    fn read(&mut self, text: &str) -> Result<(), Mistake> {
        let mut reader = Reader::from_str(text);
        let position = |reader: &Reader<&[u8]>| {
            usize::try_from(reader.buffer_position())
                .unwrap_or(usize::MAX)
                .min(text.len())
        };
        loop {
            let begin = position(&reader);
            let event = reader.read_event();
            let range = begin..position(&reader);
            match event {
                Ok(Event::Start(start)) => self.element(&element(&start, range)?)?,
                Ok(Event::Empty(start)) => {
                    let element = element(&start, range)?;
                    self.element(&element)?;
                }
                Ok(Event::Eof) => return Ok(()),
                Ok(_) => {}
                Err(error) => {
                    let help = "repair the XML, or export it again from the tool that made it";
                    return Err((range, format!("this is not XML: {error}"), help.into()));
                }
            }
        }
    }

    fn element(&mut self, element: &Element) -> Result<(), Mistake> {
        match element.name.as_str() {
            "sdf" | "csdf" => {
                if std::mem::replace(&mut self.has_graph, true) {
                    let help = "keep one graph in a file";
                    return Err(element.mistake("a second graph in one file", help));
                }
                self.name = element.text("name")?.into();
            }
            "actor" => self.actor(element)?,
            "port" => self.port(element)?,
            "channel" => self.channel(element)?,
            "actorProperties" => {
                let known = self.actor_named.get(element.text("actor")?);
                let unknown = || element.dangling("actor");
                self.about_actor = Some(*known.ok_or_else(unknown)?);
                self.about_channel = None;
            }
            "channelProperties" => {
                let known = self.channel_named.get(element.text("channel")?);
                let unknown = || element.dangling("channel");
                self.about_channel = Some(*known.ok_or_else(unknown)?);
                self.about_actor = None;
            }
            "processor" => {
                let default = element.attributes.get("default");
                self.in_default = default.is_some_and(|value| value == "true");
            }
            "executionTime" => {
                let times = element.numbers("time")?;
                let actor = self
                    .about_actor
                    .and_then(|index| self.actors.get_mut(index));
                if let Some(actor) = actor
                    && (actor.times.is_none() || (self.in_default && !actor.is_default))
                {
                    (actor.times, actor.is_default) = (Some(times), self.in_default);
                }
            }
            "bufferSize" | "tokenSize" => {
                let Some(channel) = self
                    .about_channel
                    .and_then(|index| self.channels.get_mut(index))
                else {
                    return Ok(());
                };
                // Other kinds of sizes than `sz` have no meaning here.
                if element.attributes.contains_key("sz") {
                    match element.name.as_str() {
                        "bufferSize" => channel.capacity = Some(element.number("sz")?),
                        _ => channel.token_size = element.bytes("sz")?,
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn actor(&mut self, element: &Element) -> Result<(), Mistake> {
        let name = element.text("name")?.to_string();
        self.actor_named.insert(name.clone(), self.actors.len());
        self.actors.push(RawActor {
            name,
            range: element.range.clone(),
            ..RawActor::default()
        });
        Ok(())
    }

    fn port(&mut self, element: &Element) -> Result<(), Mistake> {
        let Some(actor) = self.actors.last_mut() else {
            return Err(element.mistake("a port outside of an actor", "put it into its actor"));
        };
        let goes_out = match element.text("type")? {
            "out" => true,
            "in" => false,
            _ => return Err(element.mistake("a port is `in` or `out`", "say which it is")),
        };
        let rates = element.numbers("rate")?;
        let narrow = rates.into_iter().map(|rate| u32::try_from(rate).ok());
        let rates: Option<Vec<u32>> = narrow.collect();
        let rates = rates
            .ok_or_else(|| element.mistake("a rate above 32 bits", "count in larger tokens"))?;
        actor
            .ports
            .insert(element.text("name")?.into(), (goes_out, rates));
        Ok(())
    }

    fn channel(&mut self, element: &Element) -> Result<(), Mistake> {
        let text = |key| element.text(key).map(str::to_string);
        let channel = RawChannel {
            name: text("name")?,
            range: element.range.clone(),
            from: (text("srcActor")?, text("srcPort")?),
            to: (text("dstActor")?, text("dstPort")?),
            initial: match element.attributes.contains_key("initialTokens") {
                true => element.number("initialTokens")?,
                false => 0,
            },
            capacity: None,
            token_size: 0,
        };
        self.channel_named
            .insert(channel.name.clone(), self.channels.len());
        self.channels.push(channel);
        Ok(())
    }

    /// The actor of an end of a channel, and its rates there.
    fn end(&self, channel: &RawChannel, out: bool) -> Result<(ActorId, Vec<u32>), Mistake> {
        let (actor, port) = if out { &channel.from } else { &channel.to };
        let index = self.actor_named.get(actor);
        let found =
            index.and_then(|&index| Some((index, self.actors.get(index)?.ports.get(port)?)));
        let help = "name a port of an actor of this graph";
        let Some((index, (goes_out, rates))) = found else {
            let message = format!(
                "channel `{}` ends at `{actor}`, port `{port}`, which is not there",
                channel.name
            );
            return Err((channel.range.clone(), message, help.into()));
        };
        if *goes_out != out {
            let message = format!(
                "channel `{}` uses port `{port}` of `{actor}` the wrong way",
                channel.name
            );
            return Err((channel.range.clone(), message, help.into()));
        }
        Ok((
            ActorId(u32::try_from(index).unwrap_or(u32::MAX)),
            rates.clone(),
        ))
    }

    fn finish(self) -> Result<(System, Places), Mistake> {
        if !self.has_graph {
            let help = "name a file with <sdf> or <csdf>";
            return Err((0..0, "there is no graph in this file".into(), help.into()));
        }
        let mut system = System::default();
        let mut graph = Graph::new(self.name.clone());
        let mut fifos = Vec::new();
        for channel in &self.channels {
            let (from, produce) = self.end(channel, true)?;
            let (to, consume) = self.end(channel, false)?;
            let fifo = Fifo {
                name: channel.name.clone(),
                from,
                to,
                produce,
                consume,
                initial: channel.initial,
                capacity: channel.capacity,
                token_size: channel.token_size,
                place: Place::default(),
            };
            if !is_implied(&fifo, &channel.from.0) {
                graph.fifos.push(fifo);
                fifos.push(channel.range.clone());
            }
        }
        for (index, actor) in self.actors.iter().enumerate() {
            let Some(times) = &actor.times else {
                let message = format!("actor `{}` has no execution time", actor.name);
                let help = "give it an <executionTime> in its <actorProperties>";
                return Err((actor.range.clone(), message, help.into()));
            };
            let cpu = CpuId(u16::try_from(index).unwrap_or(u16::MAX));
            system.cpus.push(Cpu {
                name: actor.name.clone(),
                host: None,
                policy: PolicyKind::Fifo,
            });
            graph.actors.push(Actor {
                name: actor.name.clone(),
                tile: Tile::cpu(cpu),
                wcet: times.iter().map(|&time| Work::from_ns(time)).collect(),
                work: None,
                varies: false,
                reads_shm: 0,
                writes_shm: 0,
                times: None,
            });
        }
        system.graphs.push(graph);
        let places = Places {
            actors: self.actors.into_iter().map(|actor| actor.range).collect(),
            fifos,
        };
        Ok((system, places))
    }
}

/// Whether a channel says what every actor of ours implies, and nothing more.
fn is_implied(fifo: &Fifo, actor: &str) -> bool {
    let name = fifo.name.strip_prefix(ONCE);
    let rest = name.and_then(|name| name.strip_prefix(actor));
    let is_named = rest.is_some_and(|rest| rest.bytes().all(|byte| byte == b'-'));
    is_named && keeps_apart(fifo) && fifo.capacity.is_none() && fifo.token_size == 0
}

/// The element of an event, with its attributes read.
fn element(start: &BytesStart<'_>, range: Range<usize>) -> Result<Element, Mistake> {
    let mut attributes = BTreeMap::new();
    for attribute in start.attributes() {
        let value = attribute
            .map_err(|error| error.to_string())
            .and_then(|attribute| {
                let value = attribute.normalized_value(XmlVersion::Implicit1_0);
                let value = value.map_err(|error| error.to_string())?;
                Ok((attribute.key.0.to_string(), value.into_owned()))
            });
        match value {
            Ok((key, value)) => attributes.insert(key, value),
            Err(error) => {
                let message = format!("an attribute cannot be read: {error}");
                return Err((range, message, "repair the XML".into()));
            }
        };
    }
    Ok(Element {
        name: start.name().0.to_string(),
        attributes,
        range,
    })
}

impl Element {
    fn mistake(&self, message: &str, help: &str) -> Mistake {
        (self.range.clone(), message.into(), help.into())
    }

    fn dangling(&self, kind: &str) -> Mistake {
        let name = self.attributes.get(kind).map_or("", String::as_str);
        let message = format!("properties of {kind} `{name}`, which is not there");
        self.mistake(&message, "name one that stands before its properties")
    }

    fn text(&self, key: &str) -> Result<&str, Mistake> {
        let value = self.attributes.get(key).map(String::as_str);
        let absent = || {
            let message = format!("<{}> needs the attribute `{key}`", self.name);
            self.mistake(&message, "add it")
        };
        value.ok_or_else(absent)
    }

    fn number(&self, key: &str) -> Result<u32, Mistake> {
        let text = self.text(key)?;
        let bad = |_| {
            let message = format!("`{key}` is `{text}`, not a whole number of 32 bits");
            self.mistake(&message, "write digits alone")
        };
        text.trim().parse().map_err(bad)
    }

    /// Bits as whole bytes.
    fn bytes(&self, key: &str) -> Result<u32, Mistake> {
        let bits = self.numbers(key)?;
        let bytes = bits.first().map_or(0, |bits| bits.div_ceil(8));
        u32::try_from(bytes).map_err(|_| self.mistake("a token above 4 GiB", "make it smaller"))
    }

    /// Numbers with commas between: one for each phase.
    fn numbers(&self, key: &str) -> Result<Vec<u64>, Mistake> {
        let text = self.text(key)?;
        let numbers: Result<Vec<u64>, _> = text.split(',').map(|one| one.trim().parse()).collect();
        numbers.map_err(|_| {
            let message = format!("`{key}` is `{text}`, not whole numbers with commas between");
            self.mistake(&message, "write one number, or one for each phase")
        })
    }
}
