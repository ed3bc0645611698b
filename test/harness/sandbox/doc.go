// Package sandbox gives a test a network and file systems that it may break: hosts
// in network namespaces of their own, between which packets can be dropped, and
// small file systems that can be filled up or made to hang.
//
// It needs Linux, and root for file systems; for networks it is enough that users may
// make user namespaces. TestMain calls Run, which starts the test binary again in
// namespaces of its own; all that is made there vanishes with the process, and the
// machine's network and mounts are never touched. Where that is not possible Available
// and DisksAvailable say no, and why.
package sandbox
