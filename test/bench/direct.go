package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"platform/internal/ids"
	"platform/invoker/protocol"
	"platform/partition/journal"
)

// direct calls a handler of the endpoint in the service protocol, without a server.
type direct struct {
	client *http.Client
	url    string
	input  []byte
}

// directRate returns how many operations per second a number of slots makes when each calls
// hold at the endpoint again as soon as the end of the previous call has arrived. A server
// with that concurrency limit also stores each call and its end, so it cannot be faster.
func (b *testbed) directRate(ctx context.Context, slots int, d time.Duration) (float64, error) {
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: &protocols, DisableCompression: true}
	defer transport.CloseIdleConnections()
	c := &direct{
		client: &http.Client{Transport: transport}, url: b.service.URI() + "/invoke/Bench/hold",
		input: journal.NewInput(nil, strconv.AppendInt(nil, holdTime.Milliseconds(), 10)),
	}
	begin := time.Now()
	var calls atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for range slots {
		g.Go(func() error {
			for time.Since(begin) < d {
				body, err := c.call(ctx, uint64(calls.Add(1)))
				if err != nil {
					return fmt.Errorf("call the endpoint directly: %w", err)
				}
				g.Go(func() error { // the next call does not wait for the end of the response
					_, _ = io.Copy(io.Discard, body)
					return body.Close()
				})
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return 0, err
	}
	return float64(calls.Load()) / time.Since(begin).Seconds(), nil
}

// call makes one call and ends its request when the end message has arrived. It returns the
// rest of the response.
func (c *direct) call(ctx context.Context, number uint64) (io.ReadCloser, error) {
	start := protocol.StartInfo{Version: protocol.V6, ID: ids.NewInvocation(number, [16]byte{}), KnownEntries: 1, PartialState: true}
	message := protocol.AppendStart(nil, &start)
	message = append(protocol.AppendHeader(message, journal.Input, len(c.input)), c.input...)
	rest, end := io.Pipe()
	defer end.Close()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, io.MultiReader(bytes.NewReader(message), rest))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", protocol.V6.ContentType())
	req.Header.Set("Accept", protocol.V6.ContentType())
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		err = awaitEnd(resp.Body)
	} else {
		err = fmt.Errorf("status %s", resp.Status)
	}
	if err != nil {
		resp.Body.Close()
		return nil, err
	}
	return resp.Body, nil
}

// awaitEnd reads messages up to the end of the call.
func awaitEnd(body io.Reader) error {
	decoder := protocol.Decoder{Limit: 1 << 20}
	buffer := make([]byte, 4<<10)
	for {
		n, readErr := body.Read(buffer)
		decoder.Feed(buffer[:n])
		for {
			m, ok, err := decoder.Next()
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			switch m.Type {
			case protocol.End:
				return nil
			case protocol.Error, protocol.Suspension:
				return fmt.Errorf("the call did not end: %s", protocol.Name(m.Type))
			}
		}
		if readErr != nil {
			return fmt.Errorf("the response has no end message: %w", readErr)
		}
	}
}
