package raftgroup

const nodeProcessEnv = "RAFTGROUP_TEST_NODE"

func runNodeProcess() int { return 0 }
