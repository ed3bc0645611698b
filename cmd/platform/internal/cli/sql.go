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
	"platform/internal/units"
)

func (a *app) sql() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sql <query>",
		Short: "Query the server with SQL",
		Long: `Runs one SELECT over the system tables: invocations, journals, state, queues, services,
nodes and more. SHOW TABLES lists the tables, DESCRIBE <table> the columns of one. A
column without an alias is named after its expression. A division by zero is NULL. The query "-" is
read from standard input.`,
		Args: cobra.ExactArgs(1),
		Example: `  platform sql "SHOW TABLES"
  platform sql "SELECT status, COUNT(*) FROM sys_invocation GROUP BY status"
  platform sql "SELECT id, last_failure FROM sys_invocation WHERE status = 'backing-off'" --json
  platform sql "SELECT * FROM state WHERE service_key = 'k1'" --consistency strong`,
	}
	flags := cmd.Flags()
	asArray := flags.Bool("json", false, "print a JSON array of the rows")
	asLines := flags.Bool("jsonl", false, "print each row as JSON on a line of its own")
	consistency := flags.String("consistency", "", "consistency of the result: bounded (default; may lack writes acknowledged in the last two seconds) or strong (lacks none)")
	cmd.MarkFlagsMutuallyExclusive("json", "jsonl")
	a.Shows(cmd, func(ctx context.Context, args []string) error {
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
		result, err := a.Client.QueryTable(ctx, query, *consistency)
		if err != nil {
			return err
		}
		took := time.Since(started)
		for _, notice := range result.Notices {
			a.Say("%s %s", a.Hint.Yellow("Notice:"), term.Clean(notice))
		}
		if err := a.showRows(result, *asArray, *asLines); err != nil {
			return err
		}
		a.Say("%s", a.Hint.Dim(fmt.Sprintf("%s. Query took %s", units.Counted(len(result.Rows), "row"), term.Duration(took))))
		return nil
	})
	return cmd
}

func (a *app) showRows(result *client.Rows, asArray, asLines bool) error {
	switch {
	case asArray && len(result.Rows) == 0:
		a.Print.Println("[]")
		return nil
	case asArray:
		return a.PrintJSON(result.Rows)
	case asLines:
		for _, row := range result.Rows {
			line, err := json.Marshal(row)
			if err != nil {
				return fmt.Errorf("encode output: %w", err)
			}
			a.Print.Println(string(line))
		}
		return nil
	}
	if len(result.Rows) == 0 {
		return nil
	}
	cells := make([][]string, len(result.Rows))
	for i, row := range result.Rows {
		cells[i] = make([]string, len(result.Columns))
		for j, name := range result.Columns {
			cells[i][j] = term.Clean(row.Text(name))
		}
	}
	a.Print.Table("", result.Columns, cells)
	return nil
}
