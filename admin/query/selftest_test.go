package query

import (
	"errors"
	"os"
	"regexp"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDriverVersionIsTheOneInGoMod(t *testing.T) {
	raw, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	found := regexp.MustCompile(regexp.QuoteMeta(driverModule) + ` (\S+)`).FindSubmatch(raw)
	require.NotNil(t, found)
	require.Equal(t, string(found[1]), driverVersion, "check newDatabase with the new version, then change driverVersion")
}

func TestAnotherDriverDisablesSQL(t *testing.T) {
	build := func(m debug.Module) *debug.BuildInfo { return &debug.BuildInfo{Deps: []*debug.Module{&m}} }
	require.NoError(t, checkDriverVersion(build(debug.Module{Path: driverModule, Version: driverVersion}), true))
	require.NoError(t, checkDriverVersion(nil, false))
	err := checkDriverVersion(build(debug.Module{Path: driverModule, Version: "v9.0.0"}), true)
	require.EqualError(t, err, "it was built with modernc.org/sqlite v9.0.0 and needs "+driverVersion+"; rebuild it with that version")
	require.Error(t, checkDriverVersion(build(debug.Module{Path: driverModule, Version: driverVersion, Replace: &debug.Module{}}), true))
	require.NoError(t, checkHandle())

	e := NewEngine(Config{})
	require.NoError(t, e.SelfTest())
	e.disabled = func() error { return errors.Join(ErrDisabled, err) }
	_, err = e.query(t.Context(), "SELECT 1", Options{}, nil)
	require.ErrorIs(t, err, ErrDisabled)
}
