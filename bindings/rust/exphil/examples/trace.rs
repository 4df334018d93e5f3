//! Replays a trace that a C program recorded, or times a step; tests/hosts/trace.h has the format.
//!   trace check MODEL TRACE     every action and every bit of every logit must be the same
//!   trace bench MODEL [STEPS]   median nanoseconds of one step_row, as one JSON object

use exphil::{Context, Model, Session, SessionConfig};
use std::time::Instant;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Takes little-endian values off the front of a file's bytes.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> Outcome<&'a [u8]> {
        if bytes > self.0.len() {
            return Err("the trace ends within a frame".into());
        }
        let (head, tail) = self.0.split_at(bytes);
        self.0 = tail;
        Ok(head)
    }

    fn int(&mut self) -> Outcome<i32> {
        Ok(i32::from_le_bytes(self.take(4)?.try_into()?))
    }

    fn long(&mut self) -> Outcome<u64> {
        Ok(u64::from_le_bytes(self.take(8)?.try_into()?))
    }

    fn ints(&mut self, values: &mut [i32]) -> Outcome<()> {
        for value in values {
            *value = self.int()?;
        }
        Ok(())
    }

    fn floats(&mut self, values: &mut [f32]) -> Outcome<()> {
        for value in values {
            *value = f32::from_bits(self.int()? as u32);
        }
        Ok(())
    }
}

/// What one frame of the trace holds and what the session answers.
struct Rows {
    floats: Vec<f32>,
    ids: Vec<i32>,
    actions: Vec<i32>,
    logits: Vec<f32>,
    wanted_actions: Vec<i32>,
    wanted_logits: Vec<f32>,
}

impl Rows {
    fn new(model: &Model) -> Outcome<Rows> {
        let info = model.info()?;
        Ok(Rows {
            floats: vec![0.0; info.float_count],
            ids: vec![0; info.id_count],
            actions: vec![0; info.head_count],
            logits: vec![0.0; info.logit_count],
            wanted_actions: vec![0; info.head_count],
            wanted_logits: vec![0.0; info.logit_count],
        })
    }

    fn is_as_wanted(&self) -> bool {
        let same_bits = |pair: (&f32, &f32)| pair.0.to_bits() == pair.1.to_bits();
        self.actions == self.wanted_actions && self.logits.iter().zip(&self.wanted_logits).all(same_bits)
    }
}

fn check(model: &Model, trace: &[u8]) -> Outcome<()> {
    let mut reader = Reader(trace);
    let mut rows = Rows::new(model)?;
    if reader.take(8)? != b"exphtrc1" {
        return Err("this is no trace".into());
    }
    let mut shape = [0; 6];
    reader.ints(&mut shape)?;
    let own = [rows.floats.len(), rows.ids.len(), rows.actions.len(), rows.logits.len()];
    if !own.iter().zip(&shape).all(|(&own, &told)| own as i32 == told) {
        return Err("the trace is of another model".into());
    }
    let (seed, frames) = (reader.long()?, reader.long()?);
    let config = SessionConfig { seed, deterministic: shape[4] != 0, ..Default::default() };
    let mut session = Session::new(model, &config)?;
    for frame in 0..frames {
        if reader.int()? != 0 {
            session.reset_all()?;
        }
        reader.floats(&mut rows.floats)?;
        reader.ints(&mut rows.ids)?;
        reader.ints(&mut rows.wanted_actions)?;
        reader.floats(&mut rows.wanted_logits)?;
        session.step_row(&rows.floats, &rows.ids, &mut rows.actions)?;
        session.logits(0, &mut rows.logits)?;
        if !rows.is_as_wanted() {
            return Err(format!("frame {} differs", frame).into());
        }
    }
    println!("rust: {} frames identical", frames);
    Ok(())
}

/// Median of the nanoseconds that each of so many calls takes, the clock's own included.
fn median(steps: usize, mut work: impl FnMut() -> exphil::Result<()>) -> exphil::Result<u128> {
    let mut took = vec![0; steps];
    for place in &mut took {
        let start = Instant::now();
        work()?;
        *place = start.elapsed().as_nanos();
    }
    took.sort_unstable();
    Ok(took[steps / 2])
}

fn bench(model: &Model, steps: usize) -> Outcome<()> {
    let mut rows = Rows::new(model)?;
    let mut session = Session::new(model, &SessionConfig { seed: 1, deterministic: true, ..Default::default() })?;
    let clock = median(steps, || Ok(()))?;
    let call = median(steps, || session.step_row(&rows.floats, &rows.ids, &mut rows.actions))?;
    println!("{{\"host\":\"rust\",\"median_ns\":{},\"clock_ns\":{},\"steps\":{}}}", call, clock, steps);
    Ok(())
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let context = Context::new()?;
    match arguments[..] {
        ["check", model, trace] => check(&Model::load(&context, model)?, &std::fs::read(trace)?),
        ["bench", model] => bench(&Model::load(&context, model)?, 100_000),
        ["bench", model, steps] => bench(&Model::load(&context, model)?, steps.parse()?),
        _ => Err("trace check MODEL TRACE | trace bench MODEL [STEPS]".into()),
    }
}
