// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// runTar implements the part of tar that kubectl cp uses: "cf - PATH" and "-xmf - [-C DIR]".
func runTar(args []string) error {
	if len(args) < 2 || args[1] != "-" {
		return errors.New("want cf - PATH, or xf - [-C DIR]")
	}
	options, rest := args[0], args[2:]
	var in io.Reader = os.Stdin
	if strings.Contains(options, "z") && strings.Contains(options, "x") {
		unzipped, err := gzip.NewReader(in)
		if err != nil {
			return err
		}
		in = unzipped
	}
	switch {
	case strings.Contains(options, "c") && len(rest) == 1:
		return packFiles(os.Stdout, rest[0])
	case strings.Contains(options, "x") && len(rest) == 2 && rest[0] == "-C":
		return unpackFiles(in, rest[1])
	case strings.Contains(options, "x") && len(rest) == 0:
		return unpackFiles(in, ".")
	}
	return fmt.Errorf("want cf - PATH, or xf - [-C DIR], got %q", args)
}

// packFiles writes the files at path to a tar archive.
func packFiles(out io.Writer, path string) error {
	w := tar.NewWriter(out)
	err := filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() && !info.IsDir() {
			return err
		}
		header, err := tar.FileInfoHeader(info, "")
		if err != nil {
			return err
		}
		if header.Name = strings.TrimPrefix(path, "/"); info.IsDir() {
			header.Name += "/"
			return w.WriteHeader(header)
		}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.CopyN(w, f, header.Size)
		return err
	})
	if err != nil {
		return err
	}
	return w.Close()
}

// unpackFiles extracts the files and directories of a tar archive into dir.
func unpackFiles(in io.Reader, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for r := tar.NewReader(in); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := filepath.Clean(header.Name)
		parent, mode := filepath.Dir(name), header.FileInfo().Mode().Perm()
		switch header.Typeflag {
		case tar.TypeDir:
			err = root.MkdirAll(name, mode|0o700)
		case tar.TypeReg:
			if err = root.MkdirAll(parent, 0o755); err == nil {
				err = writeFile(root, name, mode, r)
			}
		}
		if err != nil {
			return err
		}
	}
}

func writeFile(root *os.Root, name string, mode fs.FileMode, content io.Reader) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(f, content)
	return err
}

// decodeBase64 implements "base64 -d", which copying files into a container needs.
func decodeBase64(args []string) error {
	if len(args) != 1 || args[0] != "-d" {
		return errors.New("want -d")
	}
	_, err := io.Copy(os.Stdout, base64.NewDecoder(base64.StdEncoding, os.Stdin))
	return err
}
