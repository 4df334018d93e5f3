// Made by `tools/abi bindings` from include/exphil: do not edit.

/** Options that take a name, too: the names in the order of their numbers. */
export default {
  mode: ['carry', 'window'],
  heads: ['independent', 'autoregressive'],
  type: ['f32', 'f64', 'bf16', 'int8', 'f16'],
  value: ['none', 'detached', 'shared'],
  head_activation: ['silu', 'relu', 'gelu_tanh'],
  schedule: ['constant', 'cosine', 'restarts'],
  precision: ['f32', 'tf32', 'bf16', 'f16'],
  activations: ['f32', 'f64', 'bf16', 'int8', 'f16'],
  fake_quantize: ['f32', 'f64', 'bf16', 'int8', 'f16'],
  saved_weights: ['now', 'averaged'],
  reduction: ['means', 'sums'],
  deliver: ['due', 'decided'],
};
