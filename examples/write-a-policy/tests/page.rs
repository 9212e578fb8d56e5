//! The page and the program say the same.

use std::fs;
use std::path::PathBuf;

use punctual_conform::{Claims, Options, Order, Property, Ties, check};
use punctual_kern::Policy;
use write_a_policy::{Turns, first, second};

const PAGE: &str = "../../doc/guide/write-a-policy.md";

/// A fenced block of the page.
struct Block {
    line: usize,
    language: String,
    /// What the comment in the line above says.
    remark: String,
    text: String,
}

fn read(path: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn blocks() -> Vec<Block> {
    let page = read(PAGE);
    let lines: Vec<&str> = page.lines().collect();
    let mut blocks = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        if let Some(language) = lines[at].strip_prefix("```") {
            let end = (at + 1..lines.len()).find(|end| lines[*end] == "```");
            let end = end.expect("a fence that closes");
            blocks.push(Block {
                line: at + 1,
                language: language.to_owned(),
                remark: lines[at - 1].to_owned(),
                text: lines[at + 1..end].join("\n"),
            });
            at = end;
        }
        at += 1;
    }
    blocks
}

#[test]
fn every_piece_of_code_on_the_page_stands_in_the_program() {
    let files = [
        "src/first.rs",
        "src/second.rs",
        "src/turns.rs",
        "tests/conforms.rs",
        "tests/in_a_shard.rs",
    ];
    let sources: Vec<String> = files.map(read).into();
    let rust: Vec<Block> = blocks()
        .into_iter()
        .filter(|b| b.language == "rust")
        .collect();
    assert!(rust.len() >= 6, "only {} blocks of code", rust.len());
    for block in rust {
        let stands = |source: &String| source.contains(&block.text);
        assert!(sources.iter().any(stands), "line {} is nowhere", block.line);
    }
    let whole = read("src/turns.rs");
    assert!(
        blocks().iter().any(|block| block.text == whole.trim_end()),
        "the whole policy is on the page"
    );
}

/// What the kit says of a policy.
fn said<P: Policy + 'static>(make: impl Fn(usize) -> P) -> String {
    let claims = Claims {
        order: Order::FixedPriority,
        ties: Ties::Turns,
        ..Claims::ANY_ORDER
    };
    match check(&claims, make, &Options::default()) {
        Ok(report) => report.to_string(),
        Err(broken) => broken.to_string(),
    }
}

#[test]
fn every_finding_on_the_page_is_what_the_kit_says() {
    let mut seen = 0;
    for block in blocks() {
        let said = match block.remark.as_str() {
            "<!-- finding: first::Turns -->" => said(first::Turns::new),
            "<!-- finding: second::Turns -->" => said(second::Turns::new),
            "<!-- finding: Turns -->" => said(Turns::new),
            _ => continue,
        };
        seen += 1;
        match block.text.strip_suffix("\n...") {
            Some(beginning) => assert!(said.starts_with(beginning), "{said}"),
            None => assert_eq!(said, block.text, "line {}", block.line),
        }
    }
    assert_eq!(seen, 3);
}

#[test]
fn every_property_is_on_the_page() {
    let page = read(PAGE);
    for property in Property::ALL {
        let row = page.lines().find(|line| {
            line.starts_with(&format!("| `{property}` |")) && line.contains(property.promise())
        });
        assert!(row.is_some(), "{property}");
    }
}
