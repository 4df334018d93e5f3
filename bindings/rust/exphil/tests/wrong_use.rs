//! What is wrong is an error with a sentence, never a crash.

mod pong;

use exphil::*;
use pong::{context, Scratch};
use std::ffi::OsString;

/// The status, and a word that the sentence must hold.
#[track_caller]
fn fails<T>(result: Result<T>, status: Status, word: &str) {
    let error = result.err().expect("should have failed");
    assert_eq!(error.status(), status, "{}", error);
    assert!(error.message().contains(word), "{}", error);
}

/// A path that is no text: half of a letter.
#[cfg(unix)]
fn not_text() -> OsString {
    std::os::unix::ffi::OsStringExt::from_vec(vec![0xff])
}

#[cfg(windows)]
fn not_text() -> OsString {
    std::os::windows::ffi::OsStringExt::from_wide(&[0xd800])
}

#[test]
fn slices_of_a_wrong_length() {
    let context = context();
    let model = pong::model(&context);
    let mut session = Session::new(&model, &SessionConfig::default()).unwrap();
    let mut actions = [0; 2];
    fails(session.step_row(&[0.0; 2], &[0], &mut actions), Status::Invalid, "floats: has 2 elements, must have 3");
    fails(session.step_row(&[0.0; 3], &[], &mut actions), Status::Invalid, "ids");
    fails(session.step_row(&[0.0; 3], &[0], &mut actions[..1]), Status::Invalid, "actions");
    fails(session.step_row_with(&[0.0; 3], &[0], &[0.5; 4], &mut actions), Status::Invalid, "noise");
    fails(session.logits(0, &mut [0.0; 4]), Status::Invalid, "logits");
    fails(session.logits(1, &mut [0.0; 5]), Status::Invalid, "stream");
    fails(session.reset(usize::MAX), Status::Invalid, "stream");
    fails(session.override_action(0, &[0]), Status::Invalid, "action");
    fails(session.save_state(0, &mut [0; 7]), Status::Invalid, "");
    fails(session.restore_state(0, &[0; 7]), Status::Invalid, "");
    fails(session.step(&[], &mut []), Status::Invalid, "frames");
    let (frame, mut pad) = (melee::Frame::default(), melee::Pad::default());
    fails(session.step(&[frame], std::slice::from_mut(&mut pad)), Status::State, ": use step_row");
    let heads = vec![HeadPlay::default(); 3];
    fails(Session::new(&model, &SessionConfig { heads, ..Default::default() }), Status::Invalid, "heads");
    let mut dataset = pong::dataset(&context);
    fails(dataset.add_rows(9, &[0.0; 6], &[0; 2], &[0; 3]), Status::Invalid, "actions");
    fails(dataset.add_rows(9, &[0.0; 6], &[0; 1], &[0; 4]), Status::Invalid, "ids");
    fails(dataset.frame(0, &mut [0.0; 3], &mut [0], &mut [0]), Status::Invalid, "action");
    fails(dataset.frame(800, &mut [0.0; 3], &mut [0], &mut [0; 2]), Status::Invalid, "index");
}

#[test]
fn losses_of_a_wrong_length() {
    let context = context();
    let model = pong::model(&context);
    let optimizer = Optimizer::new(&model, &OptimizerConfig::default()).unwrap();
    let train =
        |losses: Vec<HeadLoss>| Trainer::new(&model, &optimizer, None, &TrainerConfig { losses, ..Default::default() });
    fails(train(vec![HeadLoss::default()]), Status::Invalid, "losses");
    let short = HeadLoss { positive_weight: vec![1.0], ..Default::default() };
    fails(train(vec![HeadLoss::default(), short.clone()]), Status::Invalid, "positive_weight of buttons");
    fails(evaluate(&model, &pong::dataset(&context), None, &[short], 0), Status::Invalid, "losses");
}

#[test]
fn values_that_are_not_numbers() {
    let context = context();
    let mut session = Session::new(&pong::model(&context), &SessionConfig::default()).unwrap();
    let mut actions = [0; 2];
    fails(session.step_row(&[0.0, f32::NAN, 0.0], &[0], &mut actions), Status::Numeric, "1");
    fails(session.step_row(&[0.0; 3], &[2], &mut actions), Status::Invalid, "");
    fails(session.override_action(0, &[3, 0]), Status::Invalid, "");
    let mut dataset = pong::dataset(&context);
    fails(dataset.add_rows(9, &[f32::INFINITY; 3], &[0], &[0; 2]), Status::Numeric, "");
    fails(dataset.add_rows(9, &[0.0; 3], &[0], &[0, 4]), Status::Invalid, "");
    session.step_row(&[0.0; 3], &[0], &mut actions).unwrap();
}

