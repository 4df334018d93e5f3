// E0616: how large a frame is nobody may claim
fn main() {
    let mut frame = exphil::melee::Frame::default();
    frame.stage = 31;
    #[cfg(wrong)]
    {
        frame.struct_size = 1 << 20;
    }
    let _ = frame;
}
