package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"time"
)

// requestTimeout limits a request.
const requestTimeout = 30 * time.Second

// conn is an HTTP/1.1 connection for sequential requests. A general HTTP client would use
// more CPU than the server spends on an echo, on a machine that both share.
type conn struct {
	host          string
	contentType   string
	method        string // "" for POST
	token         string // sent with each request; "" for none
	net           net.Conn
	reader        *bufio.Reader
	request       []byte
	body          []byte
	stopAfterFunc func() bool
}

// dial connects to host, for requests whose bodies have a content type. The connection is closed when ctx ends.
func dial(ctx context.Context, host, contentType string) (*conn, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", host)
	if err != nil {
		return nil, err
	}
	c := &conn{host: host, contentType: contentType, net: nc, reader: bufio.NewReaderSize(nc, 16<<10)}
	c.stopAfterFunc = context.AfterFunc(ctx, func() { nc.Close() })
	return c, nil
}

// secure makes the connection use TLS.
func (c *conn) secure(ctx context.Context, config *tls.Config) error {
	secured := tls.Client(c.net, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		return err
	}
	c.net, c.reader = secured, bufio.NewReaderSize(secured, 16<<10)
	return nil
}

func (c *conn) close() {
	c.stopAfterFunc()
	c.net.Close()
}

// post sends a request with a body, none if it is nil, and returns the status and the
// response body, which is valid until the next request.
func (c *conn) post(path string, body []byte) (status int, resp []byte, err error) {
	b := append(c.request[:0], cmp.Or(c.method, "POST")...)
	b = append(b, ' ')
	b = append(b, path...)
	b = append(b, " HTTP/1.1\r\nhost: "...)
	b = append(b, c.host...)
	if c.token != "" {
		b = append(b, "\r\nauthorization: Bearer "...)
		b = append(b, c.token...)
	}
	if body != nil {
		b = append(b, "\r\ncontent-type: "...)
		b = append(b, c.contentType...)
	}
	b = append(b, "\r\ncontent-length: "...)
	b = strconv.AppendInt(b, int64(len(body)), 10)
	b = append(b, "\r\n\r\n"...)
	c.request = append(b, body...)
	if err := c.net.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return 0, nil, err
	}
	if _, err := c.net.Write(c.request); err != nil {
		return 0, nil, err
	}
	return c.readResponse()
}

func (c *conn) readResponse() (status int, resp []byte, err error) {
	line, err := c.line()
	if err != nil {
		return 0, nil, err
	}
	if len(line) < 12 || !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
		return 0, nil, fmt.Errorf("not an HTTP/1.1 response: %.80q", line)
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, nil, fmt.Errorf("status line %.80q: %w", line, err)
	}
	size, chunked, err := c.headers()
	if err != nil {
		return 0, nil, err
	}
	c.body = c.body[:0]
	if chunked {
		err = c.chunks()
	} else {
		err = c.readBody(size)
	}
	return status, c.body, err
}

// headers reads up to the empty line and returns how the body is delimited.
func (c *conn) headers() (size int, chunked bool, err error) {
	for {
		line, err := c.line()
		if err != nil || len(line) == 0 {
			return size, chunked, err
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(name, []byte("content-length")):
			if size, err = strconv.Atoi(string(value)); err != nil {
				return 0, false, fmt.Errorf("content-length: %w", err)
			}
		case bytes.EqualFold(name, []byte("transfer-encoding")):
			chunked = bytes.EqualFold(value, []byte("chunked"))
		case bytes.EqualFold(name, []byte("connection")) && bytes.EqualFold(value, []byte("close")):
			return 0, false, errors.New("the server closes the connection")
		}
	}
}

// chunks reads a chunked body.
func (c *conn) chunks() error {
	for {
		line, err := c.line()
		if err != nil {
			return err
		}
		digits, _, _ := bytes.Cut(line, []byte(";"))
		size, err := strconv.ParseUint(string(digits), 16, 31)
		if err != nil {
			return fmt.Errorf("size of a chunk: %w", err)
		}
		if err := c.readBody(int(size)); err != nil {
			return err
		}
		if _, err := c.line(); err != nil || size == 0 {
			return err
		}
	}
}

// readBody appends the next size bytes to the body.
func (c *conn) readBody(size int) error {
	n := len(c.body)
	c.body = slices.Grow(c.body, size)[:n+size]
	_, err := io.ReadFull(c.reader, c.body[n:])
	return err
}

// line reads a line without its end; it is valid until the next read.
func (c *conn) line() ([]byte, error) {
	line, err := c.reader.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	return bytes.TrimRight(line, "\r\n"), nil
}
