-- libexphil for LuaJIT: contexts, models, sessions, datasets, trainers as objects; what fails is an error with the library's
-- own sentence (a table: status, name, message, native_code; tostring() gives one line). The C header is the manual, and
-- names of fields are its names. Hooks are refused: compiled Lua code must not be called back from C, and an error in one would
-- jump over the library's frames.
--
-- $EXPHIL_LIBRARY names another library than libexphil.so.0 (Windows: exphil-0.dll, macOS: libexphil.0.dylib).

local ffi = require("ffi")
local declared = require("exphil_cdef")

ffi.cdef(declared.declarations)
local library = os.getenv("EXPHIL_LIBRARY") or
    ({ Windows = "exphil-0", OSX = "libexphil.0.dylib" })[ffi.os] or "libexphil.so.0"
local found, C = pcall(ffi.load, library)
if not found then
    error(tostring(C) .. " (install libexphil, set LD_LIBRARY_PATH to its folder, or EXPHIL_LIBRARY to its path)", 0)
end

local exphil = { ffi = ffi, C = C }

-- ---- errors ----------------------------------------------------------------------------------------------------------

local Error = {}
Error.__index = Error
function Error.__tostring(e) return e.name .. ": " .. e.message end

local function raise(status, message, native_code)
    local name = ffi.string(C.exphil_status_name(status))
    error(setmetatable({ status = status, name = name, message = message, native_code = native_code or 0 }, Error), 0)
end

local function invalid(...) raise(C.EXPHIL_E_INVALID, string.format(...)) end

-- Reused: an error is read at once, and Lua has one thread.
local why = ffi.new("exphil_error", { ffi.sizeof("exphil_error") })

local function check(status)
    if status < 0 then raise(status, ffi.string(why.message), why.native_code) end
    return status
end

-- ---- structures ------------------------------------------------------------------------------------------------------

local function sized(name)
    local raw = ffi.new(name)
    raw.struct_size = ffi.sizeof(name)
    return raw
end

local function get(raw, key) return raw[key] end
local function set(raw, key, value) raw[key] = value end

-- Puts a value into a field or an element; the rest is its name as string.format makes it. C would cut a number that an integer
-- cannot hold, so what it keeps must be what was given; what keeps a half is no integer. (Compared as Lua's numbers: LuaJIT
-- cuts a number that is compared with 64 bits.)
local function put(raw, key, value, ...)
    if type(value) == "boolean" then value = value and 1 or 0 end
    if not pcall(set, raw, key, value) then invalid("%s cannot be a %s", string.format(...), type(value)) end
    local number = type(value) ~= "string" and tonumber(value)
    if number and tonumber(raw[key]) ~= number then
        raw[key] = 0.5
        if tonumber(raw[key]) ~= 0.5 then
            invalid("%s must be a whole number that fits, is %s", string.format(...), tostring(value))
        end
        raw[key] = value
    end
end

-- An integer that a call takes as it is, held in an array of one; without one, of 64 bits with a sign.
local any = ffi.new("int64_t[1]")
local function whole(value, what, kept)
    kept = kept or any
    put(kept, 0, value, what)
    return kept[0]
end

local function table_of(fields, what)
    if fields ~= nil and type(fields) ~= "table" then invalid("%s: must be a table, is a %s", what, type(fields)) end
    return fields or {}
end

-- The fields through which the library would call its host, and what goes with them.
local hooks = { allocator = true, io = true, executor = true, log = true, log_user = true, cancel = true, cancel_user = true,
    communicator = true }

-- Sets the fields that a table names; unknown names are refused, hooks too, whatever they are. Texts live as long as the
-- table does.
local function fill(raw, fields, what)
    for field, value in pairs(table_of(fields, what)) do
        if hooks[field] then invalid("%s: %s: this module takes no hooks, C must not call back into Lua", what, field) end
        if not pcall(get, raw, field) then invalid("%s: there is no field %s", what, tostring(field)) end
        put(raw, field, value, "%s: %s", what, tostring(field))
    end
    return raw
end

local function config(name, fields) return fill(sized(name), fields, name) end

-- A table from a structure. Counts become Lua numbers; hashes stay 64-bit numbers; texts become strings.
local function read(raw, name)
    local result, told = {}, declared.told[name]
    for field in told.counts:gmatch("%S+") do result[field] = tonumber(raw[field]) end
    for field in told.hashes:gmatch("%S+") do result[field] = raw[field] end
    for field in told.texts:gmatch("%S+") do result[field] = ffi.string(raw[field]) end
    return result
