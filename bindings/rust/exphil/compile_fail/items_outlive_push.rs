// E0502: a live frame and its items last until the next push
fn count(stream: &mut exphil::SlpStream) -> exphil::Result<usize> {
    let items = stream.frame().map_or(&[][..], |frame| frame.items());
    #[cfg(wrong)]
    stream.push(b"")?;
    Ok(items.len())
}
fn main() {
    let _ = count;
}
