// E0277: the library may step lanes from several threads
use exphil::{End, Game, Played};
#[allow(dead_code)]
struct Mine<'a>(#[cfg(wrong)] std::rc::Rc<&'a i32>, #[cfg(not(wrong))] std::sync::Arc<&'a i32>);
impl Game for Mine<'_> {
    fn reset(&mut self, _: u64, _: &mut [f32], _: &mut [i32]) -> Played<()> {
        Ok(())
    }
    fn step(&mut self, _: &[i32], _: &mut [f32], _: &mut [i32], _: &mut [f32]) -> Played<End> {
        Ok(End::Over)
    }
}
fn main() {}
