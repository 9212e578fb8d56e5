//! Numbers with units: "2.5ms" and "12.5%", exact or refused.

use punctual_model::{Ns, Share, Span};

/// The reason why a text is not the quantity it should be, and the text to write instead.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Unusable {
    pub(crate) message: String,
    pub(crate) help: String,
}

fn unusable<T>(message: impl Into<String>, help: impl Into<String>) -> Result<T, Unusable> {
    Err(Unusable {
        message: message.into(),
        help: help.into(),
    })
}

/// Names of the units of time, with the digits that a nanosecond stands behind their point.
const UNITS: [(&str, usize); 6] = [
    ("ns", 0),
    ("us", 3),
    ("µs", 3),
    ("μs", 3),
    ("ms", 6),
    ("s", 9),
];

/// The pattern of a duration, for the schema: [`duration`] accepts it, up to overflow.
pub(crate) const DURATION_PATTERN: &str = r"^[0-9]+(\.[0-9]+)?(ns|us|µs|μs|ms|s)$";

/// The pattern of a percentage, for the schema.
pub(crate) const PERCENTAGE_PATTERN: &str = r"^[0-9]+(\.[0-9]+)?%$";

/// Nanoseconds of a text such as "2.5ms". O(length).
///
/// # Errors
///
/// No number, no unit, another unit, finer than a nanosecond, or beyond 64 bits of nanoseconds.
pub(crate) fn duration(text: &str) -> Result<u64, Unusable> {
    if text.starts_with('-') {
        return unusable("a duration cannot be negative", "remove the sign");
    }
    let (number, unit) = split(text);
    if unit.is_empty() && is_number(number) {
        return missing_unit(number);
    }
    if !is_number(number) {
        return unusable(
            "this is not a duration",
            "write a number and a unit, such as \"10ms\" or \"2.5us\"",
        );
    }
    let Some(&(_, digits)) = UNITS.iter().find(|known| known.0 == unit) else {
        return unknown_unit(number, unit);
    };
    match decimal(number, digits) {
        Ok(ns) => Ok(ns),
        Err(Inexact::Finer) => unusable(
            "this is finer than a nanosecond",
            "durations are whole nanoseconds: round it",
        ),
        Err(Inexact::Larger) => too_long(),
    }
}

fn too_long<T>() -> Result<T, Unusable> {
    unusable(
        "this does not fit into 64 bits of nanoseconds",
        "the longest duration is 18446744073.709551615s, 584 years",
    )
}

/// A duration in the notation of system files, for command lines: "2.5ms". There also "5min" and
/// "1h". O(length).
///
/// # Errors
///
/// The mistake and how to mend it, in one line, when the text is none.
pub fn parse_duration(text: &str) -> Result<Span<Ns>, String> {
    // People time a run in minutes: files do not.
    let long = [("min", 60), ("h", 3_600)].into_iter();
    let mut long = long.filter_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)));
    let ns = match long.find(|(number, _)| is_number(number)) {
        Some((number, seconds)) => duration(&format!("{number}s")).and_then(|ns| {
            let ns = ns.checked_mul(seconds);
            ns.map_or_else(too_long, Ok)
        }),
        None if is_number(text) => unusable(
            "a duration needs a unit",
            format!("write \"{text}s\", or another of the units ns, us, ms, min, h"),
        ),
        None => duration(text),
    };
    match ns {
        Ok(ns) => Ok(Span::from_ns(ns)),
        Err(Unusable { message, help }) => Err(format!("{message}: {help}")),
    }
}

/// The mending for a number that has no unit, whether it is written in quotes or not.
pub(crate) fn missing_unit<T>(number: &str) -> Result<T, Unusable> {
    if !is_number(number) {
        return unusable(
            "this is not a duration",
            "write a number and a unit, such as \"10ms\" or \"2.5us\"",
        );
    }
    let shown = if number.len() <= 20 { number } else { "10" };
    unusable(
        "a duration needs a unit",
        format!("write \"{shown}ms\", or another of the units ns, us, ms, s"),
    )
}

fn unknown_unit<T>(number: &str, unit: &str) -> Result<T, Unusable> {
    let seconds = match unit {
        "min" => Some(60),
        "h" => Some(3_600),
        _ => None,
    };
    let whole = number.parse::<u64>().ok();
    if let Some(seconds) = seconds.and_then(|each: u64| whole?.checked_mul(each)) {
        return unusable(
            "this is no unit of time in files",
            format!("write \"{seconds}s\""),
        );
    }
    let meant = match unit.trim().to_ascii_lowercase().as_str() {
        "ns" | "nsec" | "nanoseconds" => "ns",
        "us" | "usec" | "µs" | "microseconds" => "us",
        "ms" | "msec" | "milliseconds" => "ms",
        "s" | "sec" | "second" | "seconds" => "s",
        _ => return unusable("this is no unit of time", "the units are ns, us, ms and s"),
    };
    unusable(
        "this is no unit of time",
        format!("write \"{number}{meant}\""),
    )
}

