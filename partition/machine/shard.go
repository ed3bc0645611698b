package machine

import "math/bits"

// PartitionOf returns the partition, of count, that owns a partition key: partitions own
// equal ranges of the 64-bit key space, in order.
func PartitionOf(partitionKey uint64, count uint32) uint32 {
	hi, _ := bits.Mul64(partitionKey, uint64(count))
	return uint32(hi)
}

// KeyRange returns the first and last partition key that a partition owns.
func KeyRange(partition, count uint32) (first, last uint64) {
	return firstKey(partition, count), firstKey(partition+1, count) - 1
}

// firstKey is the smallest key k with PartitionOf(k, count) == partition; for partition ==
// count it wraps to 0, one above the largest key.
func firstKey(partition, count uint32) uint64 {
	if partition == count {
		return 0
	}
	quo, rem := bits.Div64(uint64(partition), 0, uint64(count))
	if rem != 0 {
		quo++
	}
	return quo
}
