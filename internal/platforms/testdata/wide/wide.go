// Package wide is wrong if an int has 32 bits, and on Windows.
package wide

// Wide needs 41 bits.
const Wide int = 1 << 40
