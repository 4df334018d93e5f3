// E0382: the games of a world with opponents are played through it alone
use exphil::{Model, World};
fn play(mut world: World, opponent: &Model) -> exphil::Result<()> {
    world.reset(0, 1, &mut [], &mut [])?;
    world.against(&[opponent], 1)?;
    #[cfg(wrong)]
    world.reset(0, 1, &mut [], &mut [])?;
    Ok(())
}
fn main() {
    let _ = play;
}
