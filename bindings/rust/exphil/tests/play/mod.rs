//! What the tests of learning share: a game of the host's own, and all that a run is made of.
#![allow(dead_code)]

use exphil::*;

/// A ball falls for 20 frames; who stands under it then has a point.
#[derive(Default)]
pub struct Catch {
    ball: f32,
    at: f32,
    fallen: u32,
    /// Frames until it breaks; 0: never.
    pub breaks: u32,
    pub panics: bool,
}

impl Catch {
    pub fn spec() -> Spec {
        Spec::new("catch", "catch").floats(3).head(HeadSpec::categorical("move", 3).neutral(1))
    }

    pub fn lanes(lanes: usize) -> Vec<Catch> {
        (0..lanes).map(|_| Catch::default()).collect()
    }

    fn show(&self, floats: &mut [f32]) {
        floats.copy_from_slice(&[self.ball, self.at, self.fallen as f32 / 20.0]);
    }
}

impl Game for Catch {
    fn reset(&mut self, seed: u64, floats: &mut [f32], _: &mut [i32]) -> Played<()> {
        let mixed = (seed ^ seed >> 31).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.ball = (mixed >> 40) as f32 / (1u64 << 23) as f32 - 1.0;
        self.at = (mixed >> 8 & 0xFF_FFFF) as f32 / (1u64 << 23) as f32 - 1.0;
        self.fallen = 0;
        self.show(floats);
        Ok(())
    }

    fn step(&mut self, actions: &[i32], floats: &mut [f32], _: &mut [i32], reward: &mut [f32]) -> Played<End> {
        if self.breaks > 0 {
            self.breaks -= 1;
            if self.breaks == 0 {
                assert!(!self.panics, "the board breaks");
                return Err("the cable".into());
            }
        }
        self.at = (self.at + 0.1 * (actions[0] - 1) as f32).clamp(-1.0, 1.0);
        self.fallen += 1;
        self.show(floats);
        if self.fallen < 20 {
            return Ok(End::GoesOn);
        }
        reward[0] = f32::from(u8::from((self.ball - self.at).abs() < 0.15));
        Ok(End::Over)
    }

    fn state_bytes(&self) -> usize {
        12
    }

    fn save(&self, state: &mut [u8]) -> Played<()> {
        for (to, bits) in state.chunks_mut(4).zip([self.ball.to_bits(), self.at.to_bits(), self.fallen]) {
            to.copy_from_slice(&bits.to_le_bytes());
        }
        Ok(())
    }

    fn load(&mut self, state: &[u8]) -> Played<()> {
        let bits = |i: usize| Ok::<_, Failure>(u32::from_le_bytes(state[4 * i..4 * i + 4].try_into()?));
        (self.ball, self.at, self.fallen) = (f32::from_bits(bits(0)?), f32::from_bits(bits(1)?), bits(2)?);
        Ok(())
    }
}

pub fn catch(context: &Context, lanes: usize) -> World {
    World::of(context, &Catch::spec(), 1, Catch::lanes(lanes)).unwrap()
}

/// All that a run is made of.
pub struct Parts {
    pub world: World,
    pub rollout: Rollout,
    pub learner: Learner,
}

pub fn model(context: &Context, spec: &Spec, hidden: usize) -> Model {
    let config = ModelConfig {
        spec: Some(spec.clone()),
        blocks: Some("mlp".into()),
        hidden,
        head_width: hidden,
        no_previous_action: true,
        neutral_start: true,
        value: Value::Shared,
        seed: 1,
        ..Default::default()
    };
    Model::create(context, &config).unwrap()
}

pub fn trainer(model: &Model, chunks: usize) -> Trainer {
    let rate = OptimizerConfig {
        rate: 1e-3,
        schedule: Schedule::Cosine,
        total_updates: chunks * 16,
        clip_norm: 0.5,
        ..Default::default()
    };
    let optimizer = Optimizer::new(model, &rate).unwrap();
    Trainer::new(model, &optimizer, None, &TrainerConfig { as_played: true, ..Default::default() }).unwrap()
}

impl Parts {
    pub fn new(world: World, model: &Model, time: usize, chunks: usize, config: &LearnerConfig) -> Parts {
        let session = SessionConfig { streams: world.streams(), seed: 1, ..Default::default() };
        let rollout = Rollout::new(model, &session, &RolloutConfig { time, seed: 1 }).unwrap();
        let learner = Learner::new(trainer(model, chunks), None, config).unwrap();
        Parts { world, rollout, learner }
    }

    pub fn catch(lanes: usize, time: usize) -> Parts {
        let context = Context::builder().threads(1).build().unwrap();
        Parts::new(catch(&context, lanes), &model(&context, &Catch::spec(), 16), time, 60, &LearnerConfig::default())
    }

    pub fn chunks(&mut self, count: usize) -> Vec<LearnerMetrics> {
        self.learner.train(&mut self.rollout, &mut self.world, count).collect::<Result<_>>().unwrap()
    }

    pub fn weights(&self) -> Model {
        self.learner.trainer().model(Weights::Latest).unwrap()
    }

    pub fn hash(&self) -> u64 {
        self.weights().info().unwrap().weights_hash
    }
}

/// Mean return of all episodes of some chunks.
pub fn mean_return(told: &[LearnerMetrics]) -> f64 {
    let sum = |of: fn(&LearnerMetrics) -> f64| told.iter().map(of).sum::<f64>();
    sum(|m| m.episode_return * m.episodes as f64) / sum(|m| m.episodes as f64)
}

/// The status, and words that the sentence must hold.
#[track_caller]
pub fn fails<T>(result: Result<T>, status: Status, word: &str) {
    let error = result.err().expect("should have failed");
    assert_eq!(error.status(), status, "{}", error);
    assert!(error.message().contains(word), "{}", error);
}
