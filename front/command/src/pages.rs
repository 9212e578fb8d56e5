//! `punctual pages`: man pages and shell completions, from the very definition of the command line.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory, ValueHint};
use clap_complete::Shell;

use punctual_terminal::ending::{Ended, Ending, Failure};
use punctual_terminal::output;

use crate::Cli;

/// Writes man pages and shell completions
///
/// Everything goes below FOLDER, where systems look for it when that is a `share` folder, and the
/// path of each file is printed. `cargo xtask install` does this.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 written; 3 a file could not be written.\n\n\
    Examples:\n  \
    punctual pages ~/.local/share\n  \
    punctual pages /tmp/pages && man /tmp/pages/man/man1/punctual-check.1"
)]
pub(crate) struct Args {
    /// The folder, such as ~/.local/share
    #[arg(value_hint = ValueHint::DirPath)]
    folder: PathBuf,
}

/// A shell, with the place of its completions below a `share` folder.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions/punctual"),
    (Shell::Zsh, "zsh/site-functions/_punctual"),
    (Shell::Fish, "fish/vendor_completions.d/punctual.fish"),
];

pub(crate) fn execute(args: &Args) -> Ended {
    for (shell, place) in COMPLETIONS {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut Cli::command(), "punctual", &mut text);
        write(&args.folder.join(place), &text)?;
    }
    let mut command = Cli::command();
    command.build();
    let mut all = vec![command.clone()];
    all.extend(
        command
            .get_subcommands()
            .filter(|c| c.get_name() != "help")
            .cloned(),
    );
    for command in all {
        let (name, text) = page(command).map_err(|error| Failure::run(error.to_string()))?;
        write(&args.folder.join("man/man1").join(name), &text)?;
    }
    Ok(Ending::Good)
}

/// The page of a command, and the name of its file.
fn page(command: Command) -> io::Result<(String, Vec<u8>)> {
    let name = match command.get_name() {
        "punctual" => "punctual".to_owned(),
        verb => format!("punctual-{verb}"),
    };
    let man = clap_mangen::Man::new(command.display_name(name.clone()));
    let man = man.title(name.clone()).manual("Punctual");
    let mut text = Vec::new();
    man.render(&mut text)?;
    Ok((format!("{name}.1"), text))
}

fn write(path: &Path, text: &[u8]) -> Result<(), Failure> {
    let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
    folder
        .and_then(|()| fs::write(path, text))
        .map_err(|error| Failure::run(format!("cannot write {}: {error}", path.display())))?;
    output::print(path.display())
}
