// E0505: the session of a live policy ends with it
use exphil::Live;
fn last(live: Live) -> exphil::Result<f32> {
    let session = live.session();
    #[cfg(wrong)]
    drop(live);
    session.value(0)
}
fn main() {
    let _ = last;
}
