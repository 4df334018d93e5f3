// E0277: a session is used by one thread at a time
fn shared<T: Sync>() {}
fn main() {
    shared::<exphil::Context>();
    #[cfg(wrong)]
    shared::<exphil::Session>();
}
