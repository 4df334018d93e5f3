//! A toy game for the tests: three floats and one id, a stick and two buttons; the stick follows the first float.
#![allow(dead_code)]

use exphil::{
    Context, Dataset, HeadSpec, Model, ModelConfig, Optimizer, OptimizerConfig, Prefetcher, Sampling, Spec, Trainer,
    TrainerConfig,
};

pub fn context() -> Context {
    Context::builder().threads(1).build().unwrap()
}

pub fn spec() -> Spec {
    Spec::new("pong", "pad")
        .floats(3)
        .id("side", 2, 4)
        .head(HeadSpec::categorical("stick", 3).neutral(1))
        .head(HeadSpec::bernoulli("buttons", 2))
}

pub fn config() -> ModelConfig {
    let blocks = Some("gru mlp".to_string());
    ModelConfig { spec: Some(spec()), blocks, hidden: 16, head_width: 16, seed: 7, ..Default::default() }
}

pub fn model(context: &Context) -> Model {
    Model::create(context, &config()).unwrap()
}

/// Row t of a game that swings to and fro.
pub fn row(t: usize) -> ([f32; 3], [i32; 1], [i32; 2]) {
    let swing = ((t % 20) as f32 - 10.0) / 10.0;
    let stick = if swing < -0.3 {
        0
    } else if swing > 0.3 {
        2
    } else {
        1
    };
    ([swing, 1.0 - swing, 0.5], [(t / 100 % 2) as i32], [stick, (t % 20 == 3) as i32])
}

/// Four games of 200 frames.
pub fn dataset(context: &Context) -> Dataset {
    let mut dataset = Dataset::new(context, Some(&spec())).unwrap();
    for game in 0..4 {
        let (mut floats, mut ids, mut actions) = (Vec::new(), Vec::new(), Vec::new());
        for t in 0..200 {
            let (f, i, a) = row(t + 7 * game);
            floats.extend_from_slice(&f);
            ids.extend_from_slice(&i);
            actions.extend_from_slice(&a);
        }
        dataset.add_rows(game as u64, &floats, &ids, &actions).unwrap();
    }
    dataset
}

pub fn prefetcher(model: &Model, dataset: &Dataset) -> Prefetcher {
    let sampling = Sampling { batch: 4, time: 20, seed: 3, ..model.sampling().unwrap() };
    Prefetcher::new(dataset, &sampling).unwrap()
}

pub fn trainer(context: &Context) -> Trainer {
    let model = model(context);
    let optimizer =
        Optimizer::new(&model, &OptimizerConfig { rate: 1e-2, ema_decay: 0.9, ..Default::default() }).unwrap();
    let prefetcher = prefetcher(&model, &dataset(context));
    Trainer::new(&model, &optimizer, Some(prefetcher), &TrainerConfig::default()).unwrap()
}

/// A path of the test's own in the folder of temporary files, removed at the end.
pub struct Scratch(std::path::PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Scratch {
        Scratch(std::env::temp_dir().join(format!("exphil-rust-{}-{}", std::process::id(), name)))
    }
    pub fn path(&self) -> &std::path::Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
        let _ = std::fs::remove_file(format!("{}.optimizer", self.0.display()));
    }
}
