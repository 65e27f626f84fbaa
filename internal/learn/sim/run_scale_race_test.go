//go:build race

package sim

const scale = 10
