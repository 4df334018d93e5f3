// E0277: a rollout is used by one thread at a time
fn shared<T: Sync>() {}
fn main() {
    shared::<exphil::Model>();
    #[cfg(wrong)]
    shared::<exphil::Rollout>();
}
