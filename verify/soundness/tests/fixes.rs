//! Fixes put into the text of the file: the file is admitted then, whatever it has.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test reports and may panic"
)]

use punctual_analysis::{Fix, admit, funding, is_admitted};
use punctual_generate::Feature;
use punctual_soundness::{Judge, analysis};

/// The text with the new value of one parameter: `task.a.wcet`, `scheduler.s.slots[1].length`.
fn with(text: &str, fix: &Fix) -> String {
    let (section, name, path) = match fix.parameter.split('.').collect::<Vec<_>>()[..] {
        [section, name, ..] if name.contains('[') => (section.into(), name, 1),
        [section, name, ..] => (format!("{section}.{name}"), "", 2),
        _ => panic!("{}", fix.parameter),
    };
    let mut keys: Vec<&str> = fix.parameter.split('.').skip(path).collect();
    if !name.is_empty() {
        assert_eq!(keys[0], name);
    }
    let last = keys.pop().unwrap();
    let header = text.find(&format!("[{section}]\n"));
    let mut at = header.unwrap_or_else(|| panic!("{fix}\n{text}"));
    let mut count = 0;
    for key in keys {
        let key = key.trim_end_matches(']');
        let (key, index) = key.split_once('[').unwrap_or((key, "0"));
        at += text[at..].find(&format!("\n{key} = ")).unwrap();
        count = index.parse().unwrap();
    }
    let key = format!("{last} = \"");
    let next = text[at + 1..]
        .find("\n[")
        .map_or(text.len(), |next| at + 1 + next);
    if !text[at..next].contains(&key) {
        // A deadline that follows the period.
        assert_eq!(last, "deadline");
        let line = text[at..].find('\n').unwrap() + at + 1;
        return format!(
            "{}{key}{}\"\n{}",
            &text[..line],
            fix.to.readable(),
            &text[line..]
        );
    }
    for _ in 0..=count {
        at += text[at..].find(&key).unwrap() + key.len();
    }
    let end = at + text[at..].find('"').unwrap();
    assert_eq!(text[at..end], fix.from.readable().to_string(), "{fix}");
    format!("{}{}{}", &text[..at], fix.to.readable(), &text[end..])
}

/// Whether the text is admitted with the fix in it; else what is wrong.
fn mends(text: &str, fix: &Fix) -> Result<(), String> {
    let mended = with(text, fix);
    let mended = punctual_spec::parse(&mended, "mended.toml")
        .map_err(|found| format!("{fix}: a mistake of the file: {found:?}"))?;
    match is_admitted(&mended.system) {
        Ok(true) => Ok(()),
        other => Err(format!("{fix}: {other:?}")),
    }
}

/// `FIXES` and `FIXES_SEED` in the environment ask for more systems, and for other ones.
#[test]
fn every_fix_mends_the_file_that_it_is_put_into() {
    let asked = |name| std::env::var(name).map(|number| number.parse().unwrap());
    let judge = Judge {
        seed: asked("FIXES_SEED").unwrap_or(5),
        features: Feature::ALL.to_vec(),
        analysis,
        fund: funding,
    };
    let systems = asked("FIXES").unwrap_or(600);
    let (mut fixes, mut refused, mut wrong) = (0, 0, 0);
    for index in 0..systems {
        let text = punctual_spec::write(&judge.draw(index).system);
        let system = punctual_spec::parse(&text, "drawn.toml").unwrap().system;
        let Ok(verdict) = admit(&system) else {
            continue;
        };
        refused += u64::from(!verdict.admitted);
        let refusals = verdict.refusals.iter();
        for fix in refusals.filter_map(|refusal| refusal.fix.as_ref()) {
            fixes += 1;
            if let Err(why) = mends(&text, fix) {
                wrong += 1;
                println!("{index}: {why}\n{text}");
            }
        }
    }
    let seed = judge.seed;
    println!("seed {seed}: {systems} systems, {refused} refused, {fixes} fixes, {wrong} wrong");
    assert_eq!(wrong, 0);
    assert!(fixes * 3 > refused, "{fixes} fixes of {refused} refused");
}

/// Neither job can be shorter than its section, so only a longer period is left.
#[test]
fn a_longer_period_takes_a_deadline_with_it_that_is_not_written_and_no_other() {
    let task = |name: &str, period: &str, wcet: &str, deadline: &str| {
        format!(
            "[task.{name}]\nclass = \"periodic\"\non = \"cpu.0\"\nperiod = \"{period}\"\n{deadline}\
             wcet = \"{wcet}\"\nnon-preemptive = \"{wcet}\"\n"
        )
    };
    let found = |deadline: &str| {
        let (a, b) = (
            task("a", "10ms", "8ms", deadline),
            task("b", "20ms", "5ms", ""),
        );
        let text = format!("[system]\ncpus = [0]\n[cpu.0]\npolicy = \"edf\"\n{a}{b}");
        let system = punctual_spec::parse(&text, "two.toml").unwrap().system;
        let verdict = admit(&system).unwrap();
        let fix = verdict
            .refusals
            .iter()
            .find_map(|refusal| refusal.fix.clone());
        let mended = |fix: &Fix| punctual_spec::parse(&with(&text, fix), "mended.toml").unwrap();
        let mends = |fix: &Fix| is_admitted(&mended(fix).system) == Ok(true);
        (fix.as_ref().is_some_and(mends), fix)
    };
    let (mends, fix) = found("");
    assert!(mends && fix.is_some_and(|fix| fix.parameter.ends_with(".period")));
    assert!(matches!(
        found("deadline = \"10ms\"\n"),
        (_, None) | (true, _)
    ));
}
