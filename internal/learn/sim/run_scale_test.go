//go:build !race

package sim

// scale divides what is played. Nothing here is concurrent, so under the race
// detector, which makes it fifteen times slower, a tenth is enough.
const scale = 1