/// The share of a text such as "12.5%". O(length).
///
/// # Errors
///
/// No number, no percent sign, finer than a ten-thousandth of a percent, or above 100 %.
pub(crate) fn percentage(text: &str) -> Result<Share, Unusable> {
    let (number, unit) = split(text);
    if !is_number(number) || unit.trim() != "%" {
        return unusable(
            "this is not a percentage",
            "write a number and a sign, such as \"99%\"",
        );
    }
    if unit != "%" {
        return unusable("this is not a percentage", format!("write \"{number}%\""));
    }
    match decimal(number, 4) {
        Err(Inexact::Finer) => unusable(
            "this is finer than a ten-thousandth of a percent",
            "shares are whole parts per million: round it",
        ),
        Err(Inexact::Larger) => unusable("this is more than the whole", "write at most \"100%\""),
        Ok(ppm) => match u32::try_from(ppm).ok().and_then(Share::try_from_ppm) {
            Some(share) => Ok(share),
            None => unusable("this is more than the whole", "write at most \"100%\""),
        },
    }
}

/// The leading digits and points, and what follows them.
fn split(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    text.split_at(end)
}

/// Whether this is `digits` or `digits.digits`.
fn is_number(number: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    match number.split_once('.') {
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => digits(number),
    }
}

/// Why a decimal number is no count of its smallest part.
enum Inexact {
    Finer,
    Larger,
}

/// `number` times ten to the power of `places`, exactly.
fn decimal(number: &str, places: usize) -> Result<u64, Inexact> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > places {
        return Err(Inexact::Finer);
    }
    let padding = std::iter::repeat_n(b'0', places - fraction.len());
    let mut value: u64 = 0;
    for digit in whole.bytes().chain(fraction.bytes()).chain(padding) {
        let digit = u64::from(digit.wrapping_sub(b'0'));
        value = value
            .checked_mul(10)
            .and_then(|tenfold| tenfold.checked_add(digit))
            .ok_or(Inexact::Larger)?;
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_exact() {
        for (text, ns) in [
            ("0s", 0),
            ("1ns", 1),
            ("500us", 500_000),
            ("500µs", 500_000),
            ("2.5ms", 2_500_000),
            ("12.437ms", 12_437_000),
            ("1.000000001s", 1_000_000_001),
            ("1.5000000000000s", 1_500_000_000),
            ("007ms", 7_000_000),
            ("18446744073.709551615s", u64::MAX),
        ] {
            assert_eq!(duration(text), Ok(ns), "{text}");
        }
    }

    #[test]
    fn a_command_line_knows_minutes_and_hours_and_a_file_does_not() {
        let ns = |text| parse_duration(text).map(Span::as_ns);
        assert_eq!(ns("1.5h"), Ok(5_400_000_000_000));
        assert_eq!(ns("5min"), Ok(300_000_000_000));
        assert_eq!(ns("2.5ms"), Ok(2_500_000));
        assert!(ns("10").is_err_and(|why| why.contains("write \"10s\"")));
        assert!(ns("min").is_err_and(|why| why.contains("not a duration")));
        assert!(ns("5200000h").is_err_and(|why| why.contains("584 years")));
        assert!(duration("5min").is_err());
    }

    #[test]
    fn what_is_no_exact_duration_is_refused_with_the_reason() {
        for (text, reason) in [
            ("", "not a duration"),
            ("ms", "not a duration"),
            (".5ms", "not a duration"),
            ("5.ms", "not a duration"),
            ("1.2.3ms", "not a duration"),
            ("1e3us", "no unit of time"),
            ("1_000us", "no unit of time"),
            ("10", "needs a unit"),
            ("2.5", "needs a unit"),
            ("10 ms", "no unit of time"),
            ("10min", "no unit of time"),
            ("10MS", "no unit of time"),
            ("-1ms", "negative"),
            ("0.5ns", "finer"),
            ("1.0000000001s", "finer"),
            ("18446744073.709551616s", "64 bits"),
            ("99999999999999999999999ns", "64 bits"),
        ] {
            let error = duration(text).expect_err(text);
            assert!(error.message.contains(reason), "{text}: {}", error.message);
        }
        let help = |text| duration(text).expect_err("no unit").help;
        assert_eq!(help("10 MS"), "write \"10ms\"");
        assert_eq!(
            [help("24h"), help("5min")],
            ["write \"86400s\"", "write \"300s\""]
        );
        assert_eq!(duration("7sec").expect_err("no unit").help, "write \"7s\"");
    }

    #[test]
    fn percentages_are_parts_per_million() {
        for (text, ppm) in [
            ("0%", 0),
            ("99%", 990_000),
            ("12.5%", 125_000),
            ("0.0001%", 1),
        ] {
            assert_eq!(percentage(text).map(Share::ppm), Ok(ppm), "{text}");
        }
        for text in [
            "",
            "%",
            "99",
            "0.00001%",
            "100.0001%",
            "101%",
            "99999999999999999999%",
            "-1%",
        ] {
            assert!(percentage(text).is_err(), "{text}");
        }
        assert_eq!(percentage("9 %").expect_err("a space").help, "write \"9%\"");
    }
}
