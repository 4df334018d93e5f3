//! Plays a Melee policy for a second of a very quiet game: play MODEL

use exphil::melee::{Character, Frame, Pad};
use exphil::{Context, Model, Session, SessionConfig};

/// Two characters who stand on Final Destination and do nothing.
fn quiet_frame(number: i32) -> Frame {
    let mut frame = Frame::new(number, 32, 1);
    let standing = Character { present: 1, ..Character::default() };
    frame.player[0] = standing;
    frame.player[1] = Character { x: 30.0, ..standing };
    frame
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: play MODEL")?;
    let model = Model::load(&Context::new()?, path)?;
    let mut session = Session::new(&model, &SessionConfig::default())?;
    let mut pads = [Pad::default()];
    for number in 0..60 {
        session.step(&[quiet_frame(number)], &mut pads)?;
        let pad = pads[0];
        println!("{:2}  buttons {:04x}  main {:+.2} {:+.2}", number, pad.buttons, pad.main_x, pad.main_y);
    }
    let info = session.info()?;
    println!("{} steps, median at most {} ns, slowest {} ns", info.steps, info.p50_ns, info.max_ns);
    Ok(())
}
