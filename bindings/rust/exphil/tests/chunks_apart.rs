//! Chunks of other processes: what is learnt from their blocks is what one process learns; what is no block is refused.

mod play;

use exphil::*;
use play::{fails, model, Parts};

fn block(rollout: &Rollout) -> Vec<u8> {
    let mut block = vec![0; rollout.block_size()];
    rollout.block_save(&mut block).unwrap();
    block
}

/// A player of its own: the weights come as bytes of a file, chunks go as blocks.
struct Player {
    context: Context,
    rollout: Rollout,
    world: World,
}

impl Player {
    fn new(lanes: usize, seed: u64) -> Player {
        let context = Context::builder().threads(1).build().unwrap();
        let policy = model(&context, &play::Catch::spec(), 16);
        let session = SessionConfig { streams: lanes, seed, ..Default::default() };
        let rollout = Rollout::new(&policy, &session, &RolloutConfig { time: 32, seed }).unwrap();
        let world = play::catch(&context, lanes);
        Player { context, rollout, world }
    }

    fn chunk(&mut self, weights: &[u8]) -> Vec<u8> {
        let model = Model::load_memory(&self.context, weights).unwrap();
        self.rollout.adopt(Some(&model)).unwrap();
        self.rollout.run(&mut self.world).unwrap();
        block(&self.rollout)
    }
}

fn bytes(model: &Model, name: &str) -> Vec<u8> {
    let path = std::env::temp_dir().join(format!("exphil-{}-{}", std::process::id(), name));
    model.save(&path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    bytes
}

#[test]
fn a_chunk_through_a_block_is_learnt_as_ones_own() {
    let (mut alone, mut learner, mut player) = (Parts::catch(8, 32), Parts::catch(8, 32), Player::new(8, 1));
    for metrics in alone.chunks(3) {
        let block = player.chunk(&bytes(&learner.weights(), "weights"));
        assert!(learner.rollout.block_take(0, BlockWeights::Current, &block).unwrap());
        assert_eq!(learner.learner.update(&mut learner.rollout).unwrap(), metrics);
    }
    assert_eq!(learner.hash(), alone.hash());
}

#[test]
fn streams_of_several_players() {
    let mut parts = Parts::catch(8, 32);
    let weights = bytes(&parts.weights(), "several");
    let blocks = [Player::new(4, 1).chunk(&weights), Player::new(4, 2).chunk(&weights)];
    let info = BlockInfo::query(&blocks[0]).unwrap();
    assert_eq!((info.streams, info.time, info.delay_frames, info.weights_hash), (4, 32, 0, parts.hash()));
    let current = BlockWeights::Current;
    assert!(!parts.rollout.block_take(4, current, &blocks[1]).unwrap());
    fails(parts.learner.update(&mut parts.rollout), Status::State, "4 of 8 streams");
    fails(parts.rollout.run(&mut parts.world), Status::State, "came as blocks");
    fails(parts.rollout.block_take(4, current, &blocks[0]), Status::State, "there already");
    assert!(parts.rollout.block_take(0, current, &blocks[0]).unwrap());
    assert_eq!(parts.learner.update(&mut parts.rollout).unwrap().recomputed, 0.0);
    fails(parts.rollout.block_take(0, current, &blocks[0]), Status::Mismatch, "played by weights");
    assert!(!parts.rollout.block_take(0, BlockWeights::Any, &blocks[0]).unwrap());
    assert!(parts.rollout.block_take(4, BlockWeights::Any, &blocks[1]).unwrap());
    assert!(parts.learner.update(&mut parts.rollout).unwrap().recomputed > 0.0);
}

#[test]
fn what_is_no_block_is_refused() {
    let mut parts = Parts::catch(4, 8);
    fails(parts.rollout.block_save(&mut vec![0; parts.rollout.block_size()]), Status::State, "0 of 8 rows");
    parts.rollout.run(&mut parts.world).unwrap();
    fails(parts.rollout.block_save(&mut []), Status::Invalid, "size_bytes");
    let good = block(&parts.rollout);
    parts.rollout.adopt(None).unwrap();
    let mut damaged = good.clone();
    *damaged.last_mut().unwrap() ^= 1;
    let rollout = &mut parts.rollout;
    fails(rollout.block_take(0, BlockWeights::Current, &damaged), Status::Format, "damaged");
    fails(rollout.block_take(0, BlockWeights::Current, &[]), Status::Format, "");
    fails(rollout.block_take(4, BlockWeights::Current, &good), Status::Invalid, "first_stream");
    fails(BlockInfo::query(&good[1..]), Status::Format, "");
    fails(rollout.adopt(Some(&model(&Context::new().unwrap(), &play::Catch::spec(), 16))), Status::Mismatch, "");
    assert!(rollout.block_take(0, BlockWeights::Current, &good).unwrap());
    assert_eq!(block(rollout), good);
}
