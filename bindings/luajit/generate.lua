-- Cuts the declarations that LuaJIT needs out of the installed header: generate.lua PREFIX/include >exphil_cdef.lua. What it
-- writes is committed, so that a host needs the library alone; the tests make it anew and fail when it differs.

local file = assert(io.open(assert(arg[1], "generate.lua INCLUDE-FOLDER") .. "/exphil/exphil.h"))
local text = file:read("*a")
file:close()

text = text:gsub("/%*.-%*/", ""):gsub("\\\n", " ")

-- Numbers that stand for sizes of arrays.
local numbers = {}
for name, value in text:gmatch("\n#define (EXPHIL_[%u_]+) +(%d+)%f[^%w]") do numbers[name] = value end

text = text:gsub("\n#[^\n]*", "\n"):gsub("\n#[^\n]*", "\n")
text = text:gsub('extern "C" {', ""):gsub("EXPHIL_API ", ""):gsub("EXPHIL_NODISCARD ", "")
text = text:gsub("EXPHIL_[%u_]+", numbers)

-- One declaration a line; the last brace is that of extern "C".
text = text:gsub("%s+", " "):gsub("%( ", "("):gsub("%s*}%s*$", "")
local lines, depth, start = {}, 0, 1
for place, sign in text:gmatch("()([{};])") do
    depth = depth + (sign == "{" and 1 or sign == "}" and -1 or 0)
    if sign == ";" and depth == 0 then
        lines[#lines + 1] = text:sub(start, place):match("^%s*(.*)$")
        start = place + 1
    end
end

io.write("-- Made by generate.lua from exphil.h: do not edit.\nreturn {\n")
io.write(string.format("    version = { %s, %s, %s },\n", numbers.EXPHIL_VERSION_MAJOR, numbers.EXPHIL_VERSION_MINOR,
    numbers.EXPHIL_VERSION_PATCH))
io.write("    declarations = [[\n", table.concat(lines, "\n"), "\n]],\n}\n")
