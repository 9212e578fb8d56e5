//! From a path to a description: files that are missing, too large, or no text.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::description::{Description, parse};
use crate::diagnostic::Diagnostic;
use crate::nearest::nearest;
use crate::source::Source;

/// Largest file that is read, in bytes: enough for the most tasks of a system, at 600 bytes each.
pub const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Why there is no description: the file cannot be read, is not UTF-8, or has mistakes.
#[derive(Debug)]
pub struct LoadError(pub(crate) Vec<Diagnostic>);

impl LoadError {
    /// The mistakes, whatever their kind, at least one; a file that cannot be read has no line.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.0
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.diagnostics().iter().enumerate() {
            if index > 0 {
                f.write_str("\n\n")?;
            }
            write!(f, "{diagnostic}")?;
        }
        Ok(())
    }
}

impl std::error::Error for LoadError {}

/// Reads a system file.
///
/// # Errors
///
/// The file cannot be read, is larger than [`MAX_FILE_BYTES`], is not UTF-8, or has mistakes.
pub fn load(path: impl AsRef<Path>) -> Result<Description, LoadError> {
    let path = path.as_ref();
    let text = text_of(path)?;
    parse(&text, &path.display().to_string()).map_err(LoadError)
}

/// The text of a file.
pub(crate) fn text_of(path: &Path) -> Result<String, LoadError> {
    let origin = path.display().to_string();
    let bytes = read(path).map_err(|error| LoadError(vec![unreadable(path, &origin, &error)]))?;
    String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        LoadError(vec![not_utf8(&origin, offset, error.as_bytes())])
    })
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more than allowed tells a file that is too large, also where it has no length.
    File::open(path)?
        .take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MAX_FILE_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "larger than 64 MiB",
        ));
    }
    Ok(bytes)
}

fn unreadable(path: &Path, origin: &str, error: &io::Error) -> Diagnostic {
    let (message, help) = match error.kind() {
        io::ErrorKind::NotFound => {
            let help = match similar_file(path) {
                Some(name) => format!("did you mean `{name}`?"),
                None => "check the path; it is relative to the current folder".into(),
            };
            ("there is no such file".into(), help)
        }
        io::ErrorKind::PermissionDenied => (
            "this file may not be read".into(),
            "check its permissions".into(),
        ),
        _ => (
            format!("cannot read this file: {error}"),
            "name a system file (TOML)".into(),
        ),
    };
    Diagnostic::of_file(origin, message, help)
}

/// A file beside the missing one whose name is nearly the same.
fn similar_file(path: &Path) -> Option<String> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let entries = std::fs::read_dir(folder.unwrap_or(Path::new("."))).ok()?;
    let names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    let name = nearest(
        path.file_name()?.to_str()?,
        names.iter().map(String::as_str),
    )?;
    Some(
        folder
            .map_or(Path::new(name).into(), |folder| folder.join(name))
            .display()
            .to_string(),
    )
}

fn not_utf8(origin: &str, offset: usize, bytes: &[u8]) -> Diagnostic {
    let text = String::from_utf8_lossy(bytes);
    let source = Source::new(&text, origin);
    // The valid bytes before the offset are the same in the lossy text.
    let wrong = bytes
        .get(offset)
        .map_or(String::new(), |byte| format!("0x{byte:02x}"));
    let mut diagnostic = source.diagnostic(
        &(offset..offset + char::REPLACEMENT_CHARACTER.len_utf8()),
        format!("byte {offset} ({wrong}) is not UTF-8"),
        "save the file as UTF-8".into(),
    );
    diagnostic.text = wrong;
    diagnostic
}
