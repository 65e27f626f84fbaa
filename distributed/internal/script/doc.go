// Package script is the decisions in Redis and their encoding: the Lua of the two scripts, the
// arguments of a call ([Request.Args]) and its reply ([Request.Decode]). It knows no client of
// Redis and no clock, and does not wait.
//
// A call of few arguments is decided by usual.lua alone. Any other goes through main.lua,
// which calls the files that it needs. Both leave the same state. key.go says where that
// stands, and testdata/layout.txt is what it looks like.
//
// Replies may be anything: what is read without an error is within bounds.
package script
