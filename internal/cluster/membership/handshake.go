package membership

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// streamMagic is the prefix by which Split recognizes gossip streams.
const streamMagic = "GSP1"

// A stream begins with the magic, the hash of the cluster's name, the target identity
// (zero accepts any node) and the ID of the client process: random bytes, and the end of the client's
// own identity. The server responds with one status byte. A packet begins with packetVersion and the target identity.
const (
	helloBytes        = len(streamMagic) + 3*16
	packetVersion     = 1
	packetHeaderBytes = 1 + 16
	processRandom     = 8 // bytes
)

// Handshake status bytes.
const (
	statusAccepted byte = iota
	statusOtherCluster
	statusOtherNode
	statusSelf
)

// The client's errors for the status bytes.
var (
	errOtherCluster = errors.New("node belongs to another cluster: its cluster-name differs")
	errOtherNode    = errors.New("another node has taken over the address")
	errSelf         = errors.New("the address belongs to this node itself")
)

// hello is the first message of a stream.
type hello struct {
	cluster [16]byte
	target  identity
	process [16]byte
}

func (h hello) encode() []byte {
	b := append(make([]byte, 0, helloBytes), streamMagic...)
	b = append(b, h.cluster[:]...)
	b = append(b, h.target[:]...)
	return append(b, h.process[:]...)
}

// clientHandshake sends h on a new connection and reads the status. If it returns nil, the
// connection is ready for gossip.
func (h hello) clientHandshake(conn net.Conn, timeout time.Duration) error {
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	if _, err := conn.Write(h.encode()); err != nil {
		return fmt.Errorf("send handshake: %w", err)
	}
	var status [1]byte
	if _, err := io.ReadFull(conn, status[:]); err != nil {
		return noStatus(err)
	}
	switch status[0] {
	case statusAccepted:
		return conn.SetDeadline(time.Time{})
	case statusOtherCluster:
		return errOtherCluster
	case statusOtherNode:
		return errOtherNode
	case statusSelf:
		return errSelf
	}
	return fmt.Errorf("not the node port of a server (bind-port, 5122 by default), or of an incompatible one: unknown handshake status %d", status[0])
}

// noStatus explains why there was no response to the handshake.
func noStatus(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("connected, but got no response: the server hangs, or this is not its node port (bind-port, 5122 by default): %w", err)
	}
	return fmt.Errorf("it closed the connection: either it is not the node port of a server (bind-port, 5122 by default), or that node refuses this one, for example because it was removed from the cluster or has no certificate (security.node-tls): see the log of that node: %w", err)
}

// serverHandshake reads the hello of a client and responds with the status, unless admit returns an
// error. h is the server's own, with the server as the target.
func (h hello) serverHandshake(conn net.Conn, timeout time.Duration, admit func(client hello) error) error {
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	b := make([]byte, helloBytes)
	if _, err := io.ReadFull(conn, b); err != nil {
		return fmt.Errorf("read handshake: %w", err)
	}
	if string(b[:len(streamMagic)]) != streamMagic {
		return errors.New("not a gossip stream")
	}
	b = b[len(streamMagic):]
	client := hello{cluster: [16]byte(b[:16]), target: identity(b[16:32]), process: [16]byte(b[32:])}
	if err := admit(client); err != nil {
		return err
	}
	status, err := h.verify(client)
	if _, writeErr := conn.Write([]byte{status}); writeErr != nil {
		return fmt.Errorf("send handshake status: %w", writeErr)
	}
	if err != nil {
		return err
	}
	return conn.SetDeadline(time.Time{})
}

// sentBy reports whether a hello is that of a node. Servers before feature level 4 send random bytes.
func (h hello) sentBy(node identity) bool {
	return [processRandom]byte(h.process[processRandom:]) == [processRandom]byte(node[processRandom:])
}

func (h hello) verify(client hello) (status byte, err error) {
	switch {
	case client.cluster != h.cluster:
		return statusOtherCluster, errOtherCluster
	case client.process == h.process:
		return statusSelf, errSelf
	case client.target != h.target && client.target != identity{}:
		return statusOtherNode, errOtherNode
	}
	return statusAccepted, nil
}

// encodePacket prefixes a packet with the version and the receiver's identity.
func encodePacket(target identity, payload []byte) []byte {
	b := make([]byte, 0, packetHeaderBytes+len(payload))
	b = append(b, packetVersion)
	b = append(b, target[:]...)
	return append(b, payload...)
}

// decodePacket returns the payload of a packet; ok is false unless it is addressed to self.
func decodePacket(self identity, b []byte) (payload []byte, ok bool) {
	if len(b) <= packetHeaderBytes || b[0] != packetVersion || identity(b[1:packetHeaderBytes]) != self {
		return nil, false
	}
	return b[packetHeaderBytes:], true
}
