// E0499: a batch lives until the next one is asked for
fn read(prefetcher: &mut exphil::Prefetcher) -> exphil::Result<usize> {
    let first = prefetcher.next_batch()?.map_or(0, |batch| batch.mask.len());
    #[cfg(wrong)]
    let first = prefetcher.next_batch()?;
    prefetcher.next_batch()?;
    #[cfg(wrong)]
    let first = first.map_or(0, |batch| batch.mask.len());
    Ok(first)
}
fn main() {
    let _ = read;
}
