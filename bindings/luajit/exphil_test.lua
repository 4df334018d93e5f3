-- Tests of the LuaJIT module: luajit exphil_test.lua FOLDER, which holds what tests/hosts/trace.c makes.

local exphil = require("exphil")
local ffi = exphil.ffi
local folder = assert(arg[1], "exphil_test.lua FOLDER [REPLAYS]")
local cases, order = {}, {}

local function test(name, work) order[#order + 1], cases[name] = name, work end

-- The call must fail with this status, and its sentence must hold the word.
local function fails(status, word, work, ...)
    local fine, e = pcall(work, ...)
    assert(not fine, "should have failed: " .. word)
    assert(type(e) == "table", tostring(e))
    assert(e.name == status and e.message:find(word, 1, true), tostring(e) .. " lacks " .. status .. " " .. word)
end

local spec = { "pong", "pad", floats = 3, ids = { { "side", 2, 4 } },
    heads = { { "stick", "categorical", 3, 1 }, { "buttons", "bernoulli", 2 } } }

local function pong(context)
    return context:create_model({ spec = spec, blocks = "gru mlp", hidden = 16, head_width = 16, seed = 7 })
end

local function games(context)
    local dataset = context:dataset(spec)
    for game = 1, 3 do
        local floats, ids, actions = {}, {}, {}
        for t = 0, 199 do
            local swing = ((t + game) % 20 - 10) / 10
            for _, value in ipairs({ swing, 1 - swing, 0.5 }) do floats[#floats + 1] = value end
            ids[#ids + 1] = 0
            actions[#actions + 1] = swing < -0.3 and 0 or swing > 0.3 and 2 or 1
            actions[#actions + 1] = 0
        end
        dataset:add_rows(game, 200, floats, ids, actions)
    end
    return dataset
end

local function trainer(context)
    return pong(context):trainer(games(context), { sampling = { batch = 4, time = 20, seed = 3 }, optimizer = { rate = 1e-2 } })
end

test("training lowers the loss and resumes", function()
    local context, path = exphil.context({ threads = 1 }), os.tmpname()
    local straight, first, last = trainer(context), nil, nil
    for i = 1, 40 do
        local metrics = straight:step()
        assert(metrics.update == i)
        first, last = first or metrics.loss, metrics.loss
        if i == 20 then straight:save(path) end
    end
    assert(last < 0.6 * first, first .. " " .. last)
    local resumed = trainer(context)
    resumed:resume(path)
    for _ = 1, 20 do resumed:step() end
    assert(resumed:model():info().weights_hash == straight:model():info().weights_hash)
    local report = straight:evaluate(games(context))
    assert(report.exact_accuracy > report.exact_majority)
    os.remove(path)
    os.remove(path .. ".optimizer")
end)

test("rollback is a copy", function()
    local session = pong(exphil.context()):session({ seed = 5 })
    local function play(who)
        local played = {}
        for t = 1, 50 do
            who.floats[0] = t / 50
            played[#played + 1] = who:step_row()[0]
        end
        return table.concat(played, " ")
    end
    play(session)
    local state, twin = session:save_state(), session:clone()
    local once = play(session)
    session:restore_state(0, state)
    assert(play(session) == once and play(twin) == once)
    assert(session:info().steps == 150)
    state[8] = state[8] == 0 and 1 or 0
    fails("EXPHIL_E_MISMATCH", "", session.restore_state, session, 0, state)
end)

test("wrong rows are refused", function()
    local session = pong(exphil.context()):session({ deterministic = true })
    local step = session.step_row
    fails("EXPHIL_E_INVALID", "floats", step, session, ffi.new("float[2]"))
    fails("EXPHIL_E_INVALID", "floats", step, session, ffi.new("double[3]"))
    fails("EXPHIL_E_INVALID", "floats", step, session, { 1, 2, 3 })
    fails("EXPHIL_E_INVALID", "floats", step, session, ffi.cast("float *", session.floats))
    fails("EXPHIL_E_INVALID", "ids", step, session, nil, ffi.new("int32_t[?]", 2))
    fails("EXPHIL_E_INVALID", "ids: is ctype<int>,", step, session, nil, ffi.new("int32_t"))
    fails("EXPHIL_E_INVALID", "actions", step, session, nil, nil, ffi.new("int32_t[1]"))
    -- As large as the row is: a pointer to as much, other integers, two dimensions.
    fails("EXPHIL_E_INVALID", "actions: is ctype<int *>,", step, session, nil, nil, ffi.cast("int32_t *", session.actions))
    fails("EXPHIL_E_INVALID", "actions: is ctype<int64_t [1]>,", step, session, nil, nil, ffi.new("int64_t[1]"))
    fails("EXPHIL_E_INVALID", "actions: is ctype<int64_t [?]>,", step, session, nil, nil, ffi.new("int64_t[?]", 1))
    fails("EXPHIL_E_INVALID", "actions: is ctype<int [1][2]>,", step, session, nil, nil, ffi.new("int32_t[1][2]"))
    fails("EXPHIL_E_INVALID", "noise", step, session, nil, nil, nil, ffi.new("float[1]"))
    fails("EXPHIL_E_INVALID", "logits", session.logits, session, 0, ffi.new("float[4]"))
    fails("EXPHIL_E_INVALID", "stream", session.reset, session, 7)
    fails("EXPHIL_E_INVALID", "frames", session.step, session, ffi.new("float[2]"), exphil.melee_pads())
    fails("EXPHIL_E_INVALID", "state", session.restore_state, session, 0, "text")
    fails("EXPHIL_E_INVALID", "state", session.restore_state, session, 0, 1LL)
    fails("EXPHIL_E_INVALID", "state", session.restore_state, session, 0, ffi.cast("uint8_t *", session:save_state()))
    session.floats[1] = 0 / 0
    fails("EXPHIL_E_NUMERIC", "", step, session)
    session.floats[1] = 0
    step(session, ffi.new("float[?]", 3), ffi.new("int32_t[?]", 1), ffi.new("int32_t[?]", 2), ffi.new("float[5]", 0.5))
    assert(session:logits()[0] == session:logits()[0])
end)

test("wrong files and settings are refused", function()
    local context, path = exphil.context(), os.tmpname()
    local file = io.open(path, "wb")
    file:write(("\255"):rep(4096))
    file:close()
    fails("EXPHIL_E_FORMAT", "", context.load_model, context, path)
    fails("EXPHIL_E_FORMAT", "", context.open_dataset, context, path)
    local melee = context:dataset()
    fails("EXPHIL_E_FORMAT", "", melee.add_replay, melee, path)
    os.remove(path)
    fails("EXPHIL_E_FORMAT", "", context.load_model_memory, context, "garbage")
    fails("EXPHIL_E_IO", "/nowhere", context.load_model, context, "/nowhere")
    fails("EXPHIL_E_INVALID", "NUL", context.load_model, context, "a\0b")
    fails("EXPHIL_E_INVALID", "hiden", context.create_model, context, { hiden = 8 })
    fails("EXPHIL_E_INVALID", "blocks", context.create_model, context, { blocks = "gru (" })
    fails("EXPHIL_E_INVALID", "device", exphil.context, { device = "abacus" })
    fails("EXPHIL_E_INVALID", "spec.heads[1]: kind maybe", context.create_model, context, { spec = { "a", "b", heads = { { "stick", "maybe", 3 } } } })
    local model = pong(context)
    fails("EXPHIL_E_INVALID", "heads", model.session, model, { heads = { {} } })
    fails("EXPHIL_E_MISMATCH", "delay", model.session, model, { delay_frames = 3 })
    fails("EXPHIL_E_INVALID", "nothing to sample", model.trainer, model, melee)
    fails("EXPHIL_E_INVALID", "lanes", model.trainer, model, games(context), { sampling = { lanes = 4 } })
    fails("EXPHIL_E_INVALID", "floats", melee.add_rows, melee, 1, 1e15, { 1 }, { 1 }, { 1 })
    fails("EXPHIL_E_INVALID", "type", model.quantize, model, "int3")
    assert(model:quantize("int8"):info().weights == exphil.C.EXPHIL_TYPE_I8)
    model:session({ heads = { { 0.5 }, { deterministic = 1 } } }):step_row()
end)

test("options are taken or refused by name", function()
    local context = exphil.context()
    local model, dataset = pong(context), games(context)
    local function create(options) return model:trainer(dataset, options) end
    fails("EXPHIL_E_INVALID", "rate: there is no such option", create, { rate = 0.5 })
    fails("EXPHIL_E_INVALID", "optimiser", create, { optimiser = { rate = 0.5 } })
    fails("EXPHIL_E_INVALID", "field rat", create, { optimizer = { rat = 0.5 } })
    fails("EXPHIL_E_INVALID", "must be a table", create, { optimizer = 0.5 })
    assert(create({ optimizer = { rate = 0.5 }, sampling = { batch = 4, time = 20 } }):step().rate == 0.5)
    fails("EXPHIL_E_INVALID", "field sed", model.session, model, { sed = 1 })
    fails("EXPHIL_E_INVALID", "heads[1]: there is no field temprature", model.session, model, { heads = { { temprature = 1 }, {} } })
    fails("EXPHIL_E_INVALID", "heads[1]: must be a table", model.session, model, { heads = { 1, 2 } })
    model:session({ heads = { { deterministic = true }, { temperature = 2 } } }):step_row()
end)

-- An error in a hook would jump over the library's frames and leave its objects busy for ever.
test("hooks are refused by name, be they functions or pointers", function()
    local names = { "allocator", "io", "executor", "log", "log_user", "cancel", "cancel_user" }
    for _, name in ipairs(names) do
        for _, hook in ipairs({ function() error("jumps") end, ffi.new("void *"), ffi.new("exphil_allocator"), false }) do
            local word = "exphil_context_config: " .. name .. ": this module takes no hooks"
            fails("EXPHIL_E_INVALID", word, exphil.context, { [name] = hook })
        end
    end
    local context = exphil.context({ threads = 1, log_level = exphil.C.EXPHIL_LOG_ERROR })
    local model, dataset = pong(context), games(context)
    local function train(communicator) return model:trainer(dataset, { trainer = { communicator = communicator } }) end
    fails("EXPHIL_E_INVALID", "communicator: this module takes no hooks", train, ffi.new("exphil_communicator"))
    -- The header's structures hold no hook that is not named above.
    local known, found = " communicator " .. table.concat(names, " ") .. " ", 0
    for _, kind in ipairs({ "allocator", "io", "executor", "communicator", "log_fn", "cancel_fn" }) do
        for name in require("exphil_cdef").declarations:gmatch(" exphil_" .. kind .. " %*?([%w_]+);") do
            assert(known:find(" " .. name .. " ", 1, true), name)
            found = found + 1
        end
    end
    assert(found == 6, found)
end)

test("the mode that a host wants must be the model's", function()
    local model = pong(exphil.context({ threads = 1 }))
    fails("EXPHIL_E_MISMATCH", "the host wants mode window", model.session, model, { mode = exphil.C.EXPHIL_MODE_WINDOW })
    model:session({ mode = exphil.C.EXPHIL_MODE_CARRY }):step_row()
end)

test("a trainer gives its weights as they are and averaged", function()
    local context = exphil.context({ threads = 1 })
    local settings = { sampling = { batch = 4, time = 20 }, optimizer = { rate = 1e-2, ema_decay = 0.9 } }
    local work = pong(context):trainer(games(context), settings)
    for _ = 1, 3 do work:step() end
    local now, averaged = work:model():info().weights_hash, work:model(true):info().weights_hash
    assert(work:model(false):info().weights_hash == now and averaged ~= now)
    fails("EXPHIL_E_STATE", "ema_decay", function() trainer(context):model(true) end)
end)

test("integers are whole and fit, or are refused by name", function()
    local context = exphil.context({ threads = 1 })
    local model, dataset = pong(context), games(context)
    local session, block = model:session(), ffi.new("uint8_t[8]")
    local function catch(change)
        local spec = { "a", "b", floats = 1, ids = { { "level", 4, 2 } }, heads = { { "stick", "categorical", 3, 1 } } }
        change(spec)
        return context:dataset(spec)
    end
    local places = { -- what the sentence names, a call that takes the number there
        { "exphil_context_config: threads", function(n) exphil.context({ threads = n }) end },
        { "exphil_context_config: memory_limit_bytes", function(n) exphil.context({ memory_limit_bytes = n }) end, large = true },
        { "exphil_model_config: hidden", function(n) context:create_model({ hidden = n }) end, large = true },
        { "exphil_model_config: seed", function(n) context:create_model({ seed = n }) end, large = true },
        { "exphil_model_config: delay_frames", function(n) context:create_model({ delay_frames = n }) end },
        { "exphil_session_config: streams", function(n) model:session({ streams = n }) end, large = true },
        { "exphil_session_config: deterministic", function(n) model:session({ deterministic = n }) end },
        { "delay_frames", function(n) model:session({ delay_frames = n }) end },
        { "mode", function(n) model:session({ mode = n }) end },
        { "heads[2]: deterministic", function(n) model:session({ heads = { {}, { deterministic = n } } }) end },
        { "spec: floats", function(n) catch(function(spec) spec.floats = n end) end, large = true },
        { "spec: float_count", function(n) catch(function(spec) spec.floats, spec.float_count = nil, n end) end, large = true },
        { "spec: layout_hash", function(n) catch(function(spec) spec.layout_hash = n end) end, large = true },
        { "spec.ids[1]: entries", function(n) catch(function(spec) spec.ids[1][2] = n end) end },
        { "spec.ids[1]: width", function(n) catch(function(spec) spec.ids[1][3] = n end) end },
        { "spec.heads[1]: count", function(n) catch(function(spec) spec.heads[1][3] = n end) end },
        { "spec.heads[1]: neutral", function(n) catch(function(spec) spec.heads[1][4] = n end) end },
        { "exphil_replay_config: port", function(n) dataset:add_replay("/nowhere", { port = n }) end },
        { "exphil_sampling: batch", function(n) model:trainer(dataset, { sampling = { batch = n } }) end, large = true },
        { "exphil_sampling: in_order", function(n) model:trainer(dataset, { sampling = { in_order = n } }) end },
        { "exphil_optimizer_config: schedule", function(n) model:trainer(dataset, { optimizer = { schedule = n } }) end },
        { "exphil_trainer_config: precision", function(n) model:trainer(dataset, { trainer = { precision = n } }) end },
        { "stream", function(n) session:logits(n) end, large = true },
        { "stream", function(n) session:reset(n) end, large = true },
        { "stream", function(n) session:override(n, ffi.new("int32_t[2]")) end, large = true },
        { "stream", function(n) session:save_state(n) end, large = true },
        { "stream", function(n) session:restore_state(n, block) end, large = true },
        { "game", function(n) dataset:add_rows(n, 1, { 0, 0, 0 }, { 0 }, { 0, 0 }) end, large = true },
        { "frames", function(n) dataset:add_rows(1, n, { 0, 0, 0 }, { 0 }, { 0, 0 }) end, large = true },
        { "ids[1]", function(n) dataset:add_rows(1, 1, { 0, 0, 0 }, { n }, { 0, 0 }) end },
        { "actions[2]", function(n) dataset:add_rows(1, 1, { 0, 0, 0 }, { 0 }, { 0, n }) end },
        { "count", function(n) exphil.melee_frames(n) end },
        { "count", function(n) exphil.melee_pads(n) end },
    }
    local frames = dataset:info().frames
    for _, place in ipairs(places) do
        for _, number in ipairs({ 0.5, 1.9, -0.7, 0 / 0, 1 / 0, -1 / 0, 2 ^ 64, -2 ^ 64 }) do
            fails("EXPHIL_E_INVALID", place[1] .. " must be a whole number that fits, is " .. tostring(number), place[2], number)
        end
        for _, number in ipairs(place.large and {} or { 2 ^ 40, -2 ^ 31 - 1 }) do -- these fit into 64 bits
            fails("EXPHIL_E_INVALID", place[1] .. " must be a whole number that fits", place[2], number)
        end
    end
    fails("EXPHIL_E_INVALID", "exphil_session_config: seed must be a whole number that fits, is -1", model.session, model, { seed = -1 })
    fails("EXPHIL_E_INVALID", "threads must be a whole number that fits", exphil.context, { threads = 2LL ^ 40 })
    fails("EXPHIL_E_INVALID", "threads cannot be a string", exphil.context, { threads = "4" })
    fails("EXPHIL_E_INVALID", "stream cannot be a table", session.reset, session, {})
    assert(dataset:info().frames == frames)
    -- What fits is taken: 64 bits as Lua's number or as LuaJIT's, and numbers that are none in whole fields.
    model:session({ seed = 0xffffffffffffffffULL, deadline_ns = 2 ^ 40, delay_frames = 0, mode = 0 }):reset(0LL)
    local list, array = context:dataset(spec), context:dataset(spec)
    list:add_rows(2 ^ 63, 1, { 0.1, 0.2, 0.3 }, { 1 }, { 2, 3 })
    array:add_rows(2 ^ 63, 1, ffi.new("float[3]", 0.1, 0.2, 0.3), ffi.new("int32_t[1]", 1), ffi.new("int32_t[2]", 2, 3))
    assert(list:info().content_hash == array:info().content_hash)
    assert(model:trainer(dataset, { optimizer = { rate = 0.3 }, sampling = { batch = 4, time = 20 } }):step().rate == 0.3)
end)

test("options that are no table are refused", function()
    local context = exphil.context({ threads = 1 })
    local model = pong(context)
    fails("EXPHIL_E_INVALID", "exphil_context_config: must be a table, is a number", exphil.context, 5)
    fails("EXPHIL_E_INVALID", "options: must be a table, is a number", context.create_model, context, 5)
    fails("EXPHIL_E_INVALID", "options: must be a table, is a string", model.session, model, "greedy")
    fails("EXPHIL_E_INVALID", "heads: must be a table, is a string", model.session, model, { heads = "ab" })
    fails("EXPHIL_E_INVALID", "options: must be a table, is a number", model.trainer, model, games(context), 5)
    fails("EXPHIL_E_INVALID", "data: must be a string", context.load_model_memory, context, 5)
end)

test("a spec is given by names or by places", function()
    local context = exphil.context()
    local same = { layout = "pong", codec = "pad", float_count = 3, ids = { { name = "side", entries = 2, width = 4 } },
        heads = { { name = "stick", kind = "categorical", count = 3, neutral = 1 }, { "buttons", "bernoulli", count = 2 } } }
    local hash = pong(context):info().spec_hash
    assert(context:create_model({ spec = same, blocks = "gru", hidden = 8, head_width = 8 }):info().spec_hash == hash)
    assert(context:dataset(same):info().spec_hash == hash)
    local function refused(word, spec) fails("EXPHIL_E_INVALID", word, context.dataset, context, spec) end
    local heads = { { "stick", "categorical", 3 } }
    refused("spec: has no layout", { codec = "b", floats = 1, heads = heads })
    refused("spec: there is no field flots", { "a", "b", flots = 1, heads = heads })
    refused("spec: floats must be a number, is a string", { "a", "b", floats = "1", heads = heads })
    refused("spec: floats must be a whole number", { "a", "b", floats = 1.5, heads = heads })
    refused("spec: floats and float_count", { "a", "b", floats = 1, float_count = 1, heads = heads })
    refused("spec: layout is given twice", { "a", "b", layout = "c", floats = 1, heads = heads })
    refused("spec.ids[1]: has no entries", { "a", "b", floats = 1, ids = { { name = "level" } }, heads = heads })
    refused("spec.ids[1]: there is no field entrys", { "a", "b", floats = 1, ids = { { name = "level", entrys = 4 } }, heads = heads })
    refused("spec.heads[1]: has no count", { "a", "b", floats = 1, heads = { { "stick", "categorical" } } })
    refused("spec.heads[2]: must be a table", { "a", "b", floats = 1, heads = { heads[1], "stick" } })
    refused("spec: must be a table", "catch")
end)

test("closed objects are refused, in any order", function()
    local context = exphil.context()
    local model, dataset, work = pong(context), games(context), trainer(context)
    local session = model:session()
    context:close()
    model:close()
    model:close()
    dataset:close()
    session:step_row()
    work:step()
    session:close()
    work:close()
    fails("EXPHIL_E_INVALID", "session: is closed", session.step_row, session)
    fails("EXPHIL_E_INVALID", "session: is closed", session.clone, session)
    fails("EXPHIL_E_INVALID", "trainer: is closed", work.step, work)
    fails("EXPHIL_E_INVALID", "model: is closed", model.info, model)
    fails("EXPHIL_E_INVALID", "context: is closed", context.load_model, context, "x")
    fails("EXPHIL_E_INVALID", "dataset: is closed", dataset.info, dataset)
end)

local function collect()
    collectgarbage()
    collectgarbage()
end

local function used(context)
    local raw = ffi.new("exphil_memory_info")
    raw.struct_size = ffi.sizeof(raw)
    assert(exphil.C.exphil_context_memory(context.raw, raw, nil) == 0)
    return tonumber(raw.host_used_bytes)
end

test("what is closed or left to the collector gives its memory back", function()
    local context = exphil.context({ threads = 1 })
    local model, dataset = pong(context), games(context)
    local session, sampling = model:session(), { batch = 4, time = 20 }
    local makers = {
        model = function() return pong(context) end,
        session = function() return model:session() end,
        clone = function() return session:clone() end,
        dataset = function() return games(context) end,
        trainer = function() return model:trainer(dataset, { sampling = sampling }) end,
    }
    for name, make in pairs(makers) do
        make():close()
        collect()
        local before = used(context)
        local made = make()
        assert(used(context) > before, name .. " has no memory")
        made:close()
        assert(used(context) == before, name .. " is closed and keeps memory")
        for _ = 1, 5 do make() end
        collect()
        assert(used(context) == before, name .. " is collected and keeps memory")
    end
    -- A trainer that cannot be made leaves its prefetcher and its optimizer to the collector.
    local before = used(context)
    fails("EXPHIL_E_INVALID", "precision", model.trainer, model, dataset, { sampling = sampling, trainer = { precision = 9 } })
    collect()
    assert(used(context) == before, "parts of a trainer keep memory")
end)

test("many that are left to the collector do not fill the memory", function()
    local context, most = exphil.context({ threads = 1 }), 0
    local path = os.tmpname()
    context:create_model({ blocks = "gru", hidden = 256 }):save(path)
    for _ = 1, 140 do -- some 360 MB in all
        context:load_model(path)
        most = math.max(most, used(context))
    end
    os.remove(path)
    assert(most < 200 * 2 ^ 20, most)
end)

if ffi.os == "Linux" then
    local function threads()
        for line in io.lines("/proc/self/status") do
            local count = line:match("^Threads:%s*(%d+)")
            if count then return tonumber(count) end
        end
    end

    -- A thread that has been waited for is counted by the kernel for a moment more. A minute ends what would never come.
    local function settles(count)
        local started = os.time()
        while threads() ~= count and os.time() - started < 60 do end
        return threads() == count
    end

    test("contexts that are closed or left to the collector end their threads", function()
        local function work() -- a context whose threads have begun
            local context = exphil.context({ threads = 4 })
            context:create_model({ blocks = "mamba", hidden = 64 }):close()
            return context
        end
        collect()
        local before, context = threads(), work()
        assert(settles(before + 3), "a context of four threads starts three")
        context:close()
        assert(settles(before), "a closed context keeps threads")
        context = work()
        context = nil
        collect()
        assert(settles(before), "a collected context keeps threads")
    end)
end

test("Melee frames become controllers", function()
    local context = exphil.context({ threads = 1 })
    local model = context:create_model({ blocks = "gru", hidden = 16, head_width = 16 })
    local one, two = model:session(), model:session({ streams = 2 })
    local frame, pad = exphil.melee_frames(), exphil.melee_pads()
    frame.stage, frame.own_port = 32, 1
    for p = 0, 1 do frame.player[p].present = 1 end
    frame.struct_size = 1e6 -- no matter what
    for _ = 1, 10 do assert(math.abs(one:step(frame, pad).main_x) <= 1) end
    local frames, pads = exphil.melee_frames(2), exphil.melee_pads(2)
    frames[0], frames[1] = frame, frame
    two:step(frames, pads)
    -- An array of one is no single record, but a session takes either.
    local several = exphil.melee_frames(1)
    several[0] = frame
    one:step(several, exphil.melee_pads(1))
    one:step(several, pad) -- a record and an array
    one:step(frame, exphil.melee_pads(1))
    one:step(several[0], pad)
    assert(not pcall(function() return several.stage end), "an array has no fields")
    assert(not pcall(function() return frame[0].stage end), "a record has no elements")
    fails("EXPHIL_E_INVALID", "frames", two.step, two, frame, pads)
    fails("EXPHIL_E_INVALID", "pads: is ctype<struct exphil_pad>,", two.step, two, frames, pad)
    fails("EXPHIL_E_INVALID", "frames", one.step, one, ffi.new("exphil_melee_frame *"), pad)
    fails("EXPHIL_E_INVALID", "pads", one.step, one, frame, ffi.new("exphil_pad *"))
    frame.own_port = 9
    fails("EXPHIL_E_INVALID", "", one.step, one, frame, pad)
end)

test("what a new Melee frame leaves out is what the header says", function()
    local several = exphil.melee_frames(2)
    for i, frame in ipairs({ exphil.melee_frames(), several[0], several[1] }) do
        assert(frame.platform_left == 20 and frame.platform_right == 28, i)
        for p = 0, 3 do assert(frame.player[p].known == 31 and frame.follower[p].known == 31 and frame.player[p].present == 0, i) end
        for item = 0, 14 do assert(frame.item[item].owner == -1 and frame.item[item].type == 0, i) end
        assert(frame.struct_size == ffi.sizeof("exphil_melee_frame") and frame.item_count == 0 and frame.stage == 0, i)
    end
end)

test("models of a file", function()
    local context = exphil.context()
    local model = context:load_model(folder .. "/policy.safetensors")
    local info = model:info()
    assert(info.float_count == 23 and info.layout == "trace" and info.blocks == "mamba gru attention")
    local file = io.open(folder .. "/policy.safetensors", "rb")
    local same = context:load_model_memory(file:read("*a"))
    file:close()
    assert(same:info().weights_hash == info.weights_hash)
end)

if arg[2] then
    test("replays are learnt", function()
        local context = exphil.context({ threads = 1 })
        local dataset = context:dataset()
        local added = dataset:add_replay(arg[2] .. "/training/fox_multishine_closed.slp", { last_frame = 600 })
        assert(added.frames > 100 and dataset:info().frames == added.frames)
        local model = context:create_model({ blocks = "gru", hidden = 16, head_width = 16 })
        local work = model:trainer(dataset, { sampling = { batch = 4 } })
        local first = work:step().loss
        for _ = 1, 6 do work:step() end
        assert(work:step().loss < first)
    end)
end

local failed = 0
for _, name in ipairs(order) do
    local fine, e = xpcall(cases[name], function(e) return tostring(e) .. "\n" .. debug.traceback() end)
    if not fine then
        failed = failed + 1
        io.stderr:write("FAILED: ", name, "\n", e, "\n")
    end
end
os.exit(failed == 0 and 0 or 1, true)
