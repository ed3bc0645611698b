// Command manpages writes the manual pages of both programs to a directory.
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"platform/cmd/platform/internal/cli"
	"platform/internal/config"
	"platform/internal/version"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: manpages DIRECTORY")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// write writes one page per command of the client, and one for the server. The date of the pages is
// fixed, so that equal builds are equal.
func write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // for packages
		return err
	}
	client := cli.Command()
	client.DisableAutoGenTag = true
	server := &cobra.Command{
		Use: "platform-server", Short: "Run a node", Long: "```\n" + config.Usage() + "```\n", DisableAutoGenTag: true,
		Run: func(*cobra.Command, []string) {},
	}
	for _, root := range []*cobra.Command{client, server} {
		header := &doc.GenManHeader{Section: "1", Source: "platform " + version.Version(), Manual: "Platform", Date: &time.Time{}}
		if err := doc.GenManTree(root, header, dir); err != nil {
			return fmt.Errorf("write the pages of %s: %w", root.Name(), err)
		}
	}
	return nil
}
