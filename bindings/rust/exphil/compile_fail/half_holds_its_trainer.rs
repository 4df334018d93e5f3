// E0499: between forward and backward the trainer takes no other call
use exphil::{Batch, Trainer};
fn update(trainer: &mut Trainer, batch: &Batch<'_>) -> exphil::Result<()> {
    let half = trainer.forward(batch, None)?;
    #[cfg(wrong)]
    trainer.step()?;
    half.backward::<f32>(&[], None, 0.0)?;
    Ok(())
}
fn main() {
    let _ = update;
}
