package dev

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// showSample starts the sample service, registers it and makes the first call. The service
// runs until processes ends.
func (r *running) showSample(ctx, processes context.Context, wg *sync.WaitGroup) error {
	first, last := r.nodes[0], r.nodes[len(r.nodes)-1]
	r.step("Server", "%s, data in %s%s", relative(r.o.Server), r.o.Dir, map[bool]string{false: " (deleted at the end)"}[r.o.Retain])
	for _, n := range r.nodes {
		r.step("", "%singress %s, admin API %s", map[bool]string{true: n.name + ": "}[len(r.nodes) > 1], n.ingress(""), n.admin(""))
	}
	r.step("Web UI", "%s", r.webUI(first))
	address := r.o.sampleAddress()
	service, err := Start("the sample service", os.Stderr, "", nil, r.o.Sample[0], append(r.o.Sample[1:], address)...)
	if err != nil {
		return err
	}
	wg.Go(func() {
		select {
		case <-processes.Done():
			service.Stop()
		case <-service.Ended():
			r.failed <- service.Failure()
		}
	})
	if err := service.Await(ctx, "tcp:"+address); err != nil {
		return err
	}
	r.step("Service", "sample service on http://%s", address)

	body := fmt.Sprintf(`{"uri": "http://%s"}`, address)
	r.step("Register", "POST %s %s", first.admin("/deployments"), body)
	services, err := register(ctx, first.admin("/deployments"), body, r.token)
	if err != nil {
		return err
	}
	for _, s := range services {
		r.step("", "%s", s)
	}
	r.step("Call", `POST %s "World"`, last.ingress("/Greeter/greet"))
	begin := time.Now()
	result, err := request(ctx, http.MethodPost, last.ingress("/Greeter/greet"), `"World"`, "")
	if err != nil {
		return err
	}
	r.step("Result", "%s  (%s; the handler sleeps 200ms)", result, time.Since(begin).Round(time.Millisecond))
	if !r.o.Once {
		r.suggestCalls(last)
	}
	return nil
}

// relative shortens the path of a program below the working directory.
func relative(program string) string {
	if dir, err := os.Getwd(); err == nil {
		if path, err := filepath.Rel(dir, program); err == nil && filepath.IsLocal(path) {
			return path
		}
	}
	return program
}

// step prints one line with a label.
func (r *running) step(heading, format string, args ...any) {
	r.o.Print.Printf("%-9s %s\n", heading, fmt.Sprintf(format, args...))
}

// register registers a deployment and returns one line for each service found.
func register(ctx context.Context, url, body, token string) ([]string, error) {
	raw, err := request(ctx, http.MethodPost, url, body, token)
	if err != nil {
		return nil, err
	}
	var deployment struct {
		Services []struct {
			Name     string `json:"name"`
			Type     string `json:"ty"`
			Handlers []struct {
				Name string `json:"name"`
			} `json:"handlers"`
		} `json:"services"`
	}
	if err := json.Unmarshal(raw, &deployment); err != nil {
		return nil, fmt.Errorf("response of %s: %w", url, err)
	}
	var lines []string
	for _, s := range deployment.Services {
		var handlers []string
		for _, h := range s.Handlers {
			handlers = append(handlers, h.Name)
		}
		lines = append(lines, fmt.Sprintf("found %s %s: %s", s.Type, s.Name, strings.Join(handlers, ", ")))
	}
	return lines, nil
}
