-- The script as Redis is given it: all files joined, in one chunk.
std = "lua51"
globals = { "ARGV" } -- usual.lua spells it out
read_globals = { "redis", "cjson", "struct", "bit", "KEYS" }
max_line_length = false
