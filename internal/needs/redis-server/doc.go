// Package redisserver shows in the output of "go test ./..." that the tests over Redis were
// skipped: its line ends in "[no tests to run]" if redis-server is not on the PATH.
package redisserver
