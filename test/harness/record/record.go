// Package record is what a test service uses to tell the test of its side effects
// and to wait for it; package harness has the other end, the Recorder. The
// recorder's address is in the environment variable RECORDER.
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

// Effect reports a side effect under name and returns how many were reported
// under it, this one included.
func Effect(ctx context.Context, name, value string) (int, error) {
	out, err := ask(ctx, http.MethodPost, "/record/"+name, value)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(out)
}

// Wait returns when the test has opened the gate; "" means no gate.
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
