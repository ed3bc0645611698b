//go:build !raftgroup

package metadata

type replica struct{}
