// E0382: a trainer's prefetcher cannot be asked for batches any more, which would move under the trainer
use exphil::{Model, Optimizer, Prefetcher, Trainer, TrainerConfig};
fn train(model: &Model, optimizer: &Optimizer, mut prefetcher: Prefetcher) -> exphil::Result<()> {
    prefetcher.seek(0, 0)?;
    Trainer::new(model, optimizer, Some(prefetcher), &TrainerConfig::default())?;
    #[cfg(wrong)]
    prefetcher.seek(0, 0)?;
    Ok(())
}
fn main() {
    let _ = train;
}
