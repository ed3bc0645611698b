package enroll

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"time"

	"platform/internal/certs"
	"platform/internal/nodetls"
	nodepb "platform/proto/node"
)

const (
	maxResponse = 256 << 10
	// attemptTimeout bounds a request to one node.
	attemptTimeout = 15 * time.Second
	// retryDelay is the delay between attempts, and refusedDelay that after a refusal, which only
	// another token changes.
	retryDelay   = time.Second
	refusedDelay = 10 * time.Second
)

// Client gets the first certificate of a node with a join token.
type Client struct {
	Files     *Files
	Token     func() (Token, error) // read for each attempt
	Addresses []string              // host:port of members
	Report    func(reason string)   // called with what the node waits for
	Log       *slog.Logger
}

// Run returns when the files contain a certificate, or when ctx ends.
func (c *Client) Run(ctx context.Context) error {
	key, err := c.Files.pendingKey()
	if err != nil {
		return err
	}
	for logged := ""; ; {
		err := c.attempt(ctx, key)
		if err == nil {
			c.Log.Info("this node got its certificate from the cluster")
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("no certificate from the cluster: %w", err)
		}
		delay := retryDelay
		if _, refused := errors.AsType[*refusedError](err); refused {
			delay = refusedDelay
		}
		c.Report("waiting for a certificate from the cluster: " + err.Error())
		if text := err.Error(); text != logged {
			logged = text
			c.Log.Warn("no certificate from the cluster yet, retrying", "err", err)
		}
		select {
		case <-time.After(delay):
		case <-ctx.Done():
		}
	}
}

// missingToken adds to an error how to create the token, if there is none.
func (c *Client) missingToken(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w; the file gets the output of platform cluster join-token create --node %s, sent to a member", err, c.Files.node)
	}
	return err
}

// attempt sends the request to one node after another, until one accepts it.
func (c *Client) attempt(ctx context.Context, key *ecdsa.PrivateKey) error {
	token, err := c.Token()
	if err != nil {
		return fmt.Errorf("read the join token: %w", c.missingToken(err))
	}
	var errs []error
	for _, address := range c.Addresses {
		issued, err := c.request(ctx, address, token, key)
		if err == nil {
			return c.Files.install(key, issued)
		}
		errs = append(errs, fmt.Errorf("%s: %w", address, err))
	}
	return errors.Join(errs...)
}

// request requests a certificate from a node. Nothing is sent to a node of another cluster.
func (c *Client) request(ctx context.Context, address string, token Token, key *ecdsa.PrivateKey) (*Issued, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	var dialer net.Dialer
	raw, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer raw.Close()
	defer context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Unix(1, 0)) })()
	conn, err := nodetls.Enroll(ctx, raw, c.Files.cluster, token.Authority)
	if errors.Is(err, nodetls.ErrOtherAuthority) {
		err = fmt.Errorf("%w; the token was not sent", err)
	}
	if err != nil {
		return nil, err
	}
	signing, err := certs.NewSigningRequest(key, c.Files.cluster, c.Files.node)
	if err != nil {
		return nil, err
	}
	message, err := (&nodepb.EnrollRequest{Token: token.ID, Secret: token.secret[:], Name: c.Files.node, SigningRequest: signing}).MarshalVT()
	if err != nil {
		return nil, err
	}
	if err := writeMessage(conn, message); err != nil {
		return nil, err
	}
	if message, err = readMessage(conn, maxResponse); err != nil {
		return nil, err
	}
	var resp nodepb.EnrollResponse
	if err := resp.UnmarshalVT(message); err != nil {
		return nil, err
	}
	switch {
	case resp.Refused:
		return nil, &refusedError{errors.New(resp.Error)}
	case resp.Error != "":
		return nil, errors.New(resp.Error)
	}
	return &Issued{resp.Certificate, resp.Authorities, resp.PacketKeys}, nil
}
