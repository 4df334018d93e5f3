// E0506: the arrays of a batch stay as they are until backward
use exphil::{Batch, Trainer};
fn update(trainer: &mut Trainer) -> exphil::Result<()> {
    let mut floats = [0.0; 4];
    let half = trainer.forward(&Batch { floats: &floats, ..Batch::default() }, None)?;
    #[cfg(wrong)]
    {
        floats = [1.0; 4];
    }
    half.abandon();
    floats[0] = 1.0;
    Ok(())
}
fn main() {
    let _ = update;
}
