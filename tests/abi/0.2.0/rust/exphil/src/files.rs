//! Which replays are meant: files, folders and lists of them; and what became of each.

use crate::{Error, Result, Status};
use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};

type Excludes<'a> = Box<dyn Fn(&Path) -> bool + 'a>;

/// Replays by their names: files, folders with all `.slp` below them, lists of both. Named ones come in their order, those of
/// a list and of a folder by name. Each comes once, whatever symbolic links lead to it; hidden files of folders are not taken.
#[derive(Default)]
pub struct Files<'a> {
    named: Vec<PathBuf>,
    exclude: Option<Excludes<'a>>,
}

impl fmt::Debug for Files<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files").field("named", &self.named).finish_non_exhaustive()
    }
}

/// A file or folder of which nothing was taken.
#[derive(Debug)]
pub struct Refusal {
    /// As it was named or found.
    pub path: PathBuf,
    /// Why.
    pub error: Error,
}

/// What became of many replays, in their order.
#[derive(Debug)]
pub struct Added<T> {
    /// What was added.
    pub taken: Vec<(PathBuf, T)>,
    /// What was not.
    pub refused: Vec<Refusal>,
    /// Left out by [`Files::exclude`]; of a folder nothing else is counted.
    pub excluded: usize,
    /// Named or found again.
    pub repeated: usize,
}

impl<'a> Files<'a> {
    /// Nothing yet.
    pub fn new() -> Files<'a> {
        Files::default()
    }

    /// A file, whatever it is called, or a folder.
    pub fn path(mut self, path: impl Into<PathBuf>) -> Files<'a> {
        self.named.push(path.into());
        self
    }

    /// What a file lists: a path a line, or each ended by a NUL, as `find -print0` writes.
    pub fn list(mut self, path: impl AsRef<Path>) -> Result<Files<'a>> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|error| of_system(path, &error))?;
        let end = if text.contains('\0') { '\0' } else { '\n' };
        let cut = text.split(end).map(|line| if end == '\n' { line.strip_suffix('\r').unwrap_or(line) } else { line });
        let mut found: Vec<&str> = cut.filter(|line| !line.is_empty()).collect();
        if found.is_empty() {
            return Err(Error::invalid(format!("list: {} names no file", path.display())));
        }
        found.sort_unstable();
        self.named.extend(found.into_iter().map(PathBuf::from));
        Ok(self)
    }

    /// Leaves out files and folders for which this is true.
    pub fn exclude(mut self, matches: impl Fn(&Path) -> bool + 'a) -> Files<'a> {
        self.exclude = Some(Box::new(matches));
        self
    }

    /// Calls `add` for each. What a file is at fault for is told, what is not ends it.
    pub(crate) fn add_all<T>(&self, add: impl FnMut(&Path) -> Result<T>) -> Result<Added<T>> {
        if self.named.is_empty() {
            return Err(Error::invalid("files: none is named"));
        }
        let added = Added { taken: Vec::new(), refused: Vec::new(), excluded: 0, repeated: 0 };
        let mut search = Search { files: self, known: HashSet::new(), added, add };
        for path in &self.named {
            search.named(path)?;
        }
        Ok(search.added)
    }
}

fn of_system(path: &Path, error: &std::io::Error) -> Error {
    Error::new(Status::Io, format!("{}: {}", path.display(), error))
}

struct Search<'a, T, F> {
    files: &'a Files<'a>,
    known: HashSet<PathBuf>,
    added: Added<T>,
    add: F,
}

impl<T, F: FnMut(&Path) -> Result<T>> Search<'_, T, F> {
    fn refuse(&mut self, path: &Path, error: Error) {
        self.added.refused.push(Refusal { path: path.into(), error });
    }

    fn left_out(&mut self, path: &Path) -> bool {
        let found = self.files.exclude.as_ref().map_or(false, |exclude| exclude(path));
        self.added.excluded += usize::from(found);
        found
    }

    /// Comes it for the first time? What is not there is refused.
    fn is_new(&mut self, path: &Path) -> bool {
        match path.canonicalize() {
            Ok(real) => {
                let new = self.known.insert(real);
                self.added.repeated += usize::from(!new);
                new
            }
            Err(error) => {
                self.refuse(path, of_system(path, &error));
                false
            }
        }
    }

    fn named(&mut self, path: &Path) -> Result<()> {
        if self.left_out(path) || !self.is_new(path) {
            return Ok(());
        }
        if !path.is_dir() {
            return self.take(path);
        }
        let seen = |added: &Added<T>| (added.taken.len(), added.refused.len(), added.excluded, added.repeated);
        let before = seen(&self.added);
        self.folder(path)?;
        if seen(&self.added) == before {
            let message = format!("{}: no .slp in this folder", path.display());
            self.refuse(path, Error::new(Status::Io, message));
        }
        Ok(())
    }

    fn folder(&mut self, path: &Path) -> Result<()> {
        let found: std::io::Result<Vec<_>> = std::fs::read_dir(path).and_then(|entries| entries.collect());
        let mut names = match found {
            Ok(entries) => entries.into_iter().map(|entry| entry.file_name()).collect::<Vec<_>>(),
            Err(error) => {
                self.refuse(path, of_system(path, &error));
                return Ok(());
            }
        };
        names.sort_unstable();
        for name in names {
            let inner = path.join(&name);
            let (is_folder, hidden) = (inner.is_dir(), name.to_string_lossy().starts_with('.'));
            let wanted = is_folder || inner.extension().map_or(false, |end| end == "slp");
            if hidden || !wanted || self.left_out(&inner) || !self.is_new(&inner) {
                continue;
            }
            if is_folder {
                self.folder(&inner)?;
            } else {
                self.take(&inner)?;
            }
        }
        Ok(())
    }

    fn take(&mut self, path: &Path) -> Result<()> {
        match (self.add)(path) {
            Ok(result) => self.added.taken.push((path.into(), result)),
            Err(error) if is_of_file(path, &error) => self.refuse(path, error),
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// What a single replay can be at fault for; a file operation only if it is the replay that cannot be read.
fn is_of_file(path: &Path, error: &Error) -> bool {
    match error.status() {
        Status::Format | Status::Invalid | Status::Numeric | Status::Unsupported => true,
        Status::Io => {
            let mut byte = [0];
            std::fs::File::open(path).and_then(|mut file| std::io::Read::read(&mut file, &mut byte)).is_err()
        }
        _ => false,
    }
}
