defmodule LibExphil.Nif do
  @moduledoc false
  # The functions of c_src, as they are. Everything here is called by the modules around it, which document it.

  @on_load :load

  # Numbers that load and upgrade in nif_main.c return.
  @refusals %{
    2 => "the libexphil that was loaded is older than the one that the NIF was built with",
    3 => "handles of the old code look different: restart instead of upgrading",
    4 => "the new code uses another libexphil than the old: restart instead of upgrading"
  }

  @doc false
  def load do
    path = :filename.join(:code.priv_dir(:libexphil), 'libexphil_nif')

    case :erlang.load_nif(path, 0) do
      {:error, {kind, text}} -> {:error, {kind, explain(to_string(text))}}
      ok -> ok
    end
  end

  defp explain(text) do
    case Regex.run(~r/\((\d+)\)/, text) do
      [_, number] -> Map.get(@refusals, String.to_integer(number), text)
      nil -> text
    end
  end

  def close(_a), do: :erlang.nif_error(:not_loaded)
  def version, do: :erlang.nif_error(:not_loaded)
  def devices, do: :erlang.nif_error(:not_loaded)
  def context_create(_a, _b), do: :erlang.nif_error(:not_loaded)
  def context_device(_a), do: :erlang.nif_error(:not_loaded)
  def context_memory(_a), do: :erlang.nif_error(:not_loaded)
  def model_create(_a, _b), do: :erlang.nif_error(:not_loaded)
  def model_load(_a, _b), do: :erlang.nif_error(:not_loaded)
  def model_load_memory(_a, _b), do: :erlang.nif_error(:not_loaded)
  def model_save(_a, _b), do: :erlang.nif_error(:not_loaded)
  def model_info(_a), do: :erlang.nif_error(:not_loaded)
  def model_spec(_a), do: :erlang.nif_error(:not_loaded)
  def model_sampling(_a), do: :erlang.nif_error(:not_loaded)
  def model_tensors(_a), do: :erlang.nif_error(:not_loaded)
  def model_tensor(_a, _b), do: :erlang.nif_error(:not_loaded)
  def model_put_tensor(_a, _b, _c), do: :erlang.nif_error(:not_loaded)
  def model_quantize(_a, _b), do: :erlang.nif_error(:not_loaded)
  def model_compare(_a, _b, _c, _d), do: :erlang.nif_error(:not_loaded)
  def model_calibration(_a), do: :erlang.nif_error(:not_loaded)
  def model_put_calibration(_a, _b), do: :erlang.nif_error(:not_loaded)
  def model_export_onnx(_a, _b), do: :erlang.nif_error(:not_loaded)
  def dataset_create(_a, _b), do: :erlang.nif_error(:not_loaded)
  def dataset_open(_a, _b), do: :erlang.nif_error(:not_loaded)
  def dataset_save(_a, _b), do: :erlang.nif_error(:not_loaded)
  def dataset_verify(_a), do: :erlang.nif_error(:not_loaded)
  def dataset_add_replay(_a, _b, _c), do: :erlang.nif_error(:not_loaded)
  def dataset_add_replay_memory(_a, _b, _c), do: :erlang.nif_error(:not_loaded)
  def dataset_add_rows(_a, _b, _c, _d, _e, _f), do: :erlang.nif_error(:not_loaded)
  def dataset_info(_a), do: :erlang.nif_error(:not_loaded)
  def dataset_spec(_a), do: :erlang.nif_error(:not_loaded)
  def dataset_episode(_a, _b), do: :erlang.nif_error(:not_loaded)
  def dataset_frame(_a, _b), do: :erlang.nif_error(:not_loaded)
  def dataset_rows(_a, _b, _c), do: :erlang.nif_error(:not_loaded)
  def dataset_add_games(_a, _b, _c), do: :erlang.nif_error(:not_loaded)
  def dataset_split(_a, _b), do: :erlang.nif_error(:not_loaded)
  def prefetcher_create(_a, _b), do: :erlang.nif_error(:not_loaded)
  def prefetcher_next(_a), do: :erlang.nif_error(:not_loaded)
  def prefetcher_seek(_a, _b, _c), do: :erlang.nif_error(:not_loaded)
  def prefetcher_info(_a), do: :erlang.nif_error(:not_loaded)
  def optimizer_create(_a, _b), do: :erlang.nif_error(:not_loaded)
  def optimizer_info(_a), do: :erlang.nif_error(:not_loaded)
  def trainer_create(_a, _b, _c, _d), do: :erlang.nif_error(:not_loaded)
  def trainer_step(_a), do: :erlang.nif_error(:not_loaded)
  def trainer_step_batch(_a, _b), do: :erlang.nif_error(:not_loaded)
  def trainer_model(_a, _b), do: :erlang.nif_error(:not_loaded)
  def trainer_save(_a, _b), do: :erlang.nif_error(:not_loaded)
  def trainer_resume(_a, _b), do: :erlang.nif_error(:not_loaded)
  def trainer_evaluate(_a, _b, _c, _d), do: :erlang.nif_error(:not_loaded)
  def evaluate(_a, _b, _c, _d), do: :erlang.nif_error(:not_loaded)
  def training_start(_a, _b, _c, _d), do: :erlang.nif_error(:not_loaded)
  def training_cancel(_a), do: :erlang.nif_error(:not_loaded)
  def session_create(_a, _b), do: :erlang.nif_error(:not_loaded)
  def session_clone(_a), do: :erlang.nif_error(:not_loaded)
  def session_step(_a, _b), do: :erlang.nif_error(:not_loaded)
  def session_step_row(_a, _b, _c, _d), do: :erlang.nif_error(:not_loaded)
  def session_logits(_a, _b), do: :erlang.nif_error(:not_loaded)
  def session_reset(_a, _b), do: :erlang.nif_error(:not_loaded)
  def session_override(_a, _b, _c), do: :erlang.nif_error(:not_loaded)
  def session_state_save(_a, _b), do: :erlang.nif_error(:not_loaded)
  def session_state_restore(_a, _b, _c), do: :erlang.nif_error(:not_loaded)
  def session_info(_a), do: :erlang.nif_error(:not_loaded)
  def melee_spec(_a, _b), do: :erlang.nif_error(:not_loaded)
  def melee_fields(_a), do: :erlang.nif_error(:not_loaded)
  def melee_encode(_a, _b), do: :erlang.nif_error(:not_loaded)
  def melee_pack(_a), do: :erlang.nif_error(:not_loaded)
  def melee_unpack(_a), do: :erlang.nif_error(:not_loaded)
  def melee_pad_encode(_a, _b), do: :erlang.nif_error(:not_loaded)
  def melee_pad_decode(_a, _b), do: :erlang.nif_error(:not_loaded)
  def melee_character_name(_a), do: :erlang.nif_error(:not_loaded)
  def melee_stage_name(_a), do: :erlang.nif_error(:not_loaded)
  def replay_open(_a, _b, _c), do: :erlang.nif_error(:not_loaded)
  def replay_read(_a, _b, _c), do: :erlang.nif_error(:not_loaded)
  def replay_info(_a), do: :erlang.nif_error(:not_loaded)
  def replay_position(_a, _b), do: :erlang.nif_error(:not_loaded)
  def replay_frame(_a, _b), do: :erlang.nif_error(:not_loaded)
  def replay_slots(_a), do: :erlang.nif_error(:not_loaded)
  def replay_player(_a, _b, _c, _d), do: :erlang.nif_error(:not_loaded)
  def replay_melee_frame(_a, _b, _c, _d), do: :erlang.nif_error(:not_loaded)
  def replay_melee_pad(_a, _b, _c), do: :erlang.nif_error(:not_loaded)
  def replay_dump(_a, _b, _c), do: :erlang.nif_error(:not_loaded)
  def replay_rows(_a, _b, _c, _d), do: :erlang.nif_error(:not_loaded)
  def live_create(_a), do: :erlang.nif_error(:not_loaded)
  def live_push(_a, _b), do: :erlang.nif_error(:not_loaded)
  def live_reset(_a), do: :erlang.nif_error(:not_loaded)
  def live_info(_a), do: :erlang.nif_error(:not_loaded)
  def live_frame(_a), do: :erlang.nif_error(:not_loaded)
  def live_player(_a, _b, _c), do: :erlang.nif_error(:not_loaded)
  def live_melee_frame(_a, _b, _c), do: :erlang.nif_error(:not_loaded)
  def games_open(_a, _b), do: :erlang.nif_error(:not_loaded)
  def games_info(_a), do: :erlang.nif_error(:not_loaded)
  def games_game(_a, _b), do: :erlang.nif_error(:not_loaded)
  def games_read(_a, _b), do: :erlang.nif_error(:not_loaded)
  def games_verify(_a), do: :erlang.nif_error(:not_loaded)
  def games_write(_a, _b, _c, _d), do: :erlang.nif_error(:not_loaded)
end
