//! A Rust file as tokens: what is code and what is comment, string or test.
//!
//! A rule that searched the text would trip over its own explanation. Tokens come from
//! `proc-macro2` (a parser such as `syn` would know more than any rule here asks).

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};

/// The tokens of one file, documentation left out.
pub(crate) struct RustFile {
    tokens: Vec<Token>,
}

/// One token, or one end of a group.
pub(crate) struct Token {
    /// Line of its first character, from 1.
    pub line: usize,
    /// Line of its last character.
    last_line: usize,
    /// Whether it belongs to an item under `#[cfg(test)]`.
    pub in_test: bool,
    /// Its text; `"` stands for any literal.
    pub text: String,
}

impl RustFile {
    /// Splits `text`. Fails when it is not Rust.
    pub(crate) fn parse(text: &str) -> Result<RustFile, String> {
        let stream: TokenStream = text.parse().map_err(|error| format!("not Rust: {error}"))?;
        let mut tokens = Vec::new();
        flatten(stream, false, &mut tokens);
        Ok(RustFile { tokens })
    }

    /// All tokens, in order.
    pub(crate) fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// Lines on which the tokens `pattern` start, one after the other.
    pub(crate) fn find<'a>(&'a self, pattern: &'a [&str]) -> impl Iterator<Item = &'a Token> {
        self.tokens
            .windows(pattern.len())
            .filter_map(move |window| {
                let equal = window
                    .iter()
                    .zip(pattern)
                    .all(|(token, text)| token.text == *text);
                equal.then_some(&window[0])
            })
    }

    /// The names of all functions that are defined.
    pub(crate) fn functions(&self) -> impl Iterator<Item = &str> {
        let pairs = self.tokens.windows(2);
        pairs
            .filter(|pair| pair[0].text == "fn")
            .map(|pair| pair[1].text.as_str())
    }

    /// Lines with code, without blank lines, comments and test modules.
    pub(crate) fn code_lines(&self) -> usize {
        let lines: BTreeSet<usize> = self
            .tokens
            .iter()
            .filter(|token| !token.in_test)
            .flat_map(|token| token.line..=token.last_line)
            .collect();
        lines.len()
    }
}

fn flatten(stream: TokenStream, in_test: bool, tokens: &mut Vec<Token>) {
    let trees: Vec<TokenTree> = stream.into_iter().collect();
    let mut at = 0;
    // The item behind `#[cfg(test)]` reaches to its braces or its semicolon.
    let mut test_item = false;
    while at < trees.len() {
        if let Some((name, argument, length)) = attribute(&trees[at..]) {
            if name == "doc" {
                at += length;
                continue;
            }
            test_item |= name == "cfg" && argument == "(test)";
        }
        push(&trees[at], in_test || test_item, tokens);
        let ends_item = match &trees[at] {
            TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
            TokenTree::Punct(punct) => punct.as_char() == ';',
            _ => false,
        };
        test_item &= !ends_item;
        at += 1;
    }
}

/// The attribute at the start of `trees`: its name, the text of its argument, its length.
fn attribute(trees: &[TokenTree]) -> Option<(String, String, usize)> {
    let TokenTree::Punct(hash) = trees.first()? else {
        return None;
    };
    if hash.as_char() != '#' {
        return None;
    }
    let inner = matches!(trees.get(1), Some(TokenTree::Punct(bang)) if bang.as_char() == '!');
    let length = if inner { 3 } else { 2 };
    let TokenTree::Group(group) = trees.get(length - 1)? else {
        return None;
    };
    let mut content = group.stream().into_iter();
    let name = content.next()?.to_string();
    let argument: String = content.map(|tree| tree.to_string()).collect();
    Some((name, argument, length))
}

fn push(tree: &TokenTree, in_test: bool, tokens: &mut Vec<Token>) {
    let token = |span: Span, text: String| Token {
        line: span.start().line,
        last_line: span.end().line,
        in_test,
        text,
    };
    match tree {
        TokenTree::Ident(ident) => tokens.push(token(ident.span(), ident.to_string())),
        TokenTree::Literal(literal) => tokens.push(token(literal.span(), "\"".to_string())),
        TokenTree::Punct(punct) => tokens.push(token(punct.span(), punct.as_char().to_string())),
        TokenTree::Group(group) => {
            let (open, close) = match group.delimiter() {
                Delimiter::Parenthesis => ("(", ")"),
                Delimiter::Brace => ("{", "}"),
                Delimiter::Bracket => ("[", "]"),
                Delimiter::None => ("", ""),
            };
            tokens.push(token(group.span_open(), open.to_string()));
            flatten(group.stream(), in_test, tokens);
            tokens.push(token(group.span_close(), close.to_string()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "//! A header.\n\nuse a::b; // a remark\n\n/// Documented.\n\
        fn f() -> &'static str {\n    \"two\n    lines\"\n}\n\n#[cfg(test)]\nmod tests {\n    \
        #[test]\n    fn t() {}\n}\n";

    #[test]
    fn comments_blanks_and_tests_are_no_code() {
        let file = RustFile::parse(SAMPLE).expect("tokens");
        // `use`, `fn`, both lines of the string, and the closing brace.
        assert_eq!(file.code_lines(), 5);
    }

    #[test]
    fn items_under_cfg_test_are_marked_and_their_neighbours_are_not() {
        let file = RustFile::parse(
            "#[cfg(test)]\nuse x;\nfn a() {}\n#[cfg(test)]\nfn b() { c() }\nfn d() {}",
        )
        .expect("tokens");
        let test = |name: &str| file.find(&[name]).next().map(|token| token.in_test);
        assert_eq!([test("x"), test("a")], [Some(true), Some(false)]);
        assert_eq!([test("c"), test("d")], [Some(true), Some(false)]);
    }

    #[test]
    fn documentation_and_strings_hold_no_identifiers() {
        let file = RustFile::parse("/// word\nfn f() { g(\"word\"); /* word */ }").expect("tokens");
        assert_eq!(file.find(&["word"]).count(), 0);
        assert_eq!(file.find(&["g", "("]).count(), 1);
    }
}
