package backend

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/admin"
	"platform/internal/cluster/fabric"
	"platform/internal/cluster/routing"
	"platform/partition"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/store"
)

// promises is a partition with the promises of a workflow, one per page.
type promises struct {
	fabric.Replica
	values [][]byte
}

func (p *promises) Scan(_ context.Context, s *partition.Scan) (page partition.Page, err error) {
	if s.Table != partition.Promises {
		return page, nil
	}
	at := len(s.From) - 1
	if at < 0 || at >= len(p.values) {
		at = 0
	}
	page.Rows = []partition.Row{{Key: fmt.Sprint(at), Promise: machine.Promise{Result: &journal.Result{Value: p.values[at]}}}}
	if at+1 < len(p.values) {
		page.Next = make([]byte, at+2)
	}
	return page, nil
}

// A workflow can have thousands of promises with values of many megabytes.
func TestLargeValuesOfPromisesAreOmitted(t *testing.T) {
	large := make([]byte, admin.MaxPromiseBytes/2+1)
	p := &promises{values: [][]byte{[]byte("a"), large, large, []byte("b")}}
	router := routing.New(1, fabric.DirectoryConfig{
		Remote: func(string, uint32) fabric.Replica { return p }, Unresponsive: func(string) bool { return false },
		Replicas: func(uint32) []string { return []string{"n1"} },
	})
	detail, err := (&catalog{router: router}).Object(t.Context(), admin.Object{Service: "W", Key: "k", Workflow: true})
	require.NoError(t, err)
	require.Len(t, detail.Promises, 4)
	for i, omitted := range []bool{false, false, true, false} {
		require.Equal(t, omitted, detail.Promises[i].Omitted, i)
		require.Equal(t, omitted, detail.Promises[i].Value == nil, i)
		require.True(t, detail.Promises[i].Completed)
	}
}

// keysInScopes is a partition with a key of a service in each of some sorted scopes.
type keysInScopes struct {
	fabric.Replica
	scopes []string
	reads  int
}

func (k *keysInScopes) Scan(_ context.Context, s *partition.Scan) (page partition.Page, err error) {
	k.reads++
	if s.Table != partition.State {
		return page, nil
	}
	for _, scope := range k.scopes {
		o := machine.Object{Scope: scope, Service: "Counter", Key: "k"}
		if bytes.Compare(store.ObjectPlace(o), s.From) >= 0 {
			page.Rows, page.Next = []partition.Row{{Object: o}}, store.AfterObject(o)
			break
		}
	}
	return page, nil
}

// The scopes of a limited client may come after the first MaxScopes.
func TestScopesOfLimitedClientsAreFoundAmongMany(t *testing.T) {
	k := &keysInScopes{}
	for i := range 2 * admin.MaxScopes {
		k.scopes = append(k.scopes, fmt.Sprintf("s%04d", i))
	}
	router := routing.New(1, fabric.DirectoryConfig{
		Remote: func(string, uint32) fabric.Replica { return k }, Unresponsive: func(string) bool { return false },
		Replicas: func(uint32) []string { return []string{"n1"} },
	})
	c := &catalog{router: router}
	scopes, err := c.Scopes(t.Context(), "Counter", nil)
	require.NoError(t, err)
	require.Equal(t, k.scopes[:admin.MaxScopes], scopes)

	k.reads = 0
	scopes, err = c.Scopes(t.Context(), "Counter", []string{"s1999", "s1500", "absent", "s15001", "zzz"})
	require.NoError(t, err)
	require.Equal(t, []string{"s1500", "s1999"}, scopes)
	require.Less(t, k.reads, 20)
}
