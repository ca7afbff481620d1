package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// make builds everything in a folder of its own beside the output, which then appears whole or not at all.
func (r *release) make(ctx context.Context) (err error) {
	if _, err := os.Lstat(r.out); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("make %s: it exists (%v); remove it, or choose another with -out", r.out, err)
	}
	if r.stamp, err = readStamp(ctx, r.root); err != nil {
		return err
	}
	if r.version, err = r.named(); err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(r.out), ".release-*")
	if err != nil {
		return fmt.Errorf("make a folder to work in: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	host := filepath.Join(work, "host.exe") // a name that can be run everywhere
	if err := r.build(ctx, platform{runtime.GOOS, runtime.GOARCH}, host, "man"); err != nil {
		return err
	}
	if err := r.name(ctx, host); err != nil {
		return err
	}
	papers, err := r.papers(ctx, host, filepath.Join(work, "man"))
	if err != nil {
		return err
	}
	dist := filepath.Join(work, "dist")
	if err := os.Mkdir(dist, 0o755); err != nil {
		return fmt.Errorf("make a folder for the archives: %w", err)
	}
	var sums strings.Builder
	for _, p := range r.platforms {
		made, err := r.pack(ctx, p, filepath.Join(work, "binary"), papers)
		for _, f := range made {
			err = errors.Join(err, os.WriteFile(filepath.Join(dist, f.name), f.data, 0o644))
			fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(f.data), f.name)
			fmt.Fprintf(r.talk, "%s: %.1f MB\n", f.name, float64(len(f.data))/1e6)
		}
		if err != nil {
			return fmt.Errorf("make archive for %s: %w", p, err)
		}
	}
	err = os.WriteFile(filepath.Join(dist, "SHA256SUMS"), []byte(sums.String()), 0o644)
	if err == nil {
		err = os.Rename(dist, r.out)
	}
	if err != nil {
		return fmt.Errorf("put the archives in place: %w", err)
	}
	return nil
}

// pack builds for a platform and returns its archive and its wheel.
func (r *release) pack(ctx context.Context, p platform, binary string, papers []file) ([]file, error) {
	if err := r.build(ctx, p, binary, ""); err != nil {
		return nil, err
	}
	program, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	licences, err := r.licences(ctx, p)
	if err != nil {
		return nil, err
	}
	folder := fmt.Sprintf("scrapestat_%s_%s_%s", r.version, p.os, p.arch)
	write, ending, command := tarGz, ".tar.gz", "scrapestat"
	if p.os == "windows" {
		write, ending, command = zipped, ".zip", "scrapestat.exe"
	}
	files := append(slices.Clone(papers), file{command, 0o755, program}, file{"THIRD_PARTY_LICENSES", 0o644, licences})
	archive, err := write(folder, files, r.stamp.at)
	if err != nil {
		return nil, err
	}
	name, wheel, err := r.wheel(p, program, licences)
	if err != nil {
		return nil, fmt.Errorf("make wheel: %w", err)
	}
	return []file{{folder + ending, 0o644, archive}, {name, 0o644, wheel}}, nil
}

// papers are the files that are the same for all platforms: what stands in the
// repository, and completions and man pages, which the program itself makes.
func (r *release) papers(ctx context.Context, program, work string) (out []file, err error) {
	add := func(name string, data []byte, failed error) {
		out, err = append(out, file{name, 0o644, data}), errors.Join(err, failed)
	}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		data, err := os.ReadFile(filepath.Join(r.root, name))
		add(name, data, err)
	}
	// The names are those that the folders of each shell want.
	for shell, name := range map[string]string{
		"bash": "scrapestat.bash", "zsh": "_scrapestat", "fish": "scrapestat.fish", "powershell": "scrapestat.ps1"} {
		text, err := output(ctx, r.root, nil, program, "completion", shell)
		add("completions/"+name, text, err)
	}
	if _, err := output(ctx, r.root, nil, program, "man", work); err != nil {
		return nil, err
	}
	pages, failed := filepath.Glob(filepath.Join(work, "*.1"))
	if failed != nil || len(pages) == 0 {
		return nil, fmt.Errorf("make man pages: there are none in %s (%v)", work, failed)
	}
	for _, page := range pages {
		data, err := os.ReadFile(page)
		add("man/man1/"+filepath.Base(page), data, err)
	}
	return out, err
}
