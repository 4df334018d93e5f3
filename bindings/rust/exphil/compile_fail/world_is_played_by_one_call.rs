// E0502: nobody looks at a world that is played
use exphil::{Learner, Rollout, World};
fn play(learner: &mut Learner, rollout: &mut Rollout, world: &mut World) -> exphil::Result<()> {
    let chunks = learner.train(rollout, world, 1);
    #[cfg(wrong)]
    world.save(0, &mut [])?;
    for metrics in chunks {
        metrics?;
    }
    world.save(0, &mut [])
}
fn main() {
    let _ = play;
}
