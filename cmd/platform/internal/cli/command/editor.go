package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"

	"platform/cmd/platform/internal/client"
)

// EditDocument opens a document in the user's editor and applies what was edited. If apply returns an
// error and again, the user may edit it again. pattern is a file name as of os.CreateTemp.
func (a *App) EditDocument(ctx context.Context, document []byte, pattern string, apply func(edited []byte) (again bool, err error)) error {
	for {
		edited, err := a.EditText(ctx, document, pattern)
		if err != nil {
			return err
		}
		repeated := bytes.Equal(bytes.TrimSpace(edited), bytes.TrimSpace(document))
		again, err := apply(edited)
		if err == nil || !again {
			return err
		}
		if repeated || a.AssumesYes() { // an editor that does not correct the mistake, or a script, which would not either
			return keepEdited(err, edited, pattern)
		}
		a.Say("%s", err)
		if a.Confirm("Edit again?") != nil {
			return keepEdited(err, edited, pattern)
		}
		document = edited
	}
}

// IsMistake reports whether the server refused a request because of its content.
func IsMistake(err error) bool {
	return client.HasStatus(err, http.StatusBadRequest) || client.HasStatus(err, http.StatusUnprocessableEntity)
}

// keepEdited writes what the user has edited to a file, to which it refers in the error.
func keepEdited(err error, edited []byte, pattern string) error {
	file, failed := os.CreateTemp("", pattern)
	if failed != nil {
		return err
	}
	_, failed = file.Write(edited)
	if failed = errors.Join(failed, file.Close()); failed != nil {
		return err
	}
	return WithHint(err, "What was edited is in "+file.Name()+".")
}

// EditText opens text in the user's editor, in a file whose name has a pattern as of os.CreateTemp, and
// returns what was saved.
func (a *App) EditText(ctx context.Context, text []byte, pattern string) ([]byte, error) {
	file, err := os.CreateTemp("", pattern)
	if err != nil {
		return nil, fmt.Errorf("create a file to edit: %w", err)
	}
	defer os.Remove(file.Name())
	_, err = file.Write(append(bytes.TrimRight(text, "\n"), '\n'))
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("write the file to edit: %w", err)
	}
	if err := a.EditFile(ctx, file.Name()); err != nil {
		return nil, err
	}
	edited, err := os.ReadFile(file.Name())
	if err != nil {
		return nil, fmt.Errorf("read the edited file: %w", err)
	}
	return edited, nil
}

// EditFile opens a file in the user's editor.
func (a *App) EditFile(ctx context.Context, file string) error {
	editor := ""
	for _, name := range []string{"PLATFORM_EDITOR", "VISUAL", "EDITOR"} {
		if editor = a.Getenv(name); editor != "" {
			break
		}
	}
	if editor == "" {
		return WithHint(errors.New("no editor is configured"), "Set EDITOR, for example: export EDITOR=vi")
	}
	run := editorCommand(ctx, editor, file)
	run.Stdin, run.Stdout, run.Stderr = a.In, a.Out, a.Err
	if err := run.Run(); err != nil {
		return fmt.Errorf("editor %s: %w", editor, err)
	}
	return nil
}

// editorCommand returns the command that opens a file in an editor. Like Git, it passes the name of the editor to the shell
// if it contains anything special, such as arguments or quotes, unless it is the path of a program as a whole.
func editorCommand(ctx context.Context, editor, file string) *exec.Cmd {
	if program, err := exec.LookPath(editor); err == nil {
		return exec.CommandContext(ctx, program, file) //nolint:gosec // the user's own editor
	}
	if shell, err := exec.LookPath("sh"); err == nil && strings.ContainsAny(editor, "|&;<>()$`\\\"' \t\n*?[#~=%") {
		return exec.CommandContext(ctx, shell, "-c", editor+` "$@"`, editor, file) //nolint:gosec // the user's own editor
	}
	words := append(strings.Fields(editor), file)
	return exec.CommandContext(ctx, words[0], words[1:]...) //nolint:gosec // the user's own editor
}
