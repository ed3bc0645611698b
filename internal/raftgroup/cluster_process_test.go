package raftgroup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/test/harness/ports"
)

const (
	clusterGroups  = 3
	clusterClients = 4 // per group
)

// processCluster is three node processes.
type processCluster struct {
	t     *testing.T
	nodes []*nodeProcess
	http  *http.Client
}

type nodeProcess struct {
	cfg   nodeProcessConfig
	cmd   *exec.Cmd
	stdin io.Closer
}

func newProcessCluster(t *testing.T) *processCluster {
	c := &processCluster{t: t, http: &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	dir := t.TempDir()
	free := make([]string, 6)
	for i := range free {
		free[i] = ports.Address(t)
	}
	for i := range 3 {
		n := &nodeProcess{cfg: nodeProcessConfig{
			Dir: filepath.Join(dir, strconv.Itoa(i)), Index: i, Raft: free[:3], Control: free[3+i], Groups: clusterGroups,
		}}
		require.NoError(t, os.MkdirAll(n.cfg.Dir, 0o700))
		c.nodes = append(c.nodes, n)
		c.start(i)
	}
	t.Cleanup(func() {
		for i := range c.nodes {
			c.kill(i)
		}
		c.http.CloseIdleConnections()
	})
	return c
}

func (c *processCluster) start(i int) {
	n := c.nodes[i]
	config, err := json.Marshal(n.cfg)
	require.NoError(c.t, err)
	n.cmd = exec.Command(os.Args[0])
	n.cmd.Env = append(os.Environ(), nodeProcessEnv+"="+string(config))
	log, err := os.OpenFile(filepath.Join(n.cfg.Dir, "log.txt"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(c.t, err)
	defer log.Close()
	n.cmd.Stderr, n.cmd.Stdout = log, log
	n.stdin, err = n.cmd.StdinPipe()
	require.NoError(c.t, err)
	require.NoError(c.t, n.cmd.Start())
}

// kill ends a node with SIGKILL.
func (c *processCluster) kill(i int) {
	n := c.nodes[i]
	if n.cmd == nil {
		return
	}
	_ = n.cmd.Process.Kill()
	_ = n.cmd.Wait()
	n.cmd = nil
}

func (c *processCluster) dump(node, group int, commands bool) (nodeDump, error) {
	url := fmt.Sprintf("http://%s/dump/%d", c.nodes[node].cfg.Control, group)
	if commands {
		url += "?commands"
	}
	resp, err := c.http.Get(url)
	if err != nil {
		return nodeDump{}, err
	}
	defer resp.Body.Close()
	var d nodeDump
	return d, json.NewDecoder(resp.Body).Decode(&d)
}

// history is what clients know about their commands.
type history struct {
	mu      sync.Mutex
	acked   []map[string]bool // by group
	unknown []map[string]bool
	lastAck [clusterGroups]atomic.Int64
	acks    [clusterGroups]atomic.Int64
}

func newHistory() *history {
	h := &history{}
	for range clusterGroups {
		h.acked = append(h.acked, map[string]bool{})
		h.unknown = append(h.unknown, map[string]bool{})
	}
	return h
}

// client proposes one command after another until ctx ends. A command is tried
// again only when it was definitely not proposed.
func (c *processCluster) client(ctx context.Context, h *history, group, id int) {
	target := id % len(c.nodes)
	for seq := 0; ctx.Err() == nil; seq++ {
		command := fmt.Sprintf("g%d c%d s%d", group, id, seq)
		for ctx.Err() == nil {
			status := c.propose(target, group, command)
			if status == http.StatusConflict || status == 0 { // 0: nothing listens there
				target = (target + 1) % len(c.nodes)
				time.Sleep(2 * time.Millisecond) // paces the client, waits for nothing
				continue
			}
			h.record(group, command, status == http.StatusOK)
			break
		}
	}
}

func (h *history) record(group int, command string, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !ok {
		h.unknown[group][command] = true
		return
	}
	h.acked[group][command] = true
	h.acks[group].Add(1)
	h.lastAck[group].Store(time.Now().UnixNano())
}

// propose returns the HTTP status, 0 when the connection was refused, and -1 for
// other errors, whose outcome is unknown.
func (c *processCluster) propose(node, group int, command string) int {
	url := fmt.Sprintf("http://%s/propose/%d", c.nodes[node].cfg.Control, group)
	resp, err := c.http.Post(url, "text/plain", bytes.NewReader([]byte(command)))
	if err != nil {
		var op *net.OpError
		if ok := asDial(err, &op); ok {
			return 0
		}
		return -1
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

func TestThreeProcessesLoseNothingWhenLeadersAreKilled(t *testing.T) {
	c := newProcessCluster(t)
	h := newHistory()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var clients sync.WaitGroup
	for g := range clusterGroups {
		for id := range clusterClients {
			clients.Go(func() { c.client(ctx, h, g, id) })
		}
	}
	c.awaitProgress(h)

	var gaps []time.Duration
	for round := range 6 {
		victim := c.leaderOf(round % clusterGroups)
		led := c.groupsLedBy(victim)
		before := time.Now()
		c.kill(victim)
		for _, g := range led {
			require.Eventually(t, func() bool { return h.lastAck[g].Load() > before.Add(time.Millisecond).UnixNano() }, time.Minute, time.Millisecond)
			gap := time.Unix(0, h.lastAck[g].Load()).Sub(before)
			gaps = append(gaps, gap)
			t.Logf("round %d: node %d led group %d, next acknowledgement %v after the kill", round, victim, g, gap.Round(time.Millisecond/10))
		}
		c.awaitProgress(h)
		c.start(victim)
		c.awaitCaughtUp(victim)
	}
	cancel()
	clients.Wait()
	slices.Sort(gaps)
	t.Logf("failover: median %v, longest %v", gaps[len(gaps)/2], gaps[len(gaps)-1])
	// The fastest one, since a busy machine may delay most of them for as long.
	require.Less(t, gaps[0], Safe().HeartbeatTimeout, "failover waits for the election time-out")
	c.check(h)
}

// awaitProgress waits until each group acknowledged 100 commands more.
func (c *processCluster) awaitProgress(h *history) {
	for g := range clusterGroups {
		want := h.acks[g].Load() + 100
		require.Eventually(c.t, func() bool { return h.acks[g].Load() >= want }, 2*time.Minute, 5*time.Millisecond, "group %d makes no progress", g)
	}
}

func (c *processCluster) leaderOf(group int) int {
	leader := -1
	require.Eventually(c.t, func() bool {
		for i := range c.nodes {
			if d, err := c.dump(i, group, false); err == nil && d.Leader != "" {
				leader, _ = strconv.Atoi(d.Leader)
				return true
			}
		}
		return false
	}, time.Minute, 5*time.Millisecond)
	return leader
}

func (c *processCluster) groupsLedBy(node int) (out []int) {
	for g := range clusterGroups {
		if c.leaderOf(g) == node {
			out = append(out, g)
		}
	}
	return out
}

// awaitCaughtUp waits until a node applied what others had when it started.
func (c *processCluster) awaitCaughtUp(node int) {
	for g := range clusterGroups {
		d, err := c.dump((node+1)%len(c.nodes), g, false)
		require.NoError(c.t, err)
		require.Eventually(c.t, func() bool {
			own, err := c.dump(node, g, false)
			return err == nil && own.At.Index >= d.At.Index
		}, 2*time.Minute, 5*time.Millisecond, "node %d does not catch up in group %d", node, g)
	}
}

// check compares the three replicas with each other and with what clients know.
func (c *processCluster) check(h *history) {
	t := c.t
	imports := 0
	for g := range clusterGroups {
		var dumps [3]nodeDump
		require.Eventually(t, func() bool {
			for i := range dumps {
				var err error
				if dumps[i], err = c.dump(i, g, true); err != nil {
					return false
				}
			}
			return dumps[0].At == dumps[1].At && dumps[0].At == dumps[2].At
		}, 2*time.Minute, 20*time.Millisecond, "replicas of group %d do not reach the same position", g)
		require.Equal(t, dumps[0].Hash, dumps[1].Hash)
		require.Equal(t, dumps[0].Hash, dumps[2].Hash)
		require.Equal(t, dumps[0].Commands, dumps[1].Commands)
		require.Equal(t, dumps[0].Commands, dumps[2].Commands)

		seen := map[string]int{}
		for _, command := range dumps[0].Commands {
			seen[command]++
			require.True(t, h.acked[g][command] || h.unknown[g][command], "group %d has %q, which was not proposed", g, command)
			require.Equal(t, 1, seen[command], "%q took effect more than once", command)
		}
		for command := range maps.Keys(h.acked[g]) {
			require.Equal(t, 1, seen[command], "%q was acknowledged and is lost", command)
		}
		for i, d := range dumps {
			imports += d.Imports
			require.NotZero(t, d.Snapshots, "node %d took no snapshot", i)
		}
		t.Logf("group %d: %d acknowledged, %d unknown, %d in the log", g, len(h.acked[g]), len(h.unknown[g]), len(seen))
	}
	t.Logf("replicas that came back by a snapshot in their last life: %d", imports)
}

// asDial reports whether err is a dial that failed, so that nothing was sent.
func asDial(err error, op **net.OpError) bool {
	return errors.As(err, op) && (*op).Op == "dial"
}
