//go:build unix

package main

import (
	"context"
	"crypto/sha256"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// files has a folder for each server: requirements.txt, which pins what pip installs by version and hash, and the
// programs that the server runs.
//
//go:embed llamacpp dynamo triton torchserve vllm classes
var files embed.FS

// home is the folder of the cache that the server is installed in. Another lock file is another folder.
func (l *lab) home() string {
	lock, err := files.ReadFile(l.recipe.name + "/requirements.txt")
	if err != nil {
		panic(err) // it is embedded
	}
	return filepath.Join(l.cache, fmt.Sprintf("%s-%x", l.recipe.name, sha256.Sum256(lock))[:len(l.recipe.name)+17])
}

// python is the interpreter with the packages of the recipe, or a program beside it.
func (l *lab) python(program string) string { return filepath.Join(l.home(), "venv", "bin", program) }

// file is a file of the recipe in the cache.
func (l *lab) file(name string) string { return filepath.Join(l.home(), name) }

// install puts the server into the cache unless it is there. The files of the recipe are written each time.
func (l *lab) install(ctx context.Context) error {
	home := l.home()
	if err := os.MkdirAll(home, 0o755); err != nil {
		return err
	}
	folder, err := fs.Sub(files, l.recipe.name)
	if err != nil {
		return err
	}
	err = fs.WalkDir(folder, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(folder, path)
		if err != nil {
			return err
		}
		to := filepath.Join(home, path)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		return os.WriteFile(to, text, 0o644)
	})
	if err != nil {
		return err
	}
	ready := l.file("ready")
	if _, err := os.Stat(ready); err == nil {
		return nil
	}
	if err := os.RemoveAll(filepath.Join(home, "venv")); err != nil {
		return err
	}
	if err := l.do(ctx, "venv.log", "python3", "-m", "venv", filepath.Join(home, "venv")); err != nil {
		return err
	}
	// What is pinned is complete: nothing is resolved, so nothing is drawn in that has no hash.
	err = l.do(ctx, "pip.log", l.python("python"), "-m", "pip", "install", "--quiet", "--no-input", "--no-deps",
		"--no-compile", "--only-binary", ":all:", "--require-hashes", "--disable-pip-version-check", "--retries", "10",
		"--timeout", "60", "-r", l.file("requirements.txt"))
	if err != nil {
		return err
	}
	if l.recipe.setup != nil {
		if err := l.recipe.setup(ctx, l); err != nil {
			return fmt.Errorf("set up: %w", err)
		}
	}
	return os.WriteFile(ready, nil, 0o644)
}
