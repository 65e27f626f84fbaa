// Package redisserver tells in the list of "go test ./..." that the tests over
// Redis were left out: its line ends in "[no tests to run]" if redis-server is
// not on the PATH.
package redisserver
