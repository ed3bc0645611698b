package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
	"platform/internal/units"
)

func (a *app) audit() *cobra.Command {
	return command.Group(&cobra.Command{
		Use: "audit", Short: "Show, verify and export the audit log",
		Long: `The audit log records who changed what through the admin API: operations on invocations, state,
deployments, services, rules, tokens and the cluster, and requests that were rejected.`,
	}, a.auditList(), a.auditVerify(), a.auditExport())
}

func (a *app) auditList() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Aliases: []string{"ls"}, Short: "List the newest records", Args: cobra.NoArgs, Example: "  platform audit list --limit 20"}
	limit := cmd.Flags().Int("limit", 50, "`number` of records, at most 1000")
	return command.ViewResponse(a.App, cmd, func(ctx context.Context, _ []string) ([]client.AuditRecord, *client.Response, error) {
		return a.Client.Audit(ctx, 0, *limit)
	}, func(_ context.Context, list []client.AuditRecord) error {
		if len(list) == 0 {
			a.Say("The audit log is empty.")
			return nil
		}
		rows := make([][]string, len(list))
		for i, r := range list {
			outcome := r.Outcome
			if outcome == "" {
				outcome = "ok"
			}
			if r.Omitted > 0 {
				outcome += fmt.Sprintf("; before it, %s without effect not recorded", units.Counted(r.Omitted, "request"))
			}
			rows[i] = []string{
				strconv.FormatUint(r.Sequence, 10), a.Print.Time(r.At), command.OrDash(term.Clean(r.Principal)), command.OrDash(term.Clean(r.Address)),
				term.Clean(r.Action), term.Clean(r.Object), term.Clean(outcome),
			}
		}
		a.Print.Table("", []string{"NUMBER", "TIME", "PRINCIPAL", "ADDRESS", "ACTION", "OBJECT", "OUTCOME"}, rows)
		return nil
	})
}

func (a *app) auditVerify() *cobra.Command {
	cmd := &cobra.Command{
		Use: "verify", Short: "Verify that no record was changed or removed", Args: cobra.NoArgs, Example: "  platform audit verify --hash 9f86d0…",
		Long: `Verifies the hashes of the records. The hash of the last record is printed: with a copy of it,
--hash proves later that the records up to it were not replaced.`,
	}
	known := cmd.Flags().String("hash", "", "`hash` of a record, from an earlier run, that must still be part of the log")
	asJSON := command.JSONFlag(cmd.Flags())
	cmd.RunE = command.Run(func(ctx context.Context, _ []string) error {
		v, response, err := a.Client.VerifyAudit(ctx)
		if err != nil {
			return err
		}
		if *asJSON {
			if err := a.PrintRaw(response.Body); err != nil {
				return err
			}
		}
		if !v.Intact {
			return errors.New(term.Clean(v.Problem))
		}
		if *known != "" {
			found, err := a.hasHash(ctx, *known)
			if err != nil {
				return err
			}
			if !found {
				return fmt.Errorf("no record of the audit log has the hash %s: the records were replaced, or the record is older than the %d that are kept", *known, v.Records)
			}
		}
		if !*asJSON {
			a.Print.Printf("%s %s, numbers %d to %d, %d deleted to make room\nHash of the last record: %s\n",
				a.Print.Green("[OK]:"), units.Counted(v.Records, "record"), v.First, v.Last, v.Deleted, v.Hash)
		}
		return nil
	})
	return cmd
}

// auditPage is the number of records of one request.
const auditPage = 1000

// eachAuditPage passes on all records as JSON, in pages, the newest first.
func (a *app) eachAuditPage(ctx context.Context, use func([]json.RawMessage) error) error {
	before := uint64(0)
	for {
		list, response, err := a.Client.Audit(ctx, before, auditPage)
		if err != nil || len(list) == 0 {
			return err
		}
		var raw struct{ Records []json.RawMessage }
		if err := json.Unmarshal(response.Body, &raw); err != nil {
			return fmt.Errorf("the server sent malformed JSON: %w", err)
		}
		if err := use(raw.Records); err != nil {
			return err
		}
		if before = list[len(list)-1].Sequence; before == 1 || len(list) < auditPage {
			return nil
		}
	}
}

func (a *app) hasHash(ctx context.Context, hash string) (found bool, err error) {
	err = a.eachAuditPage(ctx, func(records []json.RawMessage) error {
		for _, r := range records {
			var record struct{ Hash string }
			if json.Unmarshal(r, &record) == nil && record.Hash == hash {
				found = true
			}
		}
		return nil
	})
	return found, err
}

func (a *app) auditExport() *cobra.Command {
	cmd := &cobra.Command{
		Use: "export", Short: "Print all records as lines of JSON, the oldest first", Args: cobra.NoArgs, Example: "  platform audit export > audit.ndjson",
	}
	cmd.RunE = command.Run(func(ctx context.Context, _ []string) error {
		var all []json.RawMessage
		if err := a.eachAuditPage(ctx, func(records []json.RawMessage) error {
			all = append(all, records...)
			return nil
		}); err != nil {
			return err
		}
		slices.Reverse(all)
		for _, r := range all {
			var line bytes.Buffer
			if err := json.Compact(&line, r); err != nil {
				return fmt.Errorf("the server sent malformed JSON: %w", err)
			}
			a.Print.Println(line.String())
		}
		return nil
	})
	return cmd
}
