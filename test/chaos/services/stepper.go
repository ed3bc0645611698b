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

// run executes some steps one after the other. Each execution of a step makes up
// a nonce, which is the step's result, and reports it together with the nonces
// that it got for the steps before: those are the acknowledged ones.
func run(ctx restate.Context, in history.Run) ([]string, error) {
	var seen []string
	for i := range in.Steps {
		nonce, err := restate.Run(ctx, func(ctx restate.RunContext) (string, error) {
			nonce := strconv.FormatUint(rand.Uint64(), 36)
			event, err := json.Marshal(history.Execution{Step: i, Nonce: nonce, Seen: seen})
			if err != nil {
				return "", err
			}
			if _, err := record.Effect(ctx, in.ID, string(event)); err != nil {
				return "", err
			}
			// Leave kills a chance to fall between the effect and its acknowledgement.
			time.Sleep(rand.N(4 * time.Millisecond))
			return nonce, nil
		})
		if err != nil {
			return nil, err
		}
		if sabotaged("recorded") {
			nonce += "?"
		}
		seen = append(seen, nonce)
	}
	return seen, nil
}
