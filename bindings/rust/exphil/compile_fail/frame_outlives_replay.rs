// E0505: frames are borrowed from their replay
fn last(replay: exphil::Replay) -> Option<i32> {
    let frame = replay.frame(0);
    #[cfg(wrong)]
    drop(replay);
    frame.map(|frame| frame.frame)
}
fn main() {
    let _ = last;
}
