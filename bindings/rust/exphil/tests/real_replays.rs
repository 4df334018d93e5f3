//! Real replays of the folder $EXPHIL_REPLAYS: whole files and streams agree, and become training data. Does nothing
//! without the folder; the script that runs the tests says so.

mod pong;

use exphil::melee::{self, Encoder};
use exphil::*;
use std::path::PathBuf;

fn replays() -> Vec<PathBuf> {
    let folder = match std::env::var_os("EXPHIL_REPLAYS") {
        Some(folder) => PathBuf::from(folder).join("training"),
        None => return Vec::new(),
    };
    let mut found: Vec<_> =
        std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.extension().map_or(false, |extension| extension == "slp"));
    found.sort();
    found
}

#[test]
fn streams_give_what_files_give() {
    let context = pong::context();
    for path in replays() {
        let replay = Replay::open(&context, &path, Rollback::Last).unwrap();
        assert_eq!(replay.len() as i64, replay.info().unwrap().frame_count);
        assert_eq!(replay.frames().len(), replay.len());
        assert_eq!(replay.frame(0).unwrap().frame, -123);
        assert_eq!(replay.position(-123), Some(0));
        assert!(replay.frame(replay.len()).is_none());
        let bytes = std::fs::read(&path).unwrap();
        let (mut stream, mut rest, mut frames) = (SlpStream::new(&context).unwrap(), &bytes[..], 0);
        while let Push::Frame(used) = stream.push(rest).unwrap() {
            rest = &rest[used..];
            frames += 1;
            let frame = stream.frame().unwrap();
            let place = replay.position(frame.frame).unwrap();
            for port in 1..=4 {
                if replay.player(place, port, false).is_none() || frame.frame < 0 {
                    continue;
                }
                let (live, kept) = (stream.melee_frame(port, 0).unwrap(), replay.melee_frame(place, port, 0).unwrap());
                assert_eq!(live.player[0].x.to_bits(), kept.player[0].x.to_bits());
                assert_eq!(
                    stream.player(port, false).unwrap().buttons,
                    replay.player(place, port, false).unwrap().buttons
                );
            }
            assert_eq!(frame.items().len(), frame.item_count as usize);
        }
        assert!(frames >= replay.len(), "{} {}", frames, replay.len());
    }
}

/// The game is on Fountain of Dreams, where platforms have moved by its end. (stadium_kind is 5 at first, which encodes as 0
/// does.)
#[test]
fn new_frames_are_those_of_a_game_that_begins() {
    let new = melee::Frame::new(-123, 2, 1);
    assert_eq!((new.platform_left, new.platform_right, new.item_count), (20.0, 28.0, 0));
    assert!(new.item.iter().all(|item| item.owner == -1 && *item == melee::Item::default()));
    assert!(new.player.iter().chain(&new.follower).all(|one| one.present == 0 && one.known == melee::known::ALL));
    let path = match std::env::var_os("EXPHIL_REPLAYS") {
        Some(folder) => PathBuf::from(folder).join("formats/v3.18.slp"),
        None => return,
    };
    if !path.exists() {
        return;
    }
    let replay = Replay::open(&pong::context(), &path, Rollback::Last).unwrap();
    let port = (1..=4).find(|&port| replay.player(0, port, false).is_some()).unwrap();
    let at = |place| replay.melee_frame(place, port, 0).unwrap();
    let stage = |frame: &melee::Frame| {
        (frame.platform_left, frame.platform_right, frame.wind, frame.stadium_event, frame.item_count)
    };
    assert_eq!((at(0).stage, stage(&at(0))), (2, stage(&new)));
    assert_eq!(at(0).player[port as usize - 1].known, melee::Character::default().known);
    assert_ne!(stage(&at(replay.len() - 1)), stage(&new));
}

