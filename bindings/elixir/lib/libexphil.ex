defmodule LibExphil do
  @moduledoc """
  Policies for 60 Hz games, in the BEAM: train by behaviour cloning, play one frame at a time.

  The library is `libexphil`, in C; this is its face in Elixir. Its header, `exphil/exphil.h`, is the manual of every field and
  default; the modules here say what is different. The way through them is

      LibExphil.Context      what everything belongs to: device, threads, log
      LibExphil.Dataset      frames in memory, from replays or from rows of any game
      LibExphil.Model        create, load, save
      LibExphil.Prefetcher, LibExphil.Optimizer, LibExphil.Trainer, LibExphil.Training
      LibExphil.World, LibExphil.Rollout, LibExphil.Learner, LibExphil.Match      better by playing
      LibExphil.Session      play: `LibExphil.Session.step/2`
      LibExphil.LiveLearner  play, and learning behind it from a person or from rewards
      LibExphil.Agent        a process that plays one game, with delay and rollback
      LibExphil.Replay, LibExphil.Live     Slippi replays, and games while they are played
      LibExphil.Melee        frames, controllers, the encoder

  ## Rules

  **Options** are keyword lists or maps with the names of the C fields. What is left out has its default. A name that does not
  exist and a value that does not fit are `{:error, %LibExphil.Error{status: :invalid}}` with the name.

  **Results** are `{:ok, value}`, `:ok` or `{:error, %LibExphil.Error{}}`. Every such function has a twin with `!` that
  raises. A handle of the wrong kind is a `FunctionClauseError`.

  **Handles** are structs with a reference. They may be dropped in any order: children keep their parents. What they hold is
  given back by the garbage collector, by a thread of its own, so that no scheduler waits. As the collector sees only a
  small reference, call `close/1` where memory is large and processes live long.

  **Processes** may share contexts, models, optimizers and replays. All else serves one call at a time: a second one gets
  `{:error, %LibExphil.Error{status: :busy}}` at once. A call that runs long (`LibExphil.Model.evaluate/4`, say) ends with
  `:cancelled` when the process that made it is killed.

  **Schedulers** Calls of a frame take microseconds and run where the process runs, all others on dirty schedulers, training
  on a thread of its own. `LibExphil.Session` says what happens to large models.

  **Binaries** are rows in the byte order of the machine, as `Nx.from_binary/2` takes them:

  | what | type | shape |
  | --- | --- | --- |
  | floats | `:f32` | `{rows, float_count}` |
  | ids, actions | `:s32` | `{rows, id_count}`, `{rows, head_count}` |
  | past (of a batch) | `:s32` | `{rows, action_slots, head_count}` |
  | mask, returns, reset (of a batch) | `:f32`, `:f32`, `:u8` | `{rows}` |
  | reward, end (of a frame) | `:f32`, `:u8` | `{streams}`, of a world `{lanes}` |
  | logits | `:f32` | `{logit_count}` |
  | tensors of a model | `tensor.type` | `tensor.shape` |

  Numbers that are not finite have no place in Elixir's floats: NaN is `nil`, infinities are `:infinity`, `:neg_infinity`, both ways.
  """

  import LibExphil.Bang

  alias LibExphil.{Error, Nif}

  @typedoc "Anything that `close/1` takes."
  @type handle :: %{__struct__: module(), ref: reference()}

  @typedoc "Options of a call: names of C fields and their values."
  @type options :: keyword() | map()

  @typedoc "What a frame of a game looks like: `{layout, codec}` of a Melee preset (each may be nil), or a map."
  @type spec ::
          {String.t() | nil, String.t() | nil}
          | %{
              optional(:layout_hash) => non_neg_integer(),
              optional(:ids) => [%{name: String.t(), entries: pos_integer(), width: non_neg_integer()}],
              layout: String.t(),
              codec: String.t(),
              floats: non_neg_integer(),
              heads: [
                %{name: String.t(), kind: :bernoulli | :categorical, count: pos_integer(), neutral: non_neg_integer()}
              ]
            }

  @doc "The library that is loaded: its version, and the same with what it can compute on."
  @spec version() :: {Version.t(), String.t()}
  def version do
    {text, number} = Nif.version()
    {%Version{major: div(number, 10_000), minor: rem(div(number, 100), 100), patch: rem(number, 100)}, text}
  end

  @doc "Devices that a context could be created on, the CPU first."
  @spec devices() :: {:ok, [map()]} | {:error, Error.t()}
  def devices, do: Nif.devices()

  bang devices() :: [map()]

  @doc """
  Gives back what a handle holds, now rather than when it is collected. A call that is under way in another process finishes
  first; later calls get `:state`. Children of a closed handle go on. A `LibExphil.Training` is cancelled.
  """
  @spec close(handle()) :: :ok
  def close(%{ref: ref}) when is_reference(ref), do: Nif.close(ref)

  @doc false
  def options(options) when is_list(options), do: Map.new(options)
  def options(%{} = options), do: options

  # Of a dataset among options, which may be nil.
  @doc false
  def dataset_ref(nil, _name), do: {:ok, nil}
  def dataset_ref(%LibExphil.Dataset{ref: ref}, _name), do: {:ok, ref}
  def dataset_ref(_other, name), do: {:error, %Error{status: :invalid, message: "#{name}: not a dataset"}}

  # The only option that a call has, or its default.
  @doc false
  def only_option(options, what, name, default) do
    {value, others} = Map.pop(options(options), name, default)

    case Map.keys(others) do
      [] -> {:ok, value}
      [key | _] -> {:error, %Error{status: :invalid, message: "#{what}: there is no #{inspect(key)}"}}
    end
  end

  @doc false
  def wrap({:ok, ref}, module), do: {:ok, struct!(module, ref: ref)}
  def wrap(error, _module), do: error
end
