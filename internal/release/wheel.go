package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash/crc32"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// wheelTags are the platforms of Python that a binary runs on. Those for Linux are static, Go 1.26 wants macOS 12.
var wheelTags = map[platform]string{
	{"linux", "amd64"}:   "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
	{"linux", "arm64"}:   "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
	{"darwin", "amd64"}:  "macosx_12_0_x86_64",
	{"darwin", "arm64"}:  "macosx_12_0_arm64",
	{"windows", "amd64"}: "win_amd64",
	{"windows", "arm64"}: "win_arm64",
}

// wheelExtras are the optional parts of the package, with what each needs.
const wheelExtras = `Provides-Extra: pandas
Requires-Dist: pandas>=2.0; extra == "pandas"
Requires-Dist: pyarrow>=15; extra == "pandas"
Provides-Extra: polars
Requires-Dist: polars>=1.0; extra == "polars"
Provides-Extra: arrow
Requires-Dist: pyarrow>=15; extra == "arrow"
Provides-Extra: mlflow
Requires-Dist: mlflow-skinny>=3.17; extra == "mlflow"
Provides-Extra: wandb
Requires-Dist: wandb>=0.31; extra == "wandb"
`

// wheel returns the name and the bytes of the wheel for p: the package of python/ and the program as one of its
// scripts, so that a call of it starts no interpreter.
func (r *release) wheel(p platform, program, licences []byte) (name string, data []byte, err error) {
	version, err := pep440(r.version)
	if err != nil {
		return "", nil, err
	}
	tag := wheelTags[p]
	command := "scrapestat"
	if p.os == "windows" {
		command += ".exe"
	}
	folder := "scrapestat-" + version
	files, err := r.modules(version)
	if err != nil {
		return "", nil, err
	}
	add := func(name string, text []byte) { files = append(files, file{name, 0o644, text}) }
	var tags strings.Builder
	for t := range strings.SplitSeq(tag, ".") {
		fmt.Fprintf(&tags, "Tag: py3-none-%s\n", t)
	}
	info := folder + ".dist-info/"
	for _, source := range [][2]string{{"LICENSE", info + "licenses/LICENSE"}, {"README.md", info + "METADATA"}} {
		text, err := os.ReadFile(filepath.Join(r.root, source[0]))
		if err != nil {
			return "", nil, err
		}
		if source[0] == "README.md" {
			text = append([]byte(metadata(version)), text...)
		}
		add(source[1], text)
	}
	add(info+"licenses/THIRD_PARTY_LICENSES", licences)
	add(info+"WHEEL", []byte("Wheel-Version: 1.0\nGenerator: scrapestat-release\nRoot-Is-Purelib: false\n"+tags.String()))
	files = append(files, file{folder + ".data/scripts/" + command, 0o755, program})
	data, err = wheelZip(files, info+"RECORD")
	return fmt.Sprintf("%s-py3-none-%s.whl", folder, tag), data, err
}

// metadata describes the package; the README follows.
func metadata(version string) string {
	return "Metadata-Version: 2.4\nName: scrapestat\nVersion: " + version + "\n" +
		"Summary: Measure the server side of an LLM-inference benchmark\nRequires-Python: >=3.10\n" +
		"License-Expression: Apache-2.0\nLicense-File: LICENSE\nLicense-File: THIRD_PARTY_LICENSES\n" + wheelExtras +
		"Description-Content-Type: text/markdown\n\n"
}

// modules are the files of the package, which gets the version.
func (r *release) modules(version string) (files []file, err error) {
	dir := filepath.Join(r.root, "python", "scrapestat")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read the Python package: %w", err)
	}
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); ext != ".py" && ext != ".typed" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		if e.Name() == "_version.py" {
			text = fmt.Appendf(nil, "__version__ = %q\n", version)
		}
		files = append(files, file{path.Join("scrapestat", e.Name()), 0o644, text})
	}
	return files, nil
}

// wheelZip packs files in the order of their names, with the record of their hashes last: the same bytes whenever and
// wherever they are made, and none with a descriptor behind its data, which not all installers read.
func wheelZip(files []file, record string) ([]byte, error) {
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	var hashes strings.Builder
	for _, f := range files {
		sum := sha256.Sum256(f.data)
		fmt.Fprintf(&hashes, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.data))
	}
	hashes.WriteString(record + ",,\n")
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range append(files, file{record, 0o644, []byte(hashes.String())}) {
		var packed bytes.Buffer
		z, err := flate.NewWriter(&packed, flate.BestCompression)
		if err == nil {
			_, err = z.Write(f.data)
		}
		if err == nil {
			err = z.Close()
		}
		if err != nil {
			return nil, fmt.Errorf("pack %s: %w", f.name, err)
		}
		const regular, january1980, unix = 0o100000, 1<<5 | 1, 3 << 8
		//lint:ignore SA1019 CreateRaw writes this field, and Modified not at all
		out, err := w.CreateRaw(&zip.FileHeader{Name: f.name, Method: zip.Deflate, ModifiedDate: january1980,
			CreatorVersion: unix | 20, ReaderVersion: 20, ExternalAttrs: (regular | uint32(f.mode)) << 16,
			CRC32: crc32.ChecksumIEEE(f.data), CompressedSize64: uint64(packed.Len()), UncompressedSize64: uint64(len(f.data))})
		if err == nil {
			_, err = out.Write(packed.Bytes())
		}
		if err != nil {
			return nil, fmt.Errorf("add %s: %w", f.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
