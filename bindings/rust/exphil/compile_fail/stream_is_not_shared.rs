// E0277: a live stream is used by one thread at a time
fn shared<T: Sync>() {}
fn main() {
    shared::<exphil::Replay>();
    #[cfg(wrong)]
    shared::<exphil::SlpStream>();
}
