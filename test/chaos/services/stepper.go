package main

import (
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"time"

	restate "github.com/restatedev/sdk-go"

	"platform/test/harness/record"
	"platform/test/history"
)

// runSteps executes steps sequentially. Each execution of a step generates a nonce,
// which is the step's result, and reports it together with the results of the previous
// steps, which are thereby acknowledged.
func runSteps(ctx restate.Context, in history.Run) ([]string, error) {
	var results []string
	for i := range in.Steps {
		nonce, err := restate.Run(ctx, func(ctx restate.RunContext) (string, error) {
			nonce := strconv.FormatUint(rand.Uint64(), 36)
			event, err := json.Marshal(history.Execution{Step: i, Nonce: nonce, Seen: results})
			if err != nil {
				return "", err
			}
			if _, err := record.Effect(ctx, in.ID, string(event)); err != nil {
				return "", err
			}
			// Widen the window between the effect and its acknowledgement for kills.
			time.Sleep(rand.N(4 * time.Millisecond))
			return nonce, nil
		})
		if err != nil {
			return nil, err
		}
		if hasDefect("change-result") {
			nonce += "?"
		}
		results = append(results, nonce)
	}
	return results, nil
}
