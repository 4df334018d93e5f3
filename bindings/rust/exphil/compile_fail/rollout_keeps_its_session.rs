// E0596: the session of a rollout is stepped by the rollout alone
use exphil::Rollout;
fn value(rollout: &mut Rollout) -> exphil::Result<f32> {
    #[cfg(wrong)]
    rollout.session().reset(0)?;
    rollout.session().value(0)
}
fn main() {
    let _ = value;
}
