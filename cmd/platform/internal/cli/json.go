package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// jsonFlag adds --json to a command that shows something.
func jsonFlag(flags *pflag.FlagSet) *bool {
	return flags.Bool("json", false, "print JSON, as the server sends it")
}

// printRaw prints JSON of the server, indented.
func (a *app) printRaw(raw []byte) error {
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		return fmt.Errorf("the server sent malformed JSON: %w", err)
	}
	a.print.Println(strings.TrimSpace(out.String()))
	return nil
}

// printJSON prints a value as indented JSON.
func (a *app) printJSON(value any) error {
	var raw bytes.Buffer
	encoder := json.NewEncoder(&raw)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("encode output: %w", err)
	}
	return a.printRaw(bytes.TrimSpace(raw.Bytes()))
}
