// E0505: the session of a rollout ends with it
use exphil::Rollout;
fn last(rollout: Rollout) -> exphil::Result<f32> {
    let session = rollout.session();
    #[cfg(wrong)]
    drop(rollout);
    session.value(0)
}
fn main() {
    let _ = last;
}
