// E0277: a live policy is used by one thread at a time
fn shared<T: Sync>() {}
fn main() {
    shared::<exphil::Model>();
    #[cfg(wrong)]
    shared::<exphil::Live>();
}