end

-- Fields of a table by name or by place (known[1] is the name of the first), each of its type; others are refused.
local function named(given, what, known)
    if type(given) ~= "table" then invalid("%s: must be a table", what) end
    local values = {}
    for key, value in pairs(given) do
        local name = type(key) == "number" and known[key] or key
        local kind = type(name) == "string" and known[name] or invalid("%s: there is no field %s", what, tostring(key))
        if values[name] ~= nil then invalid("%s: %s is given twice", what, name) end
        if kind == "number" and type(value) == "boolean" then value = value and 1 or 0 end
        if kind ~= "any" and type(value) ~= kind then
            invalid("%s: %s must be a %s, is a %s", what, name, kind, type(value))
        end
        values[name] = value
    end
    for name in (known.needed or ""):gmatch("%S+") do
        if values[name] == nil then invalid("%s: has no %s", what, name) end
    end
    return values
end

local kinds = { bernoulli = 0, categorical = 1 }
local spec_fields = { "layout", "codec", layout = "string", codec = "string", floats = "number", float_count = "number",
    ids = "table", heads = "table", layout_hash = "any", needed = "layout codec" }
local id_fields = { "name", "entries", "width", name = "string", entries = "number", width = "number", needed = "name entries" }
local head_fields = { "name", "kind", "count", "neutral", name = "string", kind = "string", count = "number",
    neutral = "number", needed = "name kind count" }
local play_fields = { "temperature", "deterministic", "press", "release", temperature = "number", deterministic = "number",
    press = "number", release = "number" }

