package command

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Processes that log in and out at the same time keep the credentials of each other.
func TestCredentialsOfOtherProcessesAreKept(t *testing.T) {
	const processes = 20
	file := filepath.Join(t.TempDir(), "platform", "config.toml")
	of := func(i int) *App {
		return &App{Profile: Settings{File: file, Environment: fmt.Sprint("env", i)}}
	}
	var g sync.WaitGroup
	for i := range processes {
		g.Go(func() {
			if err := of(i).Store(Credentials{Token: fmt.Sprint(i)}); err != nil {
				t.Error(err)
			}
			if i%2 == 0 {
				return
			}
			stored, known, err := of(i).RemoveStored()
			if err != nil || !known || stored.Token != fmt.Sprint(i) {
				t.Errorf("removed %+v, %v, error %v", stored, known, err)
			}
		})
	}
	g.Wait()
	all, err := readCredentials(credentialsFile(file))
	require.NoError(t, err)
	require.Len(t, all, processes/2)
}
