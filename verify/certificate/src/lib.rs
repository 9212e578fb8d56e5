//! Certificates: a verdict with every number that proves it, and a checker that believes none
//!
//! A [`Certificate`] holds a whole system and all numbers on the way to its verdict. These are the
//! cost of every job, the jobs of each busy window with their completions, the instants of the
//! processor-demand test, and the bounds. [`verify`] derives each of them again from the system, by
//! its own small implementation of the published tests, and compares. So no number can be changed
//! without being noticed: one of the system breaks the digest (and the file, when it is at hand),
//! one of the claims is not what follows. The first wrong number is named.
//!
//! It shares no code with the analysis, and knows none of the workspace's types. Its reader is
//! meant to read it whole: `node` (entities and their costs), `together`, `supply`, `locks`,
//! `waits` (precedence), `window` (busy windows and demand), `chain`, `gang`, `derive`. It refuses
//! to certify a rule that it cannot check, and says so; the table of note 0009 lists all of them.
//!
//! Design note 0009 compares it with certificates for proof assistants.
#![forbid(unsafe_code)]

mod chain;
mod claims;
mod derive;
mod gang;
pub mod graph;
mod locks;
mod node;
pub mod plan;
mod supply;
pub mod system;
mod together;
mod waits;
mod window;

use std::fmt;

use serde_json::Value;

pub use claims::{
    BarrierClaim, Certificate, Claims, DemandClaim, EntityClaim, FORMAT, GangClaim, JobClaim,
    LateClaim, LedClaim, NodeClaim, Point, RequiredClaim, SkewClaim, WaitClaim,
};
pub use graph::{GraphCertificate, read_graphs, verify_graphs};
pub use plan::{PLAN_FORMAT, PlanCertificate, read_plan, verify_plan};
use system::System;

/// Why there is no certificate: a rule that is not certified, or a claim that does not hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Why(String);

impl Why {
    pub(crate) fn new(what: impl Into<String>) -> Why {
        Why(what.into())
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not certified: {}", self.0)
    }
}

impl std::error::Error for Why {}

/// The fault of a certificate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wrong {
    /// It is no certificate of this format.
    Form(String),
    /// Its system is not the one that its digest is of.
    Digest {
        /// The claim of the certificate.
        claimed: String,
        /// The value in its system.
        found: String,
    },
    /// A number that does not follow.
    Number {
        /// Its place, such as `claims.admitted.nodes[0].entities[1].bound`.
        place: String,
        /// The claim of the certificate.
        claimed: String,
        /// The value that follows from the system.
        follows: String,
    },
    /// Its verdict does not follow.
    Verdict(Why),
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::Form(what) => write!(f, "no certificate: {what}"),
            Wrong::Digest { claimed, found } => write!(
                f,
                "the system was changed: its digest is {found}, the certificate says {claimed}"
            ),
            Wrong::Number {
                place,
                claimed,
                follows,
            } => write!(
                f,
                "{place} is {claimed}, but {follows} follows from the system"
            ),
            Wrong::Verdict(why) => write!(f, "the verdict does not follow: {why}"),
        }
    }
}

impl std::error::Error for Wrong {}

/// The certificate that `system` is admitted.
///
/// # Errors
///
/// [`Why`] there is none.
pub fn certify_admitted(system: &System) -> Result<Certificate, Why> {
    Ok(with(system, derive::admitted(system)?))
}

/// The certificate that more is due on a CPU by `at` than it can supply.
///
/// # Errors
///
/// [`Why`] there is none.
pub fn certify_overdue(system: &System, cpu: &str, at: u64) -> Result<Certificate, Why> {
    Ok(with(
        system,
        Claims::Overdue(derive::overdue(system, cpu, at)?),
    ))
}

/// The certificate that the job of a task that is released at `offset` can be late, or the budget
/// of `scheduler.NAME`.
///
/// # Errors
///
/// [`Why`] there is none.
pub fn certify_late(system: &System, task: &str, offset: u64) -> Result<Certificate, Why> {
    Ok(with(
        system,
        Claims::Late(derive::late(system, task, offset)?),
    ))
}

fn with(system: &System, claims: Claims) -> Certificate {
    Certificate {
        format: FORMAT,
        digest: digest(system),
        system: system.clone(),
        claims,
    }
}

/// Reads a certificate strictly: unknown keys, missing ones and other formats are refused.
///
/// # Errors
///
/// [`Wrong::Form`].
pub fn read(text: &str) -> Result<Certificate, Wrong> {
    let certificate: Certificate =
        serde_json::from_str(text).map_err(|error| Wrong::Form(error.to_string()))?;
    if certificate.format != FORMAT {
        return Err(Wrong::Form(format!(
            "its format is {}, this checker reads {FORMAT}",
            certificate.format
        )));
    }
    Ok(certificate)
}

/// Derives every number of the certificate again and compares.
///
/// # Errors
///
/// [`Wrong`]: the first thing that is.
pub fn verify(certificate: &Certificate) -> Result<(), Wrong> {
    let found = digest(&certificate.system);
    if found != certificate.digest {
        let claimed = certificate.digest.clone();
        return Err(Wrong::Digest { claimed, found });
    }
    let system = &certificate.system;
    let follows = match &certificate.claims {
        Claims::Admitted { .. } => derive::admitted(system),
        Claims::Overdue(claim) => {
            derive::overdue(system, &claim.cpu, claim.at).map(Claims::Overdue)
        }
        Claims::Late(claim) => derive::late(system, &claim.task, claim.offset).map(Claims::Late),
    };
    let follows = follows.map_err(Wrong::Verdict)?;
    match difference(
        "claims",
        &as_value(&certificate.claims)?,
        &as_value(&follows)?,
    ) {
        None => Ok(()),
        Some(wrong) => Err(wrong),
    }
}

/// The first place where the system of a certificate differs from another one.
pub fn first_difference(certificate: &Certificate, system: &System) -> Option<Wrong> {
    match (as_value(&certificate.system), as_value(system)) {
        (Ok(claimed), Ok(found)) => difference("system", &claimed, &found),
        (Err(wrong), _) | (_, Err(wrong)) => Some(wrong),
    }
}

fn as_value(value: &impl serde::Serialize) -> Result<Value, Wrong> {
    serde_json::to_value(value).map_err(|error| Wrong::Form(error.to_string()))
}

fn difference(place: &str, claimed: &Value, follows: &Value) -> Option<Wrong> {
    match (claimed, follows) {
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => a
            .iter()
            .find_map(|(key, value)| difference(&format!("{place}.{key}"), value, &b[key])),
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let pairs = a.iter().zip(b).enumerate();
            pairs
                .into_iter()
                .find_map(|(i, (a, b))| difference(&format!("{place}[{i}]"), a, b))
        }
        (Value::Array(a), Value::Array(b)) => Some(Wrong::Number {
            place: format!("the length of {place}"),
            claimed: a.len().to_string(),
            follows: b.len().to_string(),
        }),
        (a, b) if a == b => None,
        (a, b) => Some(Wrong::Number {
            place: place.to_string(),
            claimed: a.to_string(),
            follows: b.to_string(),
        }),
    }
}

/// A digest of the system's JSON (FNV-1a, 64 bits): it notices accidents, not forgers, who may as
/// well write another certificate. Compare with the file to know what a certificate is about.
pub fn digest(system: &System) -> String {
    let text = serde_json::to_string(system).unwrap_or_default();
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}
