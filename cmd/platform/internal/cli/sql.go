package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
)

func (a *app) sql() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sql <query>",
		Short: "Query the server with SQL",
		Long: `Answers one SELECT over the system tables: invocations, journals, state, queues, services,
nodes and more. SHOW TABLES lists the tables, DESCRIBE <table> the columns of one. A
column without an alias is named by its text. A division by zero is NULL. A query of - is read
from the standard input.`,
		Args: cobra.ExactArgs(1),
		Example: `  platform sql "SHOW TABLES"
  platform sql "SELECT status, COUNT(*) FROM sys_invocation GROUP BY status"
  platform sql "SELECT id, last_failure FROM sys_invocation WHERE status = 'backing-off'" --json
  platform sql "SELECT * FROM state WHERE service_key = 'k1'" --consistency strong`,
	}
	flags := cmd.Flags()
	asArray := flags.Bool("json", false, "print a JSON array of the rows")
	asLines := flags.Bool("jsonl", false, "print each row as JSON on a line of its own")
	consistency := flags.String("consistency", "", "how current the answer is: bounded (default; what was acknowledged up to two seconds earlier may be missing) or strong (nothing is)")
	cmd.MarkFlagsMutuallyExclusive("json", "jsonl")
	a.shows(cmd, func(ctx context.Context, args []string) error {
		query := args[0]
		if !slices.Contains([]string{"", "bounded", "strong"}, *consistency) {
			return fmt.Errorf("unknown consistency %q: it is bounded or strong", *consistency)
		}
		if query == "-" {
			text, err := io.ReadAll(a.In)
			if err != nil {
				return fmt.Errorf("read the query: %w", err)
			}
			query = string(text)
		}
		started := time.Now()
		answer, err := a.client.QueryTable(ctx, query, *consistency)
		if err != nil {
			return err
		}
		took := time.Since(started)
		if err := a.showRows(answer, *asArray, *asLines); err != nil {
			return err
		}
		a.say("%s", a.hint.Dim(fmt.Sprintf("%s. Query took %s", counted(len(answer.Rows), "row"), term.Duration(took))))
		return nil
	})
	return cmd
}

// counted is a number of things.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func (a *app) showRows(answer *client.Rows, asArray, asLines bool) error {
	switch {
	case asArray && len(answer.Rows) == 0:
		a.print.Println("[]")
		return nil
	case asArray:
		return a.printJSON(answer.Rows)
	case asLines:
		for _, row := range answer.Rows {
			line, err := json.Marshal(row)
			if err != nil {
				return fmt.Errorf("encode output: %w", err)
			}
			a.print.Println(string(line))
		}
		return nil
	}
	if len(answer.Rows) == 0 {
		return nil
	}
	cells := make([][]string, len(answer.Rows))
	for i, row := range answer.Rows {
		cells[i] = make([]string, len(answer.Columns))
		for j, name := range answer.Columns {
			cells[i][j] = term.Clean(row.Text(name))
		}
	}
	a.print.Table("", answer.Columns, cells)
	return nil
}
