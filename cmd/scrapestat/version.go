package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// What the linker stamps in releases (internal/release): the version, the hash of
// the commit and its time in RFC 3339 form.
var (
	version = ""
	commit  = ""
	date    = ""
)

// nextVersion is the release that this tree is on its way to: the first heading of CHANGELOG.md has it too.
const nextVersion = "0.1.0"

// build says what a binary was made of; a field that is not known is "".
type build struct {
	version, commit, date string
}

// thisBuild is that of this binary: what was stamped, else what Go noted of the
// module and of the repository it was built in.
func thisBuild() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return describeBuild(build{version, commit, date}, info)
}

// describeBuild fills in what was not stamped.
func describeBuild(b build, info *debug.BuildInfo) build {
	if b.commit == "" {
		changed := ""
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				b.commit = s.Value
			case s.Key == "vcs.time":
				b.date = s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				changed = " with changes"
			}
		}
		b.commit += changed
	}
	switch {
	case b.version != "":
	case info.Main.Version != "" && info.Main.Version != "(devel)":
		b.version = info.Main.Version
	case len(b.commit) >= 12:
		b.version = nextVersion + "-dev+" + b.commit[:12]
	default:
		b.version = nextVersion + "-dev"
	}
	return b
}

// toolVersion is the version of this binary: the stamped one, else that of the
// module it was installed as, else a development version with its commit.
func toolVersion() string { return thisBuild().version }

func newVersionCmd(std stdio) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version and the commit",
		Example: "  scrapestat version",
		Args:    exactly(0, "no arguments"),
		RunE:    func(*cobra.Command, []string) error { return writeVersion(std.out, thisBuild()) },
	}
}

func writeVersion(w io.Writer, b build) error {
	if _, err := fmt.Fprintf(w, "scrapestat %s %s %s/%s\n", b.version, runtime.Version(), runtime.GOOS,
		runtime.GOARCH); err != nil || b.commit == "" {
		return err
	}
	_, err := fmt.Fprintf(w, "commit %s of %s\n", b.commit, b.date)
	return err
}