-- { layout = "catch", codec = "catch3", floats = F, ids = { { name = , entries = , width = } }, heads = { { name = ,
-- kind = "categorical", count = , neutral = } } }; names may be left out where the order is this one. What it points to lives
-- until the next one is made, which is longer than the call it is for.
local lent
local function make_spec(given)
    local spec = named(given, "spec", spec_fields)
    local ids, heads = spec.ids or {}, spec.heads or {}
    local raw_ids = ffi.new("exphil_id_spec[?]", math.max(#ids, 1))
    local raw_heads = ffi.new("exphil_head_spec[?]", math.max(#heads, 1))
    for i, item in ipairs(ids) do
        local what = "spec.ids[" .. i .. "]"
        fill(raw_ids[i - 1], named(item, what, id_fields), what)
    end
    for i, item in ipairs(heads) do
        local what = "spec.heads[" .. i .. "]"
        local head = named(item, what, head_fields)
        head.kind = kinds[head.kind] or invalid("%s: kind %s is neither bernoulli nor categorical", what, head.kind)
        fill(raw_heads[i - 1], head, what)
    end
    if spec.floats and spec.float_count then invalid("spec: floats and float_count are two names of one number") end
    local raw = sized("exphil_spec")
    fill(raw, { layout = spec.layout, codec = spec.codec, layout_hash = spec.layout_hash }, "spec")
    put(raw, "float_count", spec.floats or spec.float_count or 0, "spec: %s", spec.floats and "floats" or "float_count")
    raw.id_count, raw.ids, raw.head_count, raw.heads = #ids, raw_ids, #heads, raw_heads
    lent = { given, raw_ids, raw_heads, raw }
    return lent[4]
end

-- The fields of a table but for these, so that each configuration gets its own.
local function without(fields, ...)
    local rest = {}
    for field, value in pairs(fields) do rest[field] = value end
    for _, field in ipairs({ ... }) do rest[field] = nil end
    return rest
end

-- ---- objects ---------------------------------------------------------------------------------------------------------

-- The collector sees an object as small as its table. So we count what was made and not closed, and have it look for more each
-- time that comes to 64 MB. The bytes need only be about right.
local unseen = 0
local function weigh(object, bytes)
    object.weight = bytes
    unseen = unseen + bytes
    if unseen > 2 ^ 26 then
        unseen = 0
        collectgarbage()
    end
    return object
end

-- Each class has close(), which may be called early and twice; without it the collector ends the object. Children keep
-- their parents alive in the library.
local function class(destroy)
    local methods = {}
    methods.__index = methods
    function methods:close()
        if self.raw then
            destroy(ffi.gc(self.raw, nil))
            self.raw = false
            unseen = math.max(unseen - (self.weight or 0), 0)
        end
    end
    methods.destroy = destroy
    return methods
end

local Context = class(C.exphil_context_destroy)
local Model = class(C.exphil_model_destroy)
local Session = class(C.exphil_session_destroy)
local Dataset = class(C.exphil_dataset_destroy)
local Prefetcher = class(C.exphil_prefetcher_destroy)
local Optimizer = class(C.exphil_optimizer_destroy)
local Trainer = class(C.exphil_trainer_destroy)

local function open(object, what)
    return type(object) == "table" and object.raw or invalid("%s: is closed, or is none", what)
end

local function wrap(methods, raw, fields)
    fields = fields or {}
    fields.raw = ffi.gc(raw[0], methods.destroy)
    return setmetatable(fields, methods)
end

local function path_of(path)
    if type(path) ~= "string" or path:find("%z") then invalid("path: must be a string without NUL") end
    return path
end

-- ---- version, context ------------------------------------------------------------------------------------------------

function exphil.version() return ffi.string(C.exphil_version_string()) end

-- options: device, cpu_isa, backend_path, memory_limit_bytes, threads.
function exphil.context(options)
    local own = declared.version[1] * 100 + declared.version[2]
    local loaded = math.floor(C.exphil_version() / 100)
    if loaded < own then
        raise(C.EXPHIL_E_VERSION, string.format("libexphil %s is loaded, this module was written for %d.%d",
            exphil.version(), declared.version[1], declared.version[2]))
    end
    local raw = ffi.new("exphil_context *[1]")
    check(C.exphil_context_create(config("exphil_context_config", options), raw, why))
    return wrap(Context, raw)
end

-- ---- model -----------------------------------------------------------------------------------------------------------

local function wrap_model(raw)
    local self, info = wrap(Model, raw), sized("exphil_model_info")
    check(C.exphil_model_query(self.raw, info, why))
    return weigh(self, tonumber(info.parameter_count) * 8) -- its numbers, and as sessions want them
end

function Context:load_model(path)
    local raw = ffi.new("exphil_model *[1]")
    check(C.exphil_model_load(open(self, "context"), path_of(path), raw, why))
    return wrap_model(raw)
end

-- data: the bytes of a weights file, as a string.
function Context:load_model_memory(data)
    local raw = ffi.new("exphil_model *[1]")
    if type(data) ~= "string" then invalid("data: must be a string, is a %s", type(data)) end
    check(C.exphil_model_load_memory(open(self, "context"), data, #data, raw, why))
    return wrap_model(raw)
end

-- options: fields of exphil_model_config, spec as a table.
function Context:create_model(options)
    options = table_of(options, "options")
    local raw = ffi.new("exphil_model *[1]")
    local fields = config("exphil_model_config", without(options, "spec"))
    if options.spec then fields.spec = make_spec(options.spec) end
    check(C.exphil_model_create(open(self, "context"), fields, raw, why))
    return wrap_model(raw)
end

function Model:info()
    local raw = sized("exphil_model_info")
    check(C.exphil_model_query(open(self, "model"), raw, why))
    return read(raw, "exphil_model_info")
end

function Model:save(path) check(C.exphil_model_save(open(self, "model"), path_of(path), why)) end

-- type: "int8" or "bf16".
function Model:quantize(type)
    local number = ({ int8 = C.EXPHIL_TYPE_I8, bf16 = C.EXPHIL_TYPE_BF16 })[type]
    local raw = ffi.new("exphil_model *[1]")
    check(C.exphil_model_quantize(open(self, "model"), number or invalid("type: is int8 or bf16"), raw, why))
    return wrap_model(raw)
end

-- ---- session ---------------------------------------------------------------------------------------------------------

local frame_type, pad_type = ffi.typeof("exphil_melee_frame"), ffi.typeof("exphil_pad")

local few = ffi.new("uint16_t[1]")
local function records(element, count)
    return count and ffi.new(ffi.typeof("$[" .. whole(count, "count", few) .. "]", element)) or element()
end

-- What a live host leaves out, as the header has it: platforms before the first event, all of a character known, items nobody's.
local fresh = sized("exphil_melee_frame")
fresh.platform_left, fresh.platform_right = 20, 28
for i = 0, 3 do fresh.player[i].known, fresh.follower[i].known = C.EXPHIL_MELEE_HAS_ALL, C.EXPHIL_MELEE_HAS_ALL end
for i = 0, ffi.sizeof(fresh.item) / ffi.sizeof(fresh.item[0]) - 1 do fresh.item[i].owner = -1 end

-- One Melee frame with nobody in it, whose fields are frame.stage, ...; with a number an array of so many, even of one:
-- frames[0].stage.
function exphil.melee_frames(count)
    local frames = records(frame_type, count)
    for i = 0, (count or 1) - 1 do ffi.copy(count and frames[i] or frames, fresh, ffi.sizeof(frame_type)) end
    return frames
end

-- Pads likewise.
function exphil.melee_pads(count) return records(pad_type, count) end

-- An array of one dimension whose elements a pattern names; no pointer, single value or function.
local function is_array(value, element)
    return type(value) == "cdata" and tostring(ffi.typeof(value)):find("^ctype<" .. element .. " %[[%d?]+%]>$") ~= nil
end

-- Arrays of a fixed type are known to the compiler: checking one costs nothing. Others are measured, pointers refused.
local function measured(value, element, count, what)
    if value == nil and count == 0 then return end
    if not is_array(value, element) or ffi.sizeof(value) ~= count * ffi.sizeof(element) then
        local given = type(value) == "cdata" and tostring(ffi.typeof(value)) or type(value)
        invalid("%s: is %s, must be an array of %d %s", what, given, count, element)
    end
end

local function wrap_session(raw, model)
    local info = sized("exphil_session_info")
    local self = wrap(Session, raw, { model = model })
    check(C.exphil_session_query(self.raw, info, why))
    local function row(element, count) return ffi.typeof(element .. "[" .. count .. "]") end
    local streams = tonumber(info.streams)
    self.streams, self.logit_count, self.head_count = streams, tonumber(info.logit_count), tonumber(info.head_count)
    self.float_count, self.id_count = streams * tonumber(info.float_count), streams * tonumber(info.id_count)
    self.action_count, self.noise_count = streams * self.head_count, streams * self.logit_count
    self.float_type, self.id_type = row("float", self.float_count), row("int32_t", self.id_count)
    self.action_type = row("int32_t", self.action_count)
    self.floats, self.ids, self.actions = self.float_type(), self.id_type(), self.action_type()
    return weigh(self, 1e5 + 3 * streams * tonumber(info.state_bytes)) -- measured: 85 KB to 2.1 MB
end

-- options: fields of exphil_session_config; heads as a list of { temperature, deterministic, press, release }.
function Model:session(options)
    options = table_of(options, "options")
    local raw, heads = ffi.new("exphil_session *[1]"), nil
    local fields = config("exphil_session_config", without(options, "heads", "spec", "delay_frames", "mode"))
    if options.heads then
        local wanted = self:info().head_count
        local given = #table_of(options.heads, "heads")
        if given ~= wanted then invalid("heads: has %d entries, must have %d", given, wanted) end
        heads = ffi.new("exphil_head_play[?]", wanted)
        for i, head in ipairs(options.heads) do
            local what = "heads[" .. i .. "]"
            fill(heads[i - 1], named(head, what, play_fields), what)
        end
        fields.heads = heads
    end
    if options.spec then fields.spec = make_spec(options.spec) end
    local delay, mode = ffi.new("int32_t[1]"), ffi.new("int32_t[1]")
    if options.delay_frames ~= nil then
        whole(options.delay_frames, "delay_frames", delay)
        fields.delay_frames = delay
    end
    if options.mode ~= nil then
        whole(options.mode, "mode", mode)
        fields.mode = mode
    end
    check(C.exphil_session_create(open(self, "model"), fields, raw, why))
    return wrap_session(raw, self)
end

local function step_failed(raw, status)
    C.exphil_session_error(raw, why)
    raise(status, ffi.string(why.message), why.native_code)
end

-- Hot. floats [B,F], ids [B,K] in, actions [B,A] out; noise [B,L] or nil. Without arguments it uses the session's own
-- arrays: session.floats, session.ids, session.actions, which start at 0.
function Session:step_row(floats, ids, actions, noise)
    local raw = self.raw or open(self, "session")
    floats, ids, actions = floats or self.floats, ids or self.ids, actions or self.actions
    if not ffi.istype(self.float_type, floats) then measured(floats, "float", self.float_count, "floats") end
    if not ffi.istype(self.id_type, ids) then measured(ids, "int", self.id_count, "ids") end
    if not ffi.istype(self.action_type, actions) then measured(actions, "int", self.action_count, "actions") end
    if noise then measured(noise, "float", self.noise_count, "noise") end
    local status = C.exphil_session_step_row(raw, floats, ids, noise, actions)
    if status < 0 then step_failed(raw, status) end
    return actions
end

-- Hot. Melee: frames and pads as exphil.melee_frames and melee_pads give them, one each for every stream.
function Session:step(frames, pads)
    local raw = self.raw or open(self, "session")
    local one = self.streams == 1
    if one and ffi.istype(frame_type, frames) and frames ~= nil then -- a pointer to one, too: frames[0] is such
        frames.struct_size = ffi.sizeof(frame_type)
    else
        measured(frames, "struct exphil_melee_frame", self.streams, "frames")
        for i = 0, self.streams - 1 do frames[i].struct_size = ffi.sizeof(frame_type) end
    end
    if not (one and ffi.istype(pad_type, pads)) then measured(pads, "struct exphil_pad", self.streams, "pads") end
    local status = C.exphil_session_step(raw, frames, pads)
    if status < 0 then step_failed(raw, status) end
    return pads
end

-- Hot. Logits of the last step of a stream (0 is the first), into an array of the caller's, or a new one.
function Session:logits(stream, logits)
    local raw = self.raw or open(self, "session")
    logits = logits or ffi.new("float[?]", self.logit_count)
    measured(logits, "float", self.logit_count, "logits")
    local status = C.exphil_session_logits(raw, whole(stream or 0, "stream"), logits, self.logit_count)
    if status < 0 then step_failed(raw, status) end
    return logits
end

-- Hot. A stream starts an episode; without a number, all do.
function Session:reset(stream)
    local raw = self.raw or open(self, "session")
    local status = C.exphil_session_reset(raw, whole(stream or -1, "stream"))
    if status < 0 then step_failed(raw, status) end
end

-- Hot. What was really done instead of the newest decided action.
function Session:override(stream, action)
    local raw = self.raw or open(self, "session")
    measured(action, "int", self.head_count, "action")
    local status = C.exphil_session_override(raw, whole(stream, "stream"), action)
    if status < 0 then step_failed(raw, status) end
end

-- All that a stream's next step depends on, as a block of bytes: into one that this gave before, or a new one.
function Session:save_state(stream, state)
    local raw = self.raw or open(self, "session")
    local bytes = tonumber(C.exphil_session_state_size(raw))
    state = state or ffi.new("uint8_t[?]", bytes)
    measured(state, "unsigned char", bytes, "state")
    local status = C.exphil_session_state_save(raw, whole(stream or 0, "stream"), state, bytes)
    if status < 0 then step_failed(raw, status) end
    return state
end

function Session:restore_state(stream, state)
    local raw = self.raw or open(self, "session")
    if not is_array(state, "[%w_ ]+") then invalid("state: must be what save_state gave") end
    local status = C.exphil_session_state_restore(raw, whole(stream, "stream"), state, ffi.sizeof(state))
    if status < 0 then step_failed(raw, status) end
end

function Session:clone()
    local raw = ffi.new("exphil_session *[1]")
    check(C.exphil_session_clone(open(self, "session"), raw, why))
    return wrap_session(raw, self.model)
end

function Session:info()
    local raw = sized("exphil_session_info")
    check(C.exphil_session_query(open(self, "session"), raw, why))
    return read(raw, "exphil_session_info")
end

-- ---- dataset ---------------------------------------------------------------------------------------------------------

local function wrap_dataset(raw) return wrap(Dataset, raw) end

-- spec: a table as create_model takes it; nil: Melee's.
function Context:dataset(spec)
    local raw, fields = ffi.new("exphil_dataset *[1]"), sized("exphil_dataset_config")
    if spec then fields.spec = make_spec(spec) end
    check(C.exphil_dataset_create(open(self, "context"), fields, raw, why))
    return wrap_dataset(raw)
end

function Context:open_dataset(path)
    local raw = ffi.new("exphil_dataset *[1]")
    check(C.exphil_dataset_open(open(self, "context"), path_of(path), raw, why))
    return wrap_dataset(raw)
end

function Dataset:save(path) check(C.exphil_dataset_save(open(self, "dataset"), path_of(path), why)) end

-- options: fields of exphil_replay_config.
function Dataset:add_replay(path, options)
    local result = sized("exphil_replay_result")
    check(C.exphil_dataset_add_replay(open(self, "dataset"), path_of(path), config("exphil_replay_config", options),
        result, why))
    return read(result, "exphil_replay_result")
end

local function array(element, values, count, what)
    if type(values) == "table" then
        if #values ~= count then invalid("%s: has %d elements, must have %d", what, #values, count) end
        local raw = ffi.new(element .. "[?]", math.max(count, 1))
        for i = 1, count do put(raw, i - 1, values[i], "%s[%d]", what, i) end
        return raw
    end
    measured(values, element, count, what)
    return values
end

-- One episode: frames, then lists or arrays of floats [T,F], ids [T,K] and actions [T,A].
local group = ffi.new("uint64_t[1]")
function Dataset:add_rows(game, frames, floats, ids, actions)
    local info = self:info()
    frames = tonumber(whole(frames, "frames"))
    floats = array("float", floats, frames * info.float_count, "floats")
    ids = array("int", ids or {}, frames * info.id_count, "ids")
    actions = array("int", actions, frames * info.head_count, "actions")
    check(C.exphil_dataset_add_rows(self.raw, whole(game, "game", group), frames, floats, ids, actions, why))
end

function Dataset:info()
    local raw = sized("exphil_dataset_info")
    check(C.exphil_dataset_query(open(self, "dataset"), raw, why))
    return read(raw, "exphil_dataset_info")
end

-- ---- trainer ---------------------------------------------------------------------------------------------------------

-- options: sampling, optimizer, trainer: fields of exphil_sampling, _optimizer_config, _trainer_config.
function Model:trainer(dataset, options)
    options = table_of(options, "options")
    for name in pairs(options) do
        if name ~= "sampling" and name ~= "optimizer" and name ~= "trainer" then
            invalid("%s: there is no such option; those of a trainer stand in sampling, optimizer or trainer", tostring(name))
        end
    end
    local sampling = sized("exphil_sampling")
    check(C.exphil_model_sampling(open(self, "model"), sampling, why))
    fill(sampling, options.sampling, "exphil_sampling")
    local source, optimizer = ffi.new("exphil_prefetcher *[1]"), ffi.new("exphil_optimizer *[1]")
    local raw = ffi.new("exphil_trainer *[1]")
    local settings = config("exphil_optimizer_config", options.optimizer)
    local fields = config("exphil_trainer_config", options.trainer)
    check(C.exphil_prefetcher_create(open(dataset, "dataset"), sampling, source, why))
    source = wrap(Prefetcher, source)
    check(C.exphil_optimizer_create(self.raw, settings, optimizer, why))
    optimizer = wrap(Optimizer, optimizer)
    check(C.exphil_trainer_create(self.raw, optimizer.raw, source.raw, fields, raw, why))
    optimizer:close() -- the trainer keeps both
    source:close()
    return weigh(wrap(Trainer, raw), 2 ^ 25) -- measured with small models: 15 to 78 MB
end

-- One update; its metrics.
function Trainer:step()
    local raw = sized("exphil_metrics")
    check(C.exphil_trainer_step(open(self, "trainer"), raw, why))
    return read(raw, "exphil_metrics")
end

-- The weights as they are now as a new model; averaged: those of ema_decay.
function Trainer:model(averaged)
    local raw = ffi.new("exphil_model *[1]")
    check(C.exphil_trainer_model(open(self, "trainer"), averaged and 1 or 0, raw, why))
    return wrap_model(raw)
end

function Trainer:save(path) check(C.exphil_trainer_save(open(self, "trainer"), path_of(path), why)) end

function Trainer:resume(path) check(C.exphil_trainer_resume(open(self, "trainer"), path_of(path), why)) end

-- How well the weights as they are now predict a dataset.
function Trainer:evaluate(dataset)
    local raw = sized("exphil_report")
    check(C.exphil_trainer_evaluate(open(self, "trainer"), 0, open(dataset, "dataset"), nil, raw, why))
    return read(raw, "exphil_report")
end

return exphil
