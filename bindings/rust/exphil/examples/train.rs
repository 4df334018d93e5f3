//! Trains a Melee policy on replays and saves it: train OUTPUT UPDATES REPLAY...

use exphil::{
    Context, Dataset, Model, ModelConfig, Optimizer, OptimizerConfig, Prefetcher, ReplayConfig, Sampling, Schedule,
    Trainer, TrainerConfig, Weights,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let output = arguments.next().ok_or("usage: train OUTPUT UPDATES REPLAY...")?;
    let total: usize = arguments.next().ok_or("usage: train OUTPUT UPDATES REPLAY...")?.parse()?;
    let context = Context::builder().log(exphil::LogLevel::Warning, |_, text| eprintln!("{}", text)).build()?;
    let mut dataset = Dataset::new(&context, None)?;
    for path in arguments {
        let added = dataset.add_replay(&path, &ReplayConfig::default())?;
        let early = if added.truncated != 0 { ", the replay ends early" } else { "" };
        println!("{}: {} frames in {} episodes{}", path, added.frames, added.episodes, early);
    }
    // With past actions as inputs a policy may learn no more than to repeat them.
    let no_previous_action = true;
    let blocks = Some("mamba".into());
    let config = ModelConfig { blocks, hidden: 64, head_width: 64, no_previous_action, ..Default::default() };
    let model = Model::create(&context, &config)?;
    let cosine = OptimizerConfig { schedule: Schedule::Cosine, total_updates: total, ..Default::default() };
    let optimizer = Optimizer::new(&model, &cosine)?;
    let prefetcher = Prefetcher::new(&dataset, &Sampling { batch: 8, ..model.sampling()? })?;
    let mut trainer = Trainer::new(&model, &optimizer, Some(prefetcher), &TrainerConfig::default())?;
    for metrics in trainer.updates(total) {
        let metrics = metrics?;
        if metrics.update % 10 == 0 || metrics.update == 1 {
            println!("{:5}  loss {:.4}", metrics.update, metrics.loss);
        }
    }
    let report = trainer.evaluate(Weights::Latest, &dataset, None)?;
    println!(
        "{:.1} % of frames right, copying the last action {:.1} %",
        100.0 * report.exact_accuracy,
        100.0 * report.exact_copy
    );
    trainer.model(Weights::Latest)?.save(&output)?;
    Ok(())
}
