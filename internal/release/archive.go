package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// file is a file of an archive.
type file struct {
	name string // with slashes, below the folder of the archive
	mode fs.FileMode
	data []byte
}

// sorted returns the files by name, with the folder that they unpack into.
func sorted(folder string, files []file) []file {
	out := slices.Clone(files)
	for i := range out {
		out[i].name = folder + "/" + out[i].name
	}
	slices.SortFunc(out, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return out
}

// tarGz returns a .tar.gz of files that unpack into a folder and are of one time.
func tarGz(folder string, files []file, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression) // its header has no time
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(z)
	err = each(sorted(folder, files), func(f file) (io.Writer, error) {
		return w, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: int64(f.mode),
			Size: int64(len(f.data)), ModTime: at, Format: tar.FormatUSTAR})
	})
	err = errors.Join(err, w.Close(), z.Close())
	return b.Bytes(), err
}

// zipped returns a .zip of files that unpack into a folder and are of one time.
func zipped(folder string, files []file, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	w.RegisterCompressor(zip.Deflate, func(out io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(out, flate.BestCompression)
	})
	err := each(sorted(folder, files), func(f file) (io.Writer, error) {
		h := zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at.UTC()}
		h.SetMode(f.mode)
		return w.CreateHeader(&h)
	})
	err = errors.Join(err, w.Close())
	return b.Bytes(), err
}

// each writes the files, each to what begin returns for it.
func each(files []file, begin func(file) (io.Writer, error)) error {
	for _, f := range files {
		w, err := begin(f)
		if err == nil {
			_, err = w.Write(f.data)
		}
		if err != nil {
			return fmt.Errorf("add %s: %w", f.name, err)
		}
	}
	return nil
}
