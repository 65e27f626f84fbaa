package redistest

import "strings"

// slots is the number of hash slots of a cluster.
const slots = 1 << 14

// slotOf returns the slot of a key: the CRC16 of its hash tag, or of all of
// it. See "Redis cluster specification", Key distribution model and Hash
// tags.
func slotOf(key string) int {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			key = tag
		}
	}
	return int(crc16(key)) % slots
}

// crc16 is CRC-16/XMODEM: polynomial 0x1021, from zero, most significant bit
// first.
func crc16(text string) uint16 {
	var crc uint16
	for i := range len(text) {
		crc ^= uint16(text[i]) << 8
		for range 8 {
			top := crc & 0x8000
			if crc <<= 1; top != 0 {
				crc ^= 0x1021
			}
		}
	}
	return crc
}
