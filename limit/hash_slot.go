package limit

// NumHashSlots is the number of hash slots of a Redis Cluster.
const NumHashSlots = 16384

// HashSlot returns the hash slot of a key, as the Redis Cluster specification
// (redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec) defines it: CRC16
// of the text between the first { and the next }, if that is not empty, else of the whole
// key.
func HashSlot(key []byte) uint16 {
	for i, c := range key {
		if c != '{' {
			continue
		}
		for j := i + 1; j < len(key); j++ {
			if key[j] == '}' {
				if j > i+1 {
					key = key[i+1 : j]
				}
				break
			}
		}
		break
	}
	return crc16(key) % NumHashSlots
}

// crc16 is CRC-16/XMODEM: polynomial 0x1021, initial value 0.
func crc16(b []byte) uint16 {
	var crc uint16
	for _, c := range b {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^c]
	}
	return crc
}

var crcTable = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
		table[i] = crc
	}
	return table
}()
