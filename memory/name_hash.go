package memory

import (
	"bytes"
	"hash/maphash"
	"math/bits"

	"github.com/limitgate/limitgate/limit"
)

// tagHash is the hash of what is between the braces of a bucket's name, which all buckets of a
// tenant share.
type tagHash uint64

// shard returns the index of the shard that holds the buckets.
func (h tagHash) shard() int { return int(h % shardCount) }

// with returns the hash of a name with the tag, and rest behind it.
func (h tagHash) with(seed maphash.Seed, rest []byte) uint64 {
	return (uint64(h) ^ bits.RotateLeft64(maphash.Bytes(seed, rest), 32)) * 0x9E3779B97F4A7C15 // so that all bits count in the upper half
}

// hashTag returns the hash of the tag with which a name begins.
func hashTag(seed maphash.Seed, tag []byte) tagHash {
	return tagHash(maphash.Bytes(seed, tag[limit.TagStart:len(tag)-1]))
}

// hashName returns the hashes of the name of a bucket.
func hashName(seed maphash.Seed, name []byte) (tagHash, uint64) {
	n := bytes.IndexByte(name, limit.TagEnd) + 1
	if n <= limit.TagStart { // no bucket has such a name
		return tagHash(0), tagHash(0).with(seed, name)
	}
	tag := hashTag(seed, name[:n])
	return tag, tag.with(seed, name[n:])
}
