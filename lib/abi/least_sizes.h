/* The least struct_size of every struct that grows: its size in the first release that had it, which is what the
 * oldest program gives. Written by `tools/abi release` and `tools/abi sizes`; doc/abi.md says when. */
#ifndef XPH_ABI_LEAST_SIZES_H
#define XPH_ABI_LEAST_SIZES_H

#include <exphil/blocks.h>
#include <exphil/conditions.h>
#include <exphil/examine.h>
#include <exphil/games.h>
#include <exphil/learn.h>
#include <exphil/live.h>
#include <exphil/match.h>
#include <exphil/notes.h>
#include <exphil/ops.h>
#include <exphil/plan.h>
#include <exphil/ranks.h>
#include <exphil/slp.h>

/* Systems of 32 bits have other layouts: there the library is linked into what it was built with. */
#if UINTPTR_MAX > 0xffffffff
#  define XPH_LEAST(type) ((size_t)XPH_LEAST_##type)
enum {
    XPH_LEAST_exphil_error = 256,              /* 0.1.0 */
    XPH_LEAST_exphil_allocator = 32,           /* 0.1.0 */
    XPH_LEAST_exphil_io = 112,                 /* 0.1.0 */
    XPH_LEAST_exphil_executor = 32,            /* 0.1.0 */
    XPH_LEAST_exphil_context_config = 104,     /* 0.1.0 */
    XPH_LEAST_exphil_device_info = 216,        /* 0.1.0 */
    XPH_LEAST_exphil_memory_info = 64,         /* 0.1.0 */
    XPH_LEAST_exphil_spec = 72,                /* 0.1.0 */
    XPH_LEAST_exphil_melee_field = 184,        /* 0.1.0 */
    XPH_LEAST_exphil_melee_frame = 1288,       /* 0.1.0 */
    XPH_LEAST_exphil_model_config = 144,       /* 0.1.0 */
    XPH_LEAST_exphil_model_info = 464,         /* 0.1.0 */
    XPH_LEAST_exphil_tensor_info = 184,        /* 0.1.0 */
    XPH_LEAST_exphil_comparison = 584,         /* 0.1.0 */
    XPH_LEAST_exphil_dataset_config = 16,      /* 0.1.0 */
    XPH_LEAST_exphil_replay_config = 32,       /* 0.1.0 */
    XPH_LEAST_exphil_replay_result = 40,       /* 0.1.0 */
    XPH_LEAST_exphil_dataset_info = 152,       /* 0.1.0 */
    XPH_LEAST_exphil_episode_info = 56,        /* 0.1.0 */
    XPH_LEAST_exphil_split_config = 32,        /* 0.1.0 */
    XPH_LEAST_exphil_sampling = 72,            /* 0.1.0 */
    XPH_LEAST_exphil_batch = 96,               /* 0.1.0 */
    XPH_LEAST_exphil_prefetcher_info = 56,     /* 0.1.0 */
    XPH_LEAST_exphil_optimizer_config = 112,   /* 0.1.0 */
    XPH_LEAST_exphil_optimizer_info = 32,      /* 0.1.0 */
    XPH_LEAST_exphil_communicator = 32,        /* 0.1.0 */
    XPH_LEAST_exphil_trainer_config = 56,      /* 0.1.0 */
    XPH_LEAST_exphil_metrics = 216,            /* 0.1.0 */
    XPH_LEAST_exphil_report = 1120,            /* 0.1.0 */
    XPH_LEAST_exphil_session_config = 72,      /* 0.1.0 */
    XPH_LEAST_exphil_session_info = 616,       /* 0.1.0 */
    XPH_LEAST_exphil_slp_config = 24,          /* 0.1.0 */
    XPH_LEAST_exphil_slp_info = 344,           /* 0.1.0 */
    XPH_LEAST_exphil_melee_reward_config = 64, /* 0.2.0 */
    XPH_LEAST_exphil_outcome_config = 64,      /* 0.2.0 */
    XPH_LEAST_exphil_outcome_metrics = 88,     /* 0.2.0 */
    XPH_LEAST_exphil_forward = 40,             /* 0.2.0 */
    XPH_LEAST_exphil_world = 88,               /* 0.2.0 */
    XPH_LEAST_exphil_rollout_config = 24,      /* 0.2.0 */
    XPH_LEAST_exphil_learner_config = 152,     /* 0.2.0 */
    XPH_LEAST_exphil_learner_metrics = 176,    /* 0.2.0 */
    XPH_LEAST_exphil_block_info = 48,          /* 0.2.0 */
    XPH_LEAST_exphil_evaluation = 56,          /* 0.2.0 */
    XPH_LEAST_exphil_examined = 96,            /* 0.2.0 */
    XPH_LEAST_exphil_examination = 64,         /* 0.2.0 */
    XPH_LEAST_exphil_slp_result = 56,          /* 0.2.0 */
    XPH_LEAST_exphil_games_info = 48,          /* 0.2.0 */
    XPH_LEAST_exphil_game_info = 144,          /* 0.2.0 */
    XPH_LEAST_exphil_games_config = 24,        /* 0.2.0 */
    XPH_LEAST_exphil_games_added = 40,         /* 0.2.0 */
    XPH_LEAST_exphil_selection = 128,          /* 0.2.0 */
    XPH_LEAST_exphil_selection_report = 312,   /* 0.2.0 */
    XPH_LEAST_exphil_live_config = 160,        /* 0.2.0 */
    XPH_LEAST_exphil_live_info = 352,          /* 0.2.0 */
    XPH_LEAST_exphil_match_config = 48,        /* 0.2.0 */
    XPH_LEAST_exphil_match_result = 88,        /* 0.2.0 */
    XPH_LEAST_exphil_record = 32,              /* 0.2.0 */
    XPH_LEAST_exphil_scan_args = 824,          /* 0.2.0 */
    XPH_LEAST_exphil_attention_args = 496,     /* 0.2.0 */
    XPH_LEAST_exphil_rnn_args = 600,           /* 0.2.0 */
    XPH_LEAST_exphil_norm_args = 328,          /* 0.2.0 */
    XPH_LEAST_exphil_conv_args = 464,          /* 0.2.0 */
    XPH_LEAST_exphil_adamw_args = 248,         /* 0.2.0 */
    XPH_LEAST_exphil_ops_config = 16,          /* 0.2.0 */
    XPH_LEAST_exphil_op_info = 40,             /* 0.2.0 */
    XPH_LEAST_exphil_plan_config = 112,        /* 0.2.0 */
    XPH_LEAST_exphil_plan = 392,               /* 0.2.0 */
    XPH_LEAST_exphil_device_communicator = 56, /* 0.2.0 */
    XPH_LEAST_exphil_ranks_config = 56,        /* 0.2.0 */
};
#else
#  define XPH_LEAST(type) sizeof(type)
#endif

#endif
