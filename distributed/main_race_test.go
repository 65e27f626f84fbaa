//go:build race

package distributed_test

const together = "8"
