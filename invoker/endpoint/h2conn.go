package endpoint

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// clientConn is an HTTP/2 connection. A stream is reserved before its request is sent.
type clientConn interface {
	// Reserve reserves a stream, Release gives it back.
	Reserve() error
	Release()
	// RoundTrip sends a request on a reserved stream, and returns when the response head has arrived.
	// b is the body, nil for none.
	RoundTrip(ctx context.Context, r *Request, b *body) (*http.Response, error)
	// InFlight is the number of streams that are open or reserved, Available that of further ones.
	InFlight() int
	Available() int
	// Err is not nil once the connection accepts no streams.
	Err() error
	// OnIdle sets a function that is called when a stream has ended and no other is open.
	OnIdle(func())
	Close() error
}

const (
	// readBuffer has room for what many streams send together.
	readBuffer = 16 << 10
	// defaultStreams is how many streams a peer accepts that sets no limit.
	defaultStreams = 1000
	initialWindow  = 65535 // RFC 9113, 6.9.2
	maxWindow      = 1<<31 - 1
	maxStreamID    = 1<<31 - 1
	// defaultPingTimeout applies if none is configured.
	defaultPingTimeout = 15 * time.Second
	// headSize is the usual size of an encoded head.
	headSize = 512
)

// h2Conn is an HTTP/2 connection. It differs from that of net/http in what a message costs: it is framed
// by the goroutine that writes it, and what the peer sends is passed to the goroutine of its stream
// without a further one in between. Frames are parsed by golang.org/x/net.
//
// The connection has two goroutines, one that sends, see conn, and one that reads.
type h2Conn struct {
	*conn
	cfg    *Config
	framer *http2.Framer // used by the reading goroutine

	// The fields below are guarded by the mutex of conn.

	streams    map[uint32]*h2Stream
	nextID     uint32
	reserved   int
	maxStreams int    // of the peer
	maxHeader  uint32 // likewise
	acks       int    // of settings that the peer owes

	sendWindow int         // of the connection
	peerWindow int         // of a new stream, for sending
	waiting    []*h2Stream // have more to send than the connection allows
	received   int         // bytes for which no window of the connection has been opened

	resets    int  // streams that were reset and may still run at the peer, until it responds to a ping
	resetPing bool // that ping has been sent
	heard     bool // the peer has sent something on a stream since the last of these pings

	alive    bool // the peer has sent something since the last check
	pinged   bool // it has been asked to
	liveness *time.Timer

	idleSince   time.Time
	idleWatched bool // the timer is set
	idleness    *time.Timer
	onIdle      func()

	goAway   *goAwayError
	draining error // the connection accepts no further streams; nil: it does
	failed   error // it is closed
}

var (
	errGoAway      = errors.New(goAway)
	errUnusable    = errors.New(unusable)
	errConnClosed  = errors.New("the connection was closed")
	errIdle        = errors.New("the connection was idle for too long")
	errLost        = errors.New("the peer does not respond to pings: connection lost")
	errBodyClosed  = errors.New("the response is not read any further")
	errHeaderLimit = errors.New("the request headers are longer than the endpoint accepts")
	errFromPeer    = errors.New("received from peer")
)

// newH2Conn begins to speak HTTP/2 on a connection.
func newH2Conn(c *Client, below *conn) *h2Conn {
	h := &h2Conn{
		conn: below, cfg: &c.cfg, streams: map[uint32]*h2Stream{}, nextID: 1, maxStreams: defaultStreams,
		maxHeader: maxWindow, peerWindow: initialWindow, sendWindow: initialWindow, acks: 1,
	}
	h.framer = http2.NewFramer(nil, bufio.NewReaderSize(below, readBuffer))
	h.framer.SetReuseFrames()
	h.framer.SetMaxReadFrameSize(uint32(c.cfg.MaxFrame))
	h.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	h.framer.MaxHeaderListSize = uint32(c.cfg.MaxHeader)
	h.mu.Lock()
	defer h.unlock()
	h.refill = h.sendWaiting
	h.greet()
	h.liveness = time.AfterFunc(orForever(c.cfg.PingInterval), h.checkAlive)
	h.watchIdle()
	c.work.Go(h.read)
	return h
}

