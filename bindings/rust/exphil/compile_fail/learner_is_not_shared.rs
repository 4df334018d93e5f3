// E0277: a learner is used by one thread at a time
fn shared<T: Sync>() {}
fn main() {
    shared::<exphil::Optimizer>();
    #[cfg(wrong)]
    shared::<exphil::Learner>();
}
