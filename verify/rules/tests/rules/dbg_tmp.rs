use crate::random::history;
#[test]
fn dbg() {
    let log = history(36, 0);
    let found = punctual_rules::check(&log);
    for f in &found { println!("{f:?}"); }
    let mut out = Vec::new();
    punctual_trace::text::write(&log, &mut out).unwrap();
    std::fs::write("/tmp/wt/b36.txt", out).unwrap();
}