// greet writes the preface and the settings.
func (c *h2Conn) greet() {
	c.unsent = append(c.unsent, http2.ClientPreface...)
	c.unsent = appendFrame(c.unsent, 4*settingLen, settingsFrame, 0, 0)
	c.unsent = appendSetting(c.unsent, http2.SettingEnablePush, 0)
	c.unsent = appendSetting(c.unsent, http2.SettingInitialWindowSize, uint32(c.cfg.streamWindow()))
	c.unsent = appendSetting(c.unsent, http2.SettingMaxFrameSize, uint32(c.cfg.MaxFrame))
	c.unsent = appendSetting(c.unsent, http2.SettingMaxHeaderListSize, uint32(c.cfg.MaxHeader))
	if more := c.cfg.allWindows() - initialWindow; more > 0 {
		c.unsent = appendWindow(c.unsent, 0, more)
	}
}

// unlock releases the mutex, and wakes the sender if there is something to send.
func (c *h2Conn) unlock() {
	c.wake()
	c.mu.Unlock()
}

func (c *h2Conn) wake() {
	if len(c.unsent) > 0 && !c.sending {
		c.sending = true
		c.change.Broadcast()
	}
}

// usable returns why no stream can be opened, or nil.
func (c *h2Conn) usable() error {
	switch {
	case c.failed != nil:
		return c.failed
	case c.err != nil:
		return c.err
	case c.draining != nil:
		return c.draining
	case c.nextID > maxStreamID:
		return errUnusable
	}
	return nil
}

// inFlight counts the streams. One that was reset counts until the peer has read that.
func (c *h2Conn) inFlight() int { return len(c.streams) + c.reserved + c.resets }

func (c *h2Conn) InFlight() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inFlight()
}

func (c *h2Conn) Available() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(0, c.maxStreams-c.inFlight())
}

func (c *h2Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.usable()
}

func (c *h2Conn) Reserve() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.usable(); err != nil {
		return err
	}
	if c.inFlight() >= c.maxStreams {
		return errUnusable
	}
	c.reserved++
	return nil
}

func (c *h2Conn) Release() {
	c.mu.Lock()
	defer c.unlock()
	c.reserved--
	c.ended()
}

func (c *h2Conn) OnIdle(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onIdle = f
}

// Close ends the connection and its streams.
func (c *h2Conn) Close() error {
	c.fail(errConnClosed)
	return nil
}

// RoundTrip implements clientConn.
func (c *h2Conn) RoundTrip(ctx context.Context, r *Request, b *body) (*http.Response, error) {
	head, size, err := appendHead(make([]byte, 0, headSize), r)
	s := &h2Stream{c: c, remaining: unknownLength}
	s.change.L = &c.mu
	var from *reader
	if err == nil && b != nil {
		from, err = b.tryOn(s)
	}
	if err != nil {
		c.Release()
		return nil, err
	}
	if b == nil {
		context.AfterFunc(ctx, s.abort) // otherwise the body aborts
	}
	c.mu.Lock()
	defer c.unlock()
	c.reserved--
	s.body = from
	if err := c.open(s, head, size); err != nil {
		s.closeBody()
		c.ended()
		return nil, err
	}
	c.pump(s)
	c.wake()
	for s.resp == nil && s.err == nil {
		s.change.Wait()
	}
	if s.resp == nil {
		return nil, s.err
	}
	return s.resp, nil
}

// open opens a stream with the encoded head of its request, whose size as the peer counts it is
// given as well.
func (c *h2Conn) open(s *h2Stream, head []byte, size uint32) error {
	for len(c.unsent) >= maxUnsent && c.usable() == nil && !s.closed {
		c.change.Wait()
	}
	switch {
	case s.closed:
		return s.err
	case c.usable() != nil:
		return errUnusable
	case len(c.streams) >= c.maxStreams:
		return errUnusable // it has lowered the limit
	case size > c.maxHeader:
		return errHeaderLimit
	}
	s.id = c.nextID
	c.nextID += 2
	c.streams[s.id] = s
	s.sendWindow, s.recvWindow = c.peerWindow, c.cfg.streamWindow()
	flags := byte(0)
	if s.body == nil {
		flags, s.sent = flagEndStream, true
	}
	if s.id == 1 {
		head = append([]byte{noTable}, head...)
	}
	c.unsent = appendHeaders(c.unsent, s.id, head, flags)
	return nil
}

// pump sends what a stream has to send.
func (c *h2Conn) pump(s *h2Stream) {
	if s.queued || s.id == 0 {
		return
	}
	if c.sendFrame(s) {
		s.queued = true
		c.waiting = append(c.waiting, s)
		c.sendWaiting()
	}
}

// sendWaiting sends frames of the streams that have more to send, one of each in turn.
func (c *h2Conn) sendWaiting() {
	for len(c.waiting) > 0 && len(c.unsent) < maxUnsent && c.sendWindow > 0 {
		s := c.waiting[0]
		c.waiting[0] = nil
		c.waiting = c.waiting[1:]
		if c.sendFrame(s) {
			c.waiting = append(c.waiting, s)
		} else {
			s.queued = false
		}
	}
	if len(c.waiting) == 0 {
		c.waiting = nil
	}
}