#[test]
fn controllers_survive_the_codec() {
    let context = pong::context();
    let encoder = Encoder::new(None, None).unwrap();
    let spec = melee::spec(None, None).unwrap();
    let fields = melee::fields(None).unwrap();
    assert_eq!(fields.iter().filter(|field| field.is_id).count(), spec.ids.len());
    let (mut floats, mut ids) = (vec![0.0; spec.float_count], vec![0; spec.ids.len()]);
    let mut action = vec![0; spec.heads.len()];
    for path in replays() {
        let replay = Replay::open(&context, &path, Rollback::Last).unwrap();
        let port = (1..=4).find(|&port| replay.player(200, port, false).is_some()).unwrap();
        encoder.frame(&replay.melee_frame(200, port, 0).unwrap(), &mut floats, &mut ids).unwrap();
        assert!(floats.iter().any(|&value| value != 0.0));
        encoder.pad(&replay.melee_pad(200, port).unwrap(), &mut action).unwrap();
        let said = encoder.decode(&action).unwrap();
        let mut again = vec![0; action.len()];
        encoder.pad(&said, &mut again).unwrap();
        assert_eq!(again, action);
    }
    assert!(encoder.decode(&[0; 1]).is_err());
    assert_eq!(melee::character_name(2).as_deref(), Some("fox"));
    assert_eq!(melee::stage_name(31).as_deref(), Some("battlefield"));
    assert_eq!(melee::character_name(-1), None);
    assert!(melee::fields(Some("none")).is_err());
}

#[test]
fn policies_learn_from_replays_and_play() {
    let context = pong::context();
    let mut dataset = Dataset::new(&context, None).unwrap();
    let config = ReplayConfig { last_frame: 600, ..Default::default() };
    for path in replays() {
        assert!(dataset.add_replay(&path, &config).unwrap().frames > 0);
        let wrong = ReplayConfig { character: Some("nobody".into()), ..Default::default() };
        assert!(dataset.add_replay(&path, &wrong).is_err());
    }
    if dataset.info().unwrap().frames == 0 {
        return;
    }
    let config = ModelConfig { blocks: Some("gru".into()), hidden: 16, head_width: 16, ..Default::default() };
    let model = Model::create(&context, &config).unwrap();
    let optimizer = Optimizer::new(&model, &OptimizerConfig::default()).unwrap();
    let source = Prefetcher::new(&dataset, &Sampling { batch: 4, ..model.sampling().unwrap() }).unwrap();
    let mut trainer = Trainer::new(&model, &optimizer, Some(source), &TrainerConfig::default()).unwrap();
    let losses: Vec<f64> = trainer.updates(8).map(|metrics| metrics.unwrap().loss).collect();
    assert!(losses[7] < losses[0]);
    let mut session = Session::new(&trainer.model(Weights::Latest).unwrap(), &SessionConfig::default()).unwrap();
    let replay = Replay::open(&context, &replays()[0], Rollback::Last).unwrap();
    let port = (1..=4).find(|&port| replay.player(200, port, false).is_some()).unwrap();
    let mut pads = [melee::Pad::default()];
    for place in 200..260 {
        session.step(&[replay.melee_frame(place, port, 0).unwrap()], &mut pads).unwrap();
        assert!(pads[0].main_x.abs() <= 1.0);
    }
    assert_eq!(session.step(&[melee::Frame::default()], &mut pads).unwrap_err().status(), Status::Invalid);
}

#[test]
fn corpora_give_what_files_give() {
    let (context, file) = (pong::context(), pong::Scratch::new("games"));
    let config = GamesConfig { stored: true, ..Default::default() };
    let mut writer = GamesWriter::create(&context, file.path(), &config).unwrap();
    assert!(writer.add_memory(b"no replay").is_err());
    let mut kept = Vec::new();
    for path in replays().iter().take(3) {
        let added = writer.add(path).unwrap();
        assert_eq!(writer.add(path).unwrap().duplicate, 1);
        if added.duplicate == 0 {
            kept.push(path.clone());
        }
    }
    assert_eq!(writer.finish().unwrap().games, kept.len() as i64);
    let games = Games::open(&context, file.path()).unwrap();
    assert_eq!(games.len(), kept.len());
    games.verify().unwrap();
    for (index, path) in kept.iter().enumerate() {
        let (replay, back) = (Replay::open(&context, path, Rollback::Last).unwrap(), games.read(index).unwrap());
        let (info, settings) = games.game(index).unwrap();
        assert_eq!(settings.frame_count as usize, replay.len());
        assert_eq!(settings.stage, replay.info().unwrap().stage);
        assert!(info.content_hash != 0 && info.player[0].end_stocks <= 4);
        for (frame, again) in replay.frames().zip(back.frames()) {
            assert_eq!((frame.frame, frame.item_count), (again.frame, again.item_count));
        }
        let last = replay.len() - 1;
        for port in 1..=4 {
            let (one, two) = (replay.player(last, port, false), back.player(last, port, false));
            assert_eq!(one.map(|player| player.x.to_bits()), two.map(|player| player.x.to_bits()));
        }
    }
    assert!(games.read(games.len()).is_err());
    assert!(Games::open(&context, "absent.games").is_err());
}
