//! Declarations of libexphil's C headers (`exphil.h`, `conditions.h`, `slp.h`, `games.h`, `plan.h`, `notes.h`, `examine.h`,
//! `learn.h`, `match.h`, `blocks.h`, `live.h`, `ranks.h`, `ops.h`) as bindgen writes them. The headers are the manual: names, rules of
//! ownership, threads and lifetimes are theirs. The crate `exphil` is the safe interface.
//!
//! The `*_INIT` macros of the header are [`init`] here: all zero, but for `struct_size`; `op` of the arguments of ops.h is the
//! caller's to set.
//!
//! ```
//! let mut config = exphil_sys::init::<exphil_sys::exphil_session_config>();
//! config.streams = 2;
//! assert_eq!(config.struct_size, std::mem::size_of_val(&config));
//! ```

#![allow(non_camel_case_types, clippy::all)]

include!("bindings.rs");

/// A structure that starts with its own size.
///
/// # Safety
/// `zeroed` must give a value that is all zero but for `struct_size`, and that must be the size of the type.
pub unsafe trait Versioned: Sized {
    /// The header's `*_INIT`.
    fn zeroed() -> Self;
}

/// The header's `*_INIT` of a structure.
pub fn init<T: Versioned>() -> T {
    T::zeroed()
}

macro_rules! versioned {
    ($($name:ident)*) => {
        $(unsafe impl Versioned for $name {
            fn zeroed() -> Self {
                let mut value = Self::default();
                value.struct_size = std::mem::size_of::<Self>();
                value
            }
        })*
        #[cfg(test)]
        const VERSIONED: usize = [$(stringify!($name)),*].len();
    };
}

versioned! {
    exphil_error exphil_allocator exphil_io exphil_executor exphil_context_config exphil_device_info exphil_memory_info
    exphil_spec exphil_melee_field exphil_melee_frame exphil_model_config exphil_model_info exphil_tensor_info
    exphil_comparison exphil_dataset_config exphil_replay_config exphil_replay_result exphil_dataset_info
    exphil_episode_info exphil_split_config exphil_sampling exphil_batch exphil_prefetcher_info exphil_optimizer_config
    exphil_optimizer_info exphil_communicator exphil_trainer_config exphil_metrics exphil_report exphil_session_config
    exphil_session_info exphil_slp_config exphil_slp_info exphil_slp_result exphil_evaluation exphil_games_config
    exphil_games_info exphil_game_info exphil_games_added exphil_selection exphil_selection_report exphil_plan_config
    exphil_plan exphil_examination exphil_examined exphil_melee_reward_config exphil_outcome_config
    exphil_outcome_metrics exphil_forward exphil_world exphil_rollout_config exphil_learner_config
    exphil_learner_metrics exphil_match_config exphil_match_result exphil_record exphil_block_info
    exphil_live_config exphil_live_info exphil_device_communicator exphil_ranks_config exphil_scan_args exphil_attention_args exphil_rnn_args exphil_norm_args
    exphil_conv_args exphil_adamw_args exphil_ops_config exphil_op_info
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sized_structure_has_its_init() {
        assert_eq!(include_str!("bindings.rs").matches("pub struct_size: usize").count(), VERSIONED);
    }

    #[test]
    fn the_library_is_the_one_that_was_declared() {
        assert_eq!(unsafe { exphil_version() } / 100, EXPHIL_VERSION as u32 / 100);
    }
}
