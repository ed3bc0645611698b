// Command load calls a handler in closed loops and prints how many calls succeeded.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

func main() {
	url := flag.String("url", "", "URL of the handler")
	body := flag.String("body", `"hello"`, "JSON sent with each call")
	workers := flag.Int("workers", 64, "concurrent calls")
	calls := flag.Int64("calls", 0, "number of calls; 0: as many as fit into the duration")
	duration := flag.Duration("duration", 5*time.Second, "time after which no call is started")
	flag.Parse()
	log.SetFlags(0)
	n, err := run(*url, []byte(*body), *workers, *calls, *duration)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(n)
}

func run(url string, body []byte, workers int, calls int64, d time.Duration) (int64, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: workers}}
	end := time.Now().Add(d)
	var started, done atomic.Int64
	g, ctx := errgroup.WithContext(context.Background())
	for range workers {
		g.Go(func() error {
			for (calls == 0 || started.Add(1) <= calls) && time.Now().Before(end) && ctx.Err() == nil {
				if err := call(ctx, client, url, body); err != nil {
					return err
				}
				done.Add(1)
			}
			return nil
		})
	}
	err := g.Wait()
	return done.Load(), err
}

func call(ctx context.Context, client *http.Client, url string, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("POST %s: status %s", url, response.Status)
	}
	return nil
}
