// SPDX-License-Identifier: Apache-2.0

// Command pack makes an image archive of one program that needs no other files.
//
// Usage: pack -name demo -o demo.tar PROGRAM TOOL... The program is the entrypoint of the image, and is in /bin
// under the names of the tools, too.
package main

import (
	"archive/tar"
	"bytes"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func main() {
	out := flag.String("o", "", "archive to write")
	tag := flag.String("name", "", "name of the image")
	shell := flag.String("sh", "", "program that is sh in the image; none if empty")
	arch := flag.String("arch", runtime.GOARCH, "architecture of the programs")
	flag.Parse()
	if *out == "" || *tag == "" || flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := writeImage(*out, *tag, *shell, *arch, flag.Arg(0), flag.Args()[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func writeImage(out, tag, shell, arch, program string, tools []string) error {
	parsed, err := name.NewTag(tag)
	if err != nil {
		return err
	}
	layer, err := programLayer(program, shell, tools)
	if err != nil {
		return err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", arch
	config.Config.Entrypoint = []string{"/bin/" + filepath.Base(program)}
	config.Config.Env = []string{"PATH=/bin"}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return err
	}
	// Rename the file at the end, because a daemon may read the directory at any time.
	if err := tarball.WriteToFile(out+".new", parsed, image); err != nil {
		return err
	}
	return os.Rename(out+".new", out)
}

// programLayer returns a layer with the program, its other names, and the usual directories.
func programLayer(program, shell string, tools []string) (v1.Layer, error) {
	programs := map[string]string{"bin/" + filepath.Base(program): program}
	if shell != "" {
		programs["bin/sh"] = shell
	}
	headers := []tar.Header{
		{Name: "bin/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777},
		{Name: "etc/", Typeflag: tar.TypeDir, Mode: 0o755},
	}
	for _, tool := range tools {
		headers = append(headers, tar.Header{Name: "bin/" + tool, Typeflag: tar.TypeSymlink, Linkname: filepath.Base(program)})
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		if err := w.WriteHeader(&h); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		content, err := os.ReadFile(programs[name])
		if err != nil {
			return nil, err
		}
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(content))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil })
}
