//! The guide's page about composing: every snippet is a file, and the mistake reads as shown.

const PAGE: &str = include_str!("../../../../doc/guide/07-composing.md");

/// The fenced blocks of the page with their language and the heading above them.
fn blocks() -> Vec<(&'static str, &'static str, String)> {
    let mut found = Vec::new();
    let mut heading = "";
    let mut open: Option<(&str, String)> = None;
    for line in PAGE.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(language)) => open = Some((language, String::new())),
            (Some((language, text)), Some(_)) => {
                found.push((heading, *language, std::mem::take(text)));
                open = None;
            }
            (Some((_, text)), None) => *text += &format!("{line}\n"),
            (None, None) => heading = line.strip_prefix("## ").unwrap_or(heading),
        }
    }
    found
}

#[test]
fn every_snippet_but_the_mistake_is_a_valid_file() {
    let files: Vec<_> = blocks()
        .into_iter()
        .filter(|(_, language, _)| *language == "toml")
        .collect();
    assert!(files.len() > 6);
    for (heading, _, text) in &files {
        let result = punctual_spec::parse(text, "system.toml");
        let refused = heading.ends_with("is refused");
        assert_eq!(result.is_err(), refused, "{heading}: {result:?}");
    }
}

#[test]
fn the_mistake_reads_as_the_page_shows_it() {
    let shown = blocks();
    let of = |wanted: &str| {
        let mut block = shown.iter().filter(|(heading, language, _)| {
            heading.ends_with("is refused") && *language == wanted
        });
        block.next().expect("a block").2.as_str()
    };
    let mistakes = punctual_spec::parse(of("toml"), "system.toml").expect_err("a mistake");
    let rendered: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    assert_eq!(rendered.join("\n\n") + "\n", of("text"));
}

#[test]
fn the_page_shows_every_kind_of_server_and_every_protocol() {
    let kinds = punctual_model::ServerKind::ALL.map(|kind| kind.name());
    let protocols = punctual_model::Protocol::ALL.map(|protocol| protocol.name());
    for word in kinds.iter().chain(&protocols) {
        assert!(PAGE.contains(&format!("| `{word}` |")), "{word}");
    }
}
