//! Matches, and worlds in which policies that do not learn play the other seat.

mod play;

use exphil::*;
use play::{fails, model, Parts};

/// Two players; who says the larger number has a point. Five frames.
struct Duel {
    frames: u32,
    breaks: u32,
}

impl Duel {
    fn spec() -> Spec {
        Spec::new("duel", "duel").floats(1).id("seat", 2, 0).head(HeadSpec::categorical("number", 4))
    }
}

impl Game for Duel {
    fn reset(&mut self, seed: u64, floats: &mut [f32], ids: &mut [i32]) -> Played<()> {
        self.frames = 0;
        floats.fill((seed % 7) as f32 / 7.0);
        ids.copy_from_slice(&[0, 1]);
        Ok(())
    }

    fn step(&mut self, actions: &[i32], _: &mut [f32], ids: &mut [i32], reward: &mut [f32]) -> Played<End> {
        self.frames += 1;
        assert!(self.frames != self.breaks, "the table turns");
        ids.copy_from_slice(&[0, 1]);
        reward[0] = (actions[0] - actions[1]).signum() as f32;
        reward[1] = -reward[0];
        Ok(if self.frames < 5 { End::GoesOn } else { End::Over })
    }
}

fn duels(context: &Context, lanes: usize, breaks: u32) -> World {
    World::of(context, &Duel::spec(), 2, (0..lanes).map(|_| Duel { frames: 0, breaks }).collect()).unwrap()
}

/// Says this number mostly.
fn player(context: &Context, number: usize, sure: f32) -> Model {
    let mut model = model(context, &Duel::spec(), 16);
    let mut bias = [0.0f32; 4];
    bias[number] = sure;
    model.set_tensor("heads.logits.bias", &bias).unwrap();
    model
}

#[test]
fn the_better_one_wins() {
    let context = Context::new().unwrap();
    let (good, bad) = (player(&context, 3, 3.0), player(&context, 0, 3.0));
    let config = MatchConfig { games: 50, points: -1.0, seed: 2, ..Default::default() };
    let won = match_policies(&good, &bad, &mut duels(&context, 6, 0), &config).unwrap();
    assert!(won.score > 0.9 && won.low > 0.8 && won.high <= 1.0 && won.points > 2.0 * won.points_against, "{:?}", won);
    let lost = match_policies(&bad, &good, &mut duels(&context, 6, 0), &config).unwrap();
    assert_eq!((lost.won, lost.lost, lost.drawn), (won.lost, won.won, won.drawn));
    assert_eq!(match_policies(&good, &bad, &mut duels(&context, 1, 0), &config).unwrap(), won);
    let sure = MatchConfig { games: 2, points: 3.0, deterministic: true, ..Default::default() };
    let sure = match_policies(&good, &bad, &mut duels(&context, 6, 0), &sure).unwrap();
    assert_eq!((sure.won, sure.points, sure.points_against, sure.frames), (2, 6.0, 0.0, 6.0));
    let pong = World::create(&context, "pong-two", 8).unwrap().spec().clone();
    let pong = model(&context, &pong, 16);
    let config = MatchConfig { games: 8, points: 1.0, ..Default::default() };
    let even = match_policies(&pong, &pong, &mut World::create(&context, "pong-two", 8).unwrap(), &config).unwrap();
    assert_eq!((even.games, even.score, even.low, even.high), (8, 0.5, 0.5, 0.5));
    fails(match_policies(&good, &pong, &mut duels(&context, 2, 0), &config), Status::Mismatch, "model b");
    let odd = MatchConfig { games: 3, ..Default::default() };
    fails(match_policies(&good, &bad, &mut duels(&context, 2, 0), &odd), Status::Invalid, "games");
    fails(match_policies(&good, &bad, &mut play::catch(&context, 2), &config), Status::Invalid, "seats");
}

#[test]
fn opponents_play_the_other_seat() {
    let context = Context::new().unwrap();
    let (good, bad) = (player(&context, 3, 9.0), player(&context, 0, 9.0));
    let mut world = duels(&context, 4, 0).against(&[&good, &bad], 5).unwrap();
    assert_eq!((world.lanes(), world.seats(), world.state_bytes()), (4, 1, 0));
    let (mut floats, mut ids, mut reward, mut end) = ([0.0; 4], [9; 4], [0.0; 4], [End::GoesOn; 4]);
    for lane in 0..4 {
        world.reset(lane, 1, &mut floats[lane..lane + 1], &mut ids[lane..lane + 1]).unwrap();
    }
    assert_eq!(ids, [0, 0, 1, 1]);
    for _ in 0..5 {
        world.step(&[2; 4], &mut floats, &mut ids, &mut reward, &mut end).unwrap();
    }
    assert_eq!(end, [End::Over; 4]);
    let told = |world: &mut World, index| world.opponent(index, None).map(|r| (r.episodes, r.won, r.lost)).unwrap();
    assert_eq!((told(&mut world, 0), told(&mut world, 1)), ((2, 0, 2), (2, 2, 0)));
    assert_eq!(told(&mut world, 0), (0, 0, 0));
    // Another in its place; the games go on, and who learns wins more against both.
    world.opponent(0, Some(&bad)).unwrap();
    fails(world.opponent(2, None), Status::Invalid, "index");
    fails(world.opponent(0, Some(&good.with_value(Value::Detached, 0).unwrap())), Status::Mismatch, "");
    let config = LearnerConfig { half_life_frames: 1.0, ..Default::default() };
    let policy = model(&context, &Duel::spec(), 16);
    drop((good, bad));
    let mut parts = Parts::new(world, &policy, 40, 12, &config);
    let metrics = parts.chunks(12);
    assert!(metrics[11].reward > metrics[0].reward && told(&mut parts.world, 1).0 > 0, "{:?}", metrics[11]);
    fails(
        parts.learner.save(&parts.rollout, Some(&parts.world), "/nowhere/at/all"),
        Status::Unsupported,
        "state_bytes",
    );
}

#[test]
fn opponents_that_are_refused() {
    let context = Context::new().unwrap();
    let player = player(&context, 1, 1.0);
    fails(duels(&context, 2, 0).against(&[], 0), Status::Invalid, "count");
    fails(duels(&context, 1, 0).against(&[&player, &player], 0), Status::Invalid, "count");
    fails(play::catch(&context, 2).against(&[&player], 0), Status::Invalid, "seats");
    let elsewhere = model(&Context::new().unwrap(), &Duel::spec(), 16);
    fails(duels(&context, 2, 0).against(&[&elsewhere], 0), Status::Mismatch, "context");
}

#[test]
fn the_panic_of_a_game_beneath_goes_on() {
    let context = Context::new().unwrap();
    let player = player(&context, 1, 1.0);
    let mut world = duels(&context, 2, 3).against(&[&player], 0).unwrap();
    let policy = model(&context, &Duel::spec(), 16);
    let session = SessionConfig { streams: 2, ..Default::default() };
    let mut rollout = Rollout::new(&policy, &session, &RolloutConfig::default()).unwrap();
    let run = std::panic::AssertUnwindSafe(|| rollout.run(&mut world));
    let panic = std::panic::catch_unwind(run).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"the table turns"));
    fails(rollout.run(&mut world), Status::State, "failed before");
}
