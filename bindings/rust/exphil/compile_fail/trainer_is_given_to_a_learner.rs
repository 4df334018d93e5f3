// E0382: a learner's trainer is used by nobody else
use exphil::{Learner, LearnerConfig, Trainer};
fn learn(mut trainer: Trainer) -> exphil::Result<()> {
    trainer.step()?;
    let learner = Learner::new(trainer, None, &LearnerConfig::default())?;
    #[cfg(wrong)]
    trainer.step()?;
    learner.into_trainer().step()?;
    Ok(())
}
fn main() {
    let _ = learn;
}
