// E0373: hooks live as long as the last handle, so they may not borrow what goes away before
fn main() {
    let stop = std::sync::atomic::AtomicBool::new(false);
    let builder = exphil::Context::builder();
    #[cfg(wrong)]
    let builder = builder.cancel(|| stop.load(std::sync::atomic::Ordering::Relaxed));
    let _ = (builder, &stop);
}