#[test]
fn files_that_are_none() {
    let (context, file) = (context(), Scratch::new("garbage"));
    fails(Model::load(&context, "/nowhere/at/all"), Status::Io, "/nowhere/at/all");
    assert_eq!(Model::load(&context, "/nowhere/at/all").unwrap_err().native_code(), 2);
    for garbage in [&b""[..], &b"\x08\0\0\0\0\0\0\0{}      "[..], &[0xff; 4096][..]] {
        std::fs::write(file.path(), garbage).unwrap();
        fails(Model::load(&context, file.path()), Status::Format, "");
        fails(Model::load_memory(&context, garbage), Status::Format, "");
        fails(Dataset::open(&context, file.path()), Status::Format, "");
        fails(Replay::open(&context, file.path(), Rollback::Last), Status::Format, "");
        fails(Replay::read(&context, garbage, Rollback::Last), Status::Format, "");
        let mut dataset = Dataset::new(&context, None).unwrap();
        fails(dataset.add_replay_memory(garbage, &ReplayConfig::default()), Status::Format, "");
        fails(pong::trainer(&context).resume(file.path()), Status::Io, ".optimizer");
        std::fs::write(format!("{}.optimizer", file.path().display()), garbage).unwrap();
        fails(pong::trainer(&context).resume(file.path()), Status::Format, "");
        std::fs::remove_file(format!("{}.optimizer", file.path().display())).unwrap();
    }
    fails(Model::load(&context, "a\0b"), Status::Invalid, "NUL");
    fails(Model::load(&context, not_text()), Status::Invalid, "UTF-8");
    fails(pong::model(&context).save("/nowhere/at/all"), Status::Io, "");
    fails(pong::model(&context).export_onnx("/nowhere/at/all"), Status::Io, "");
}

#[test]
fn numbers_that_are_too_large() {
    let context = context();
    let huge = ModelConfig { hidden: usize::MAX, ..pong::config() };
    fails(Model::create(&context, &huge), Status::Invalid, "hidden");
    let model = pong::model(&context);
    fails(
        Session::new(&model, &SessionConfig { streams: usize::MAX, ..Default::default() }),
        Status::Invalid,
        "streams",
    );
    let sampling = Sampling { batch: usize::MAX, ..model.sampling().unwrap() };
    fails(Prefetcher::new(&pong::dataset(&context), &sampling), Status::Invalid, "");
    let spec = pong::spec().floats(usize::MAX);
    fails(Dataset::new(&context, Some(&spec)), Status::Invalid, "float");
    assert_eq!(spec.hash(), 0);
    let batch = Batch { batch: usize::MAX, time: 2, ..Default::default() };
    let optimizer = Optimizer::new(&model, &OptimizerConfig::default()).unwrap();
    let mut trainer = Trainer::new(&model, &optimizer, None, &TrainerConfig::default()).unwrap();
    fails(trainer.step_batch(&batch), Status::Invalid, "rows");
    fails(trainer.step_batch(&Batch { batch: 1, time: 1, ..batch }), Status::Invalid, "floats");
    fails(trainer.step_batch(&Batch { batch: 0, time: 0, ..batch }), Status::Invalid, "");
    fails(model.tensor_info(usize::MAX), Status::Invalid, "");
}

#[test]
fn what_does_not_fit_together() {
    let context = context();
    let mut model = pong::model(&context);
    let spec = Some(pong::spec().floats(4));
    fails(Session::new(&model, &SessionConfig { spec, ..Default::default() }), Status::Mismatch, "");
    let delay_frames = Some(3);
    fails(Session::new(&model, &SessionConfig { delay_frames, ..Default::default() }), Status::Mismatch, "delay");
    let melee = Dataset::new(&context, None).unwrap();
    fails(evaluate(&model, &melee, None, &[], 0), Status::Mismatch, "");
    fails(
        Model::create(&context, &ModelConfig { blocks: Some("gru (mlp".into()), ..pong::config() }),
        Status::Invalid,
        "blocks",
    );
    fails(model.tensor::<f32>("no.such"), Status::Invalid, "no.such");
    let name = model.tensor_info(0).unwrap().name;
    fails(model.tensor::<f64>(&name), Status::Mismatch, "F32");
    fails(model.set_tensor(&name, &[0.0f32]), Status::Invalid, "elements");
    let weights: Vec<f32> = model.tensor(&name).unwrap();
    let session = Session::new(&model, &SessionConfig::default()).unwrap();
    fails(model.set_tensor(&name, &weights), Status::State, "1 other");
    drop(session);
    model.set_tensor(&name, &weights).unwrap();
    fails(model.set_tensor(&name, &vec![f32::NAN; weights.len()]), Status::Numeric, "");
    fails(Context::builder().device("abacus").build(), Status::Invalid, "device");
    fails(Context::builder().device("a\0").build(), Status::Invalid, "NUL");
    fails(unsafe { Context::from_raw(std::ptr::null_mut()) }, Status::Invalid, "NULL");
}

#[test]
fn one_optimizer_serves_one_trainer() {
    let context = context();
    let model = pong::model(&context);
    let optimizer = Optimizer::new(&model, &OptimizerConfig::default()).unwrap();
    let config = TrainerConfig::default();
    let first = Trainer::new(&model, &optimizer, None, &config).unwrap();
    assert!(Trainer::new(&model, &optimizer, None, &config).is_err());
    drop(first);
}

#[test]
fn errors_read_well() {
    let error = Model::load(&context(), "/nowhere").unwrap_err();
    assert!(error.to_string().starts_with("EXPHIL_E_IO: "), "{}", error);
    for code in -13..0 {
        assert_eq!(Status::from_code(code).code(), code);
        assert!(Status::from_code(code).name().starts_with("EXPHIL_E_"));
        assert!(!matches!(Status::from_code(code), Status::Other(_)));
    }
    assert_eq!(Status::from_code(-99).name(), "EXPHIL_UNKNOWN");
    assert_eq!(Status::Other(-99).code(), -99);
}
