// Package sandbox gives a test a network and file systems for fault injection: hosts
// in separate network namespaces, between which packets can be dropped, and small file
// systems that can be filled or frozen.
//
// It requires Linux; file systems also require root, networks root or unprivileged user
// namespaces. TestMain calls Run, which re-executes the test binary in new namespaces.
// Everything created there disappears with the process; the network and mounts of the
// machine are not changed. If the sandbox is not available, Available and DisksAvailable
// return the reason.
package sandbox
