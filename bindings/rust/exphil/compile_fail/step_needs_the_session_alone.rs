// E0596: a step changes the session
use exphil::Session;
fn step(session: &mut Session, other: &Session) -> exphil::Result<()> {
    session.step_row(&[], &[], &mut [])?;
    #[cfg(wrong)]
    other.step_row(&[], &[], &mut [])?;
    other.logits(0, &mut [])
}
fn main() {
    let _ = step;
}
