package membership

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// streamMagic begins every gossip stream. Split knows the streams by it.
const streamMagic = "GSP1"

// A stream begins with the magic, the hash of the cluster's name, the identity that
// the caller wants to reach (zero: whoever answers) and a number of the calling
// process. One byte answers. A packet begins with packetVersion and the identity that
// it is for.
const (
	helloBytes        = len(streamMagic) + 3*16
	packetVersion     = 1
	packetHeaderBytes = 1 + 16
)

// Answers to the beginning of a stream.
const (
	answerWelcome byte = iota
	answerOtherCluster
	answerOtherNode
	answerSelf
)

// What the answers mean to the caller.
var (
	errOtherCluster = errors.New("it is a node of another cluster, by its cluster-name")
	errOtherNode    = errors.New("another node has taken over the address")
	errSelf         = errors.New("the address is that of this node itself")
)

// hello is what a caller says first.
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

// call introduces the caller on a new connection, which goes on as a gossip stream if
// the result is nil.
func (h hello) call(conn net.Conn, timeout time.Duration) error {
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	if _, err := conn.Write(h.encode()); err != nil {
		return fmt.Errorf("introduce: %w", err)
	}
	var answer [1]byte
	if _, err := io.ReadFull(conn, answer[:]); err != nil {
		return fmt.Errorf("no gossip at this address: %w", err)
	}
	switch answer[0] {
	case answerWelcome:
		return conn.SetDeadline(time.Time{})
	case answerOtherCluster:
		return errOtherCluster
	case answerOtherNode:
		return errOtherNode
	case answerSelf:
		return errSelf
	}
	return fmt.Errorf("no gossip at this address: answer %d", answer[0])
}

// receive reads the introduction of a caller and answers it. h is the receiver's own,
// with itself as the target.
func (h hello) receive(conn net.Conn, timeout time.Duration) error {
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	b := make([]byte, helloBytes)
	if _, err := io.ReadFull(conn, b); err != nil {
		return fmt.Errorf("read introduction: %w", err)
	}
	if string(b[:len(streamMagic)]) != streamMagic {
		return errors.New("not a gossip stream")
	}
	b = b[len(streamMagic):]
	answer, err := h.judge(hello{cluster: [16]byte(b[:16]), target: identity(b[16:32]), process: [16]byte(b[32:])})
	if _, writeErr := conn.Write([]byte{answer}); writeErr != nil {
		return fmt.Errorf("answer introduction: %w", writeErr)
	}
	if err != nil {
		return err
	}
	return conn.SetDeadline(time.Time{})
}

func (h hello) judge(caller hello) (byte, error) {
	switch {
	case caller.cluster != h.cluster:
		return answerOtherCluster, errOtherCluster
	case caller.process == h.process:
		return answerSelf, errSelf
	case caller.target != h.target && caller.target != identity{}:
		return answerOtherNode, errOtherNode
	}
	return answerWelcome, nil
}

// encodePacket puts the receiver's identity before a packet.
func encodePacket(target identity, payload []byte) []byte {
	b := make([]byte, 0, packetHeaderBytes+len(payload))
	b = append(b, packetVersion)
	b = append(b, target[:]...)
	return append(b, payload...)
}

// decodePacket returns what a packet for self carries.
func decodePacket(self identity, b []byte) (payload []byte, ok bool) {
	if len(b) <= packetHeaderBytes || b[0] != packetVersion || identity(b[1:packetHeaderBytes]) != self {
		return nil, false
	}
	return b[packetHeaderBytes:], true
}
