//! Many at once: rows as arrays, folders and lists of replays, corpora of games, training with scores of what is held out.
//! What needs replays takes them from $EXPHIL_REPLAYS, and does nothing without; the script that runs the tests says so.

mod pong;

use exphil::*;
use pong::Scratch;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

#[test]
fn rows_are_the_frames() {
    let data = pong::dataset(&pong::context());
    let all = data.rows(0..800).unwrap();
    for (first, end) in [(0, 1), (0, 800), (199, 402), (799, 800), (5, 5), (800, 800)] {
        let rows = data.rows(first..end).unwrap();
        assert_eq!(rows.floats, all.floats[3 * first..3 * end]);
        assert_eq!(rows.ids, all.ids[first..end]);
        assert_eq!(rows.actions, all.actions[2 * first..2 * end]);
        assert_eq!(rows.episodes, all.episodes[first..end]);
    }
    let (mut floats, mut ids, mut action) = ([0.0; 3], [0], [0; 2]);
    for index in 0..800 {
        data.frame(index, &mut floats, &mut ids, &mut action).unwrap();
        assert_eq!(floats, all.floats[3 * index..3 * index + 3]);
        assert_eq!(action, all.actions[2 * index..2 * index + 2]);
        assert_eq!(all.episodes[index], index as i64 / 200);
    }
    #[allow(clippy::reversed_empty_ranges)]
    let wrong =
        [(0..801, "count is 801"), (801..801, "first is 801"), (7..3, "count is -1"), (0..usize::MAX, "count is 9")];
    for (range, says) in wrong {
        let error = data.rows(range).unwrap_err();
        assert_eq!(error.status(), Status::Invalid);
        assert!(error.to_string().contains(says), "{}", error);
    }
}

