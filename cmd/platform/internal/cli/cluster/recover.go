package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
	"platform/internal/units"
)

func (a *commands) partitionsRecover() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "recover [partition]...",
		Short: "Recover partitions that have permanently lost their majority (unsafe)",
		Long: `Makes the newest remaining replica of each partition the only one; other replicas are then
copied from it. Without arguments it recovers all partitions that have lost their majority.

This is unsafe: acknowledged writes that the remaining replica does not have are lost, and steps
whose results are lost run again. If possible, start the missing nodes instead; then no recovery
is needed.

Every member of the cluster must respond. First remove nodes that are permanently lost, with
` + "`platform cluster nodes remove <node> --force`" + `; their former replicas are rejected if they return.

If the metadata has lost its majority as well, stop the remaining node and run
` + "`platform-server recover`" + ` there instead.`,
		Example: "  platform cluster partitions recover --dry-run\n  platform cluster partitions recover",
	}
	dryRun := cmd.Flags().Bool("dry-run", false, "show the plan without executing it")
	asJSON := command.JSONFlag(cmd.Flags())
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error {
		var ids []uint32
		for _, text := range args {
			id, err := partitionNumber(text)
			if err != nil {
				return err
			}
			ids = append(ids, id)
		}
		return a.recoverPartitions(ctx, ids, *dryRun, *asJSON)
	})
	return cmd
}

func (a *commands) recoverPartitions(ctx context.Context, ids []uint32, dryRun, asJSON bool) error {
	plan := a.Client.PlanRecovery
	if dryRun { // what is known now
		plan = func(ctx context.Context, ids []uint32) ([]client.PartitionRecovery, *client.Response, error) {
			return a.Client.RecoverPartitions(ctx, ids, true)
		}
	}
	plans, response, err := plan(ctx, ids)
	if err != nil {
		return command.HintNotFound(err, "`platform cluster partitions list` shows the partitions.")
	}
	if asJSON && (dryRun || len(plans) == 0) {
		return a.PrintRaw(response.Body)
	}
	if len(plans) == 0 {
		a.Print.Println("No partition has lost its majority.")
		return nil
	}
	if !asJSON {
		nodes, _, err := a.Client.Nodes(ctx)
		if err != nil {
			return err
		}
		a.recoveryTable(plans, nodes)
	}
	var possible []uint32
	for _, p := range plans {
		if p.Refused == "" {
			possible = append(possible, p.Partition)
		}
	}
	switch {
	case len(possible) == 0:
		return errors.New("none of these partitions can be recovered now")
	case dryRun:
		return nil
	}
	a.Hint.Box("This cannot be undone. Writes that only the missing replicas have are lost: calls, state and",
		"results of steps, which then run again. The missing nodes must never be started with their old disks",
		"where these nodes cannot reach them.")
	if err := a.Confirm(fmt.Sprintf("Recover %s from the remaining replicas?", units.Counted(len(possible), "partition"))); err != nil {
		return err
	}
	done, response, err := a.Client.RecoverPartitions(ctx, possible, false)
	if err != nil {
		return err
	}
	if asJSON {
		err = a.PrintRaw(response.Body)
	} else {
		a.showRecovered(done)
	}
	if failed := notRecovered(done); err == nil && failed > 0 {
		err = fmt.Errorf("%s of %d not recovered", units.Counted(failed, "partition"), len(done))
	}
	return err
}

func notRecovered(done []client.PartitionRecovery) (n int) {
	for _, p := range done {
		if !p.Recovered {
			n++
		}
	}
	return n
}

func (a *commands) recoveryTable(plans []client.PartitionRecovery, nodes []client.Node) {
	rows := make([][]string, len(plans))
	for i, p := range plans {
		var discarded []string
		for _, id := range p.Discarded {
			discarded = append(discarded, nameOf(nodes, id))
		}
		state := "can be recovered"
		if p.Refused != "" {
			state = "cannot be recovered: " + term.Clean(p.Refused)
		}
		rows[i] = []string{
			fmt.Sprint(p.Partition), nameOf(nodes, p.From), fmt.Sprintf("%d (term %d)", p.Last, p.LastTerm),
			command.OrDash(term.Clean(strings.Join(p.Missing, ", "))), command.OrDash(strings.Join(discarded, ", ")), state,
		}
	}
	a.Print.Table("", []string{"ID", "FROM", "LAST-ENTRY", "MISSING", "REPLACED", "STATE"}, rows)
}

func (a *commands) showRecovered(done []client.PartitionRecovery) {
	for _, p := range done {
		if p.Recovered {
			a.Print.Printf("%s Recovered partition %d from entry %d\n", a.Print.Green("[OK]:"), p.Partition, p.Last)
		} else {
			a.Print.Printf("%s Partition %d: %s\n", a.Print.Red("[ERROR]:"), p.Partition, term.Clean(p.Refused))
		}
	}
	a.Say("`platform cluster status --wait 5m` waits until all replicas are complete.")
}
