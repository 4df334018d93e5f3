// E0596: the session of a live policy is stepped by the live policy alone
use exphil::Live;
fn value(live: &mut Live) -> exphil::Result<f32> {
    #[cfg(wrong)]
    live.session().reset(0)?;
    live.session().value(0)
}
fn main() {
    let _ = value;
}
