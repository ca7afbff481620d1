// Command release makes what is published of a commit: for each platform an archive with a static binary, completions
// for shells, man pages and licences, a wheel of the binary and the Python package, and SHA256SUMS over all of them.
//
//	go run ./internal/release [-out dist] [-platforms linux/amd64,windows/arm64]
//
// The tag of the commit is the version, and so is the first heading of CHANGELOG.md; without a tag nothing is made. The
// same commit and the same Go give the same bytes, wherever and whenever they are used: nothing of the machine gets in,
// and every time is that of the commit. It needs Go and git, nothing else.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// platform is what a binary runs on, in Go's names.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// published are the platforms of a release.
var published = []platform{
	{"linux", "amd64"}, {"linux", "arm64"},
	{"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"},
}

// release is one release in the making.
type release struct {
	root      string     // of the repository
	out       string     // folder of the archives, made by this
	version   string     // that of the tag
	platforms []platform // to build for
	talk      io.Writer  // for progress
	stamp     stamp
}

// versionForm is what a tag has behind its v; it may stand in file names and in flags of the linker.
var versionForm = regexp.MustCompile(`^([0-9]+\.[0-9]+\.[0-9]+)(-[0-9A-Za-z.-]{1,40})?$`)

func run(ctx context.Context, args []string, talk io.Writer) error {
	r := release{talk: talk}
	f := flag.NewFlagSet("release", flag.ContinueOnError)
	f.SetOutput(talk)
	f.StringVar(&r.root, "root", ".", "`folder` of the repository")
	out := f.String("out", "dist", "new `folder` for the archives")
	list := f.String("platforms", join(published), "`list` of platforms, by commas")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("read arguments: %q is no flag", f.Arg(0))
	}
	names := strings.Split(*list, ",")
	for _, p := range published { // in this order, whatever order was asked for
		if slices.Contains(names, p.String()) {
			r.platforms = append(r.platforms, p)
		}
	}
	if len(r.platforms) != len(names) {
		return fmt.Errorf("read -platforms %q: one stands there twice, or is none of %s", *list, join(published))
	}
	var err error
	if r.out, err = filepath.Abs(*out); err != nil { // programs are run in the root
		return fmt.Errorf("read -out: %w", err)
	}
	return r.make(ctx)
}

func join(list []platform) string {
	var names []string
	for _, p := range list {
		names = append(names, p.String())
	}
	return strings.Join(names, ",")
}
