-- The script as Redis is given it: all files joined, in one chunk.
std = "lua51"
read_globals = { "redis", "cjson", "struct", "bit", "KEYS", "ARGV" }
max_line_length = false
