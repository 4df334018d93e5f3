// E0505: what forward gives is gone with backward
use exphil::Half;
fn last(half: Half<'_>) -> exphil::Result<usize> {
    let logits = half.logits::<f32>()?;
    #[cfg(wrong)]
    half.abandon();
    Ok(logits.len())
}
fn main() {
    let _ = last;
}