// sendFrame sends at most one frame with data of a stream, and the end of the request after its
// last data. It returns true if the stream has more to send and may.
func (c *h2Conn) sendFrame(s *h2Stream) bool {
	if s.body == nil {
		return false
	}
	limit := min(s.sendWindow, c.sendWindow, smallestMaxFrame)
	if len(c.unsent) >= maxUnsent {
		limit = 0
	}
	at := len(c.unsent)
	b, freed, more, err := s.body.appendTo(appendFrame(c.unsent, 0, frameData, 0, s.id), limit)
	n := len(b) - at - frameHeaderLen
	if n <= 0 {
		b = b[:at]
	} else {
		setLength(b[at:], n)
		c.sendWindow -= n
		s.sendWindow -= n
	}
	c.unsent = b
	s.body.b.notify(freed)
	switch {
	case errors.Is(err, io.EOF):
		s.endRequest()
	case err != nil:
		s.closeBody() // aborted, which resets the stream
	}
	return more && s.sendWindow > 0
}

// ended is called when there is one stream less.
func (c *h2Conn) ended() {
	if len(c.streams)+c.reserved > 0 {
		return
	}
	if err := c.usable(); err != nil {
		c.failLocked(err)
		return
	}
	if c.onIdle != nil && c.inFlight() == 0 {
		go c.onIdle() // takes other locks
	}
	c.watchIdle()
}

// watchIdle closes the connection once it has been idle for too long.
func (c *h2Conn) watchIdle() {
	c.idleSince = time.Now()
	if c.idleWatched || c.failed != nil || c.cfg.IdleTimeout <= 0 {
		return
	}
	c.idleWatched = true
	if c.idleness == nil {
		c.idleness = time.AfterFunc(c.cfg.IdleTimeout, c.checkIdle)
		return
	}
	c.idleness.Reset(c.cfg.IdleTimeout)
}

func (c *h2Conn) checkIdle() {
	c.mu.Lock()
	defer c.unlock()
	c.idleWatched = false
	if c.failed != nil || len(c.streams)+c.reserved > 0 {
		return
	}
	if rest := c.cfg.IdleTimeout - time.Since(c.idleSince); rest > 0 {
		c.idleWatched = true
		c.idleness.Reset(rest)
		return
	}
	c.failLocked(errIdle)
}

// checkAlive pings a silent peer, and ends the connection if that has had no effect.
func (c *h2Conn) checkAlive() {
	c.mu.Lock()
	defer c.unlock()
	switch {
	case c.failed != nil:
	case c.alive:
		c.alive, c.pinged = false, false
		c.liveness.Reset(orForever(c.cfg.PingInterval))
	case !c.pinged:
		c.pinged = true
		c.unsent = appendPing(c.unsent, 0, [8]byte{pingAlive})
		c.liveness.Reset(cmp.Or(c.cfg.PingTimeout, defaultPingTimeout))
	default:
		c.failLocked(errLost)
	}
}

// orForever is the interval, or the longest one if there is none.
func orForever(interval time.Duration) time.Duration {
	if interval <= 0 {
		return math.MaxInt64
	}
	return interval
}

// First bytes of pings, by which the responses are told apart.
const (
	pingAlive = 1
	pingReset = 2
)

// countReset counts a stream that was reset until the peer confirms it: it would otherwise have more
// streams in progress than it allows. It is asked only once it has sent something on a stream after the
// last time, since some peers close connections with many pings between which nothing happens.
func (c *h2Conn) countReset() {
	if !c.heard && !c.resetPing {
		return
	}
	c.resets++
	if !c.resetPing {
		c.resetPing, c.heard = true, false
		c.unsent = appendPing(c.unsent, 0, [8]byte{pingReset})
	}
}

// fail ends the connection and its streams.
func (c *h2Conn) fail(err error) {
	c.mu.Lock()
	defer c.unlock()
	c.failLocked(err)
}

func (c *h2Conn) failLocked(err error) {
	if c.failed != nil {
		return
	}
	c.failed = err
	c.liveness.Stop()
	if c.idleness != nil {
		c.idleness.Stop()
	}
	for _, s := range c.streams {
		s.fail(err)
	}
	c.waiting = nil
	if c.onIdle != nil {
		go c.onIdle()
	}
	go c.conn.Close() // may wait for the peer
}
