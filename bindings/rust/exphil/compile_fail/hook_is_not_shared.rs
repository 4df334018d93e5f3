// E0277: contexts are shared, so hooks are called by many threads
fn main() {
    let asked = std::cell::Cell::new(0);
    let builder = exphil::Context::builder();
    #[cfg(wrong)]
    let builder = builder.cancel(move || asked.replace(1) > 0);
    #[cfg(not(wrong))]
    asked.set(1);
    let _ = builder;
}