#[test]
fn scores_change_nothing() {
    let context = pong::context();
    let held_out = pong::dataset(&context);
    let (mut plain, mut scored) = (pong::trainer(&context), pong::trainer(&context));
    let losses: Vec<f64> = plain.updates(25).map(|metrics| metrics.unwrap().loss).collect();
    let mut told = Vec::new();
    let fit = Fit { updates: 25, every: 10, alone_most_frames: 50, ..Default::default() };
    let scores = scored
        .fit(&fit, &held_out, Some(&held_out), |score| {
            told.push(score.clone());
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(scores.iter().map(|score| score.metrics.update).collect::<Vec<_>>(), [10, 20, 25]);
    assert_eq!(told, scores);
    assert_eq!(scores[2].metrics.loss, losses[24]);
    let last = plain.evaluate_alone(Weights::Latest, &held_out, Some(&held_out), 50).unwrap();
    assert_eq!(scores[2].report, last);
    assert!(scores[2].report.loss < scores[0].report.loss);
    let weights = |trainer: &Trainer| trainer.model(Weights::Latest).unwrap().info().unwrap().weights_hash;
    assert_eq!(weights(&plain), weights(&scored));
    let stops =
        |score: &Score| if score.metrics.update == 29 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let fit = Fit { updates: 40, every: 2, which: Weights::Averaged, ..Default::default() };
    assert_eq!(scored.fit(&fit, &held_out, None, stops).unwrap().len(), 2);
    let count = |scored: &mut Trainer, updates| {
        let fit = Fit { updates, ..Default::default() };
        scored.fit(&fit, &held_out, None, |_| ControlFlow::Continue(())).unwrap().len()
    };
    assert_eq!((count(&mut scored, 25), count(&mut scored, 3), count(&mut scored, 0)), (9, 3, 0));
}

/// A folder of the test's own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = Scratch::new(name).path().to_path_buf();
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn relative<'a>(paths: impl Iterator<Item = &'a Path>, folder: &Folder) -> Vec<String> {
    paths.map(|path| path.strip_prefix(&folder.0).unwrap().to_str().unwrap().replace('\\', "/")).collect()
}

fn refused<T>(added: &Added<T>, folder: &Folder) -> Vec<String> {
    relative(added.refused.iter().map(|one| one.path.as_path()), folder)
}

fn taken<T>(added: &Added<T>, folder: &Folder) -> Vec<String> {
    relative(added.taken.iter().map(|one| one.0.as_path()), folder)
}

#[test]
fn what_is_no_replay_is_told() {
    let (context, folder) = (pong::context(), Folder::new("files"));
    folder.file("a/two.slp", b"no");
    folder.file("a/b/three.slp", b"no");
    folder.file("one.slp", b"no");
    folder.file(".hidden.slp", b"no");
    let notes = folder.file("notes.txt", b"no");
    let mut data = Dataset::new(&context, None).unwrap();
    let mut add = |files: &Files<'_>| data.add_replays(files, &ReplayConfig::default());
    let added = add(&Files::new().path(&folder.0)).unwrap();
    assert_eq!(refused(&added, &folder), ["a/b/three.slp", "a/two.slp", "one.slp"]);
    assert!(added.taken.is_empty() && added.refused.iter().all(|one| one.error.status() == Status::Format));
    let text =
        format!("{}\r\n\n{}\n{}\n", notes.display(), folder.0.join("none").display(), folder.0.join("a").display());
    let list = folder.file("list", text.as_bytes());
    let nulls = folder.file("nulls", text.replace("\r\n\n", "\0").replace('\n', "\0").as_bytes());
    for list in [list, nulls] {
        let files = Files::new().path(&notes).list(&list).unwrap().exclude(|path| path.ends_with("b"));
        let added = add(&files).unwrap();
        assert_eq!(refused(&added, &folder), ["notes.txt", "a/two.slp", "none"]);
        assert_eq!((added.excluded, added.repeated), (1, 1));
        assert_eq!(added.refused[2].error.status(), Status::Io);
    }
    std::fs::create_dir(folder.0.join("empty")).unwrap();
    let added = add(&Files::new().path(folder.0.join("empty"))).unwrap();
    assert!(added.refused[0].error.to_string().contains("no .slp in this folder"));
    assert_eq!(add(&Files::new()).unwrap_err().status(), Status::Invalid);
    assert_eq!(Files::new().list(folder.0.join("none")).unwrap_err().status(), Status::Io);
    let empty = folder.file("empty list", b"\n");
    assert!(Files::new().list(empty).unwrap_err().to_string().contains("names no file"));
    let wrong = ReplayConfig { port: 7, ..Default::default() };
    let error = data.add_replays(&Files::new().path(&folder.0), &wrong).unwrap_err();
    assert!(error.to_string().contains("port is 7"), "{}", error);
    let mut toy = pong::dataset(&context);
    assert!(toy.add_replays(&Files::new().path(&folder.0), &ReplayConfig::default()).is_err());
}

#[cfg(unix)]
#[test]
fn circles_end() {
    let folder = Folder::new("circles");
    folder.file("a/one.slp", b"no");
    std::os::unix::fs::symlink(&folder.0, folder.0.join("a/round")).unwrap();
    std::os::unix::fs::symlink(folder.0.join("a/one.slp"), folder.0.join("b.slp")).unwrap();
    let mut data = Dataset::new(&pong::context(), None).unwrap();
    let added = data.add_replays(&Files::new().path(&folder.0), &ReplayConfig::default()).unwrap();
    assert_eq!((added.refused.len(), added.repeated), (1, 2));
}

fn replay() -> Option<Vec<u8>> {
    let folder = PathBuf::from(std::env::var_os("EXPHIL_REPLAYS")?);
    std::fs::read(folder.join("training/fox_multishine_closed.slp")).ok()
}

#[test]
fn replays_become_rows() {
    let (context, folder) = (pong::context(), Folder::new("replays"));
    let bytes = match replay() {
        Some(bytes) => bytes,
        None => return,
    };
    let one = folder.file("one.slp", &bytes);
    folder.file("cut.slp", &bytes[..bytes.len() / 2]);
    folder.file("bad.slp", b"no");
    let mut data = Dataset::new(&context, None).unwrap();
    let config = ReplayConfig { port: 1, ..Default::default() };
    let added = data.add_replays(&Files::new().path(&one).path(&folder.0), &config).unwrap();
    assert_eq!(taken(&added, &folder), ["one.slp", "cut.slp"]);
    assert_eq!((refused(&added, &folder), added.repeated), (vec!["bad.slp".to_string()], 1));
    assert_eq!(added.taken.iter().map(|one| one.1.truncated).collect::<Vec<_>>(), [0, 1]);
    let whole = data.rows(0..added.taken[0].1.frames as usize).unwrap();
    let replay = Replay::open(&context, &one, Rollback::Last).unwrap();
    let rows = replay.rows(None, None, &config).unwrap();
    assert_eq!((&rows.floats, &rows.ids, &rows.actions), (&whole.floats, &whole.ids, &whole.actions));
    assert_eq!(rows.frames, (0..rows.frames.len() as i32).collect::<Vec<_>>());
    assert_eq!(replay.rows(None, None, &ReplayConfig::default()).unwrap_err().status(), Status::Invalid);
    assert!(replay.rows(Some("pong"), None, &config).unwrap_err().to_string().contains("pong"));
    games_become_rows(&context, &folder, &one, &whole);
}

fn games_become_rows(context: &Context, folder: &Folder, one: &Path, whole: &Rows) {
    let path = folder.0.join("all.games");
    let config = GamesConfig { stored: true, ..Default::default() };
    let mut writer = GamesWriter::create(context, &path, &config).unwrap();
    let added = writer.add_replays(&Files::new().path(&folder.0)).unwrap();
    assert_eq!((taken(&added, folder).len(), refused(&added, folder)), (2, vec!["bad.slp".to_string()]));
    writer.finish().unwrap();
    let games = Games::open(context, &path).unwrap();
    let mut data = Dataset::new(context, None).unwrap();
    let complete = Selection { port: 1, complete: true, characters: Some("fox".into()), ..Default::default() };
    let report = data.add_games(&games, &complete).unwrap();
    let info = data.info().unwrap();
    assert_eq!((report.games, report.taken, info.constant_floats), (2, 1, None));
    assert_eq!(report.players, report.taken + report.refused.iter().sum::<i64>());
    assert!(
        report.reasons().iter().any(|(reason, count)| reason.contains("port") && *count > 0),
        "{:?}",
        report.reasons()
    );
    assert_eq!(data.rows(0..info.frames).unwrap(), *whole);
    let error = data.add_games(&games, &Selection { stages: Some("moon".into()), ..Default::default() }).unwrap_err();
    assert!(error.to_string().contains("moon"), "{}", error);
    assert_eq!(
        data.add_games(&games, &Selection { port: 9, ..Default::default() }).unwrap_err().status(),
        Status::Invalid
    );
    assert!(one.exists());
}
