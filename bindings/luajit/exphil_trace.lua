-- Replays a trace that a C program recorded, or times a step; tests/hosts/trace.h has the format.
--   exphil_trace.lua check MODEL TRACE      every action and every bit of every logit must be the same
--   exphil_trace.lua bench MODEL [STEPS]    median nanoseconds of one step_row, as one JSON object

local exphil = require("exphil")
local ffi = exphil.ffi

ffi.cdef([[
struct trace_header { char magic[8]; int32_t floats, ids, heads, logits, deterministic, reserved; uint64_t seed;
                      int64_t frames; };
struct trace_time { long s, ns; };
int clock_gettime(int clock, struct trace_time *time);
int memcmp(const void *a, const void *b, size_t bytes);
]])

local function check(model, path)
    local file = assert(io.open(path, "rb"))
    local bytes, place = file:read("*a"), 0
    file:close()
    local base = ffi.cast("const char *", bytes)
    local function take(count)
        assert(place + count <= #bytes, "the trace ends within a frame")
        place = place + count
        return base + (place - count)
    end
    local header = ffi.new("struct trace_header")
    ffi.copy(header, take(ffi.sizeof(header)), ffi.sizeof(header))
    assert(ffi.string(header.magic, 8) == "exphtrc1", "this is no trace")
    local session = model:session({ seed = header.seed, deterministic = header.deterministic })
    local logits = ffi.new("float[?]", session.logit_count)
    assert(session.float_count == header.floats and session.id_count == header.ids and
        session.head_count == header.heads and session.logit_count == header.logits, "the trace is of another model")
    for frame = 1, tonumber(header.frames) do
        if ffi.cast("const int32_t *", take(4))[0] ~= 0 then session:reset() end
        ffi.copy(session.floats, take(4 * header.floats), 4 * header.floats)
        ffi.copy(session.ids, take(4 * header.ids), 4 * header.ids)
        session:step_row()
        session:logits(0, logits)
        if ffi.C.memcmp(session.actions, take(4 * header.heads), 4 * header.heads) ~= 0 or
            ffi.C.memcmp(logits, take(4 * header.logits), 4 * header.logits) ~= 0 then
            error("frame " .. frame - 1 .. " differs", 0)
        end
    end
    print(string.format("luajit: %d frames identical", tonumber(header.frames)))
end

-- Each call is timed alone; the clock's own cost is measured the same way and told, not taken off.
local function median(steps, work)
    local before, after, took = ffi.new("struct trace_time"), ffi.new("struct trace_time"), {}
    for i = 1, steps do
        ffi.C.clock_gettime(1, before)
        work()
        ffi.C.clock_gettime(1, after)
        took[i] = tonumber(after.s - before.s) * 1e9 + tonumber(after.ns - before.ns)
    end
    table.sort(took)
    return took[math.floor(steps / 2) + 1]
end

local function bench(model, steps)
    local session = model:session({ seed = 1, deterministic = true })
    local clock = median(steps, function() end)
    local call = median(steps, function() session:step_row() end)
    print(string.format('{"host":"luajit","median_ns":%d,"clock_ns":%d,"steps":%d}', call, clock, steps))
end

local fine, e = pcall(function()
    local model = exphil.context():load_model(assert(arg[2], "exphil_trace.lua check MODEL TRACE | bench MODEL [STEPS]"))
    if arg[1] == "check" then check(model, arg[3]) else bench(model, tonumber(arg[3] or 100000)) end
end)
if not fine then
    io.stderr:write(tostring(e), "\n")
    os.exit(1)
end
