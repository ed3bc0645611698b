// Package record reports side effects from a test service to the test and waits for
// gates; harness.Recorder is the server. The environment variable RECORDER has the
// recorder's address.
package record

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
)

// Effect records value under name and returns how many records name has, including
// this one.
func Effect(ctx context.Context, name, value string) (int, error) {
	out, err := ask(ctx, http.MethodPost, "/record/"+name, value)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(out)
}

// Wait waits until the gate is open; with "" it returns immediately.
func Wait(ctx context.Context, gate string) error {
	if gate == "" {
		return nil
	}
	_, err := ask(ctx, http.MethodGet, "/gate/"+gate, "")
	return err
}

func ask(ctx context.Context, method, path, body string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, method, os.Getenv("RECORDER")+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("recorder: %s", resp.Status)
	}
	return string(out), err
}
