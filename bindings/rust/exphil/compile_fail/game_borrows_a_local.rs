// E0597: games live as long as their world, so they may not borrow what goes away before
use exphil::{End, Game, Played};
#[allow(dead_code)]
struct Mine<'a>(&'a i32);
impl Game for Mine<'_> {
    fn reset(&mut self, _: u64, _: &mut [f32], _: &mut [i32]) -> Played<()> {
        Ok(())
    }
    fn step(&mut self, _: &[i32], _: &mut [f32], _: &mut [i32], _: &mut [f32]) -> Played<End> {
        Ok(End::Over)
    }
}
fn open(context: &exphil::Context, spec: &exphil::Spec) -> exphil::Result<exphil::World> {
    static POINTS: i32 = 0;
    let points = 0;
    #[cfg(wrong)]
    return exphil::World::of(context, spec, 1, vec![Mine(&points)]);
    #[cfg(not(wrong))]
    return exphil::World::of(context, spec, 1, vec![Mine(&POINTS)]);
}
fn main() {
    let _ = open;
}
