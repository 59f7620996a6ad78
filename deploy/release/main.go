// SPDX-License-Identifier: Apache-2.0

// Command release makes the files of a release:
//
//   - an archive for each platform with the binary, and for Linux with the programs of provider process and of the demo;
//   - packages for Debian and Fedora, and an image for Linux;
//   - the chart, as a file and as an OCI layout, and the manifest for krew;
//   - the modules of each binary with their licences: SPDX, CycloneDX and a notice;
//   - the checksums of all files, and with a key their signature.
//
// The guarantee: the same sources, version and toolchain make the same bytes, on every machine and at any time.
//
// Note: the image is written without a container engine, as an OCI layout in a tar file, which skopeo,
// crane, podman and `docker load` read. The authorities in it are Mozilla's, as the Go project publishes them.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

// platforms are the platforms of a release.
const platforms = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

const program = "virtual-kubelet"

// release is one version.
type release struct {
	version string
	// commit is the commit of the sources.
	commit string
	// created is the time of all files: the time of the sources.
	created time.Time
	// root is the folder of the sources, out the folder of the release.
	root, out string
	platforms []platform
	licences  *licences
	// key is the file of the private key to sign with, "" for none.
	key string
}

// platform is the target platform of a binary.
type platform struct{ os, arch string }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("release", flag.ContinueOnError)
	version := fs.String("version", "", "the `version`, such as v1.2.3")
	commit := fs.String("commit", "", "the `commit` of the sources, or unknown")
	created := fs.String("date", "", "the `time` of the sources, as RFC 3339")
	root := fs.String("root", "..", "the `folder` of the sources")
	out := fs.String("o", "dist", "the `folder` to write to")
	wanted := fs.String("platforms", platforms, "the platforms, as `OS/ARCH,...`")
	key := fs.String("key", "", "a `file` with a private key of Ed25519 as PEM, to sign SHA256SUMS with")
	if err := fs.Parse(args); err != nil {
		return err
	}
	when, err := time.Parse(time.RFC3339, *created)
	if err != nil {
		return fmt.Errorf("-date %q: %w", *created, err)
	}
	if *version == "" || strings.ContainsAny(*version, "/\\ ") {
		return fmt.Errorf("-version %q: want a version such as v1.2.3", *version)
	}
	if *commit == "" || strings.ContainsAny(*commit, " '\"") {
		return fmt.Errorf("-commit %q: want the commit of the sources, or unknown", *commit)
	}
	r := &release{version: *version, commit: *commit, created: when.UTC(), root: *root, out: *out, key: *key}
	for _, text := range strings.Split(*wanted, ",") {
		system, arch, ok := strings.Cut(text, "/")
		if !ok {
			return fmt.Errorf("-platforms: %q: want OS/ARCH", text)
		}
		r.platforms = append(r.platforms, platform{system, arch})
	}
	return r.make(ctx)
}

// make writes the whole release into an empty folder.
func (r *release) make(ctx context.Context) error {
	if left, _ := filepath.Glob(filepath.Join(r.out, "*")); len(left) > 0 {
		return fmt.Errorf("the folder %s is not empty: remove its content", r.out)
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	var err error
	if r.licences, err = newLicences(ctx, r.root); err != nil {
		return err
	}
	var linux []built
	programs := map[platform][]built{}
	for _, p := range r.platforms {
		sources, err := r.sources(ctx, p)
		if err != nil {
			return err
		}
		for _, s := range sources {
			fmt.Fprintf(os.Stderr, "release: building %s for %s/%s\n", s.name, p.os, p.arch)
			b, err := r.build(ctx, s, p)
			if err != nil {
				return err
			}
			if err := r.describe(b); err != nil {
				return fmt.Errorf("say what is in %s: %w", b.path, err)
			}
			programs[p] = append(programs[p], b)
			if p.os == "linux" && s.name == program {
				linux = append(linux, b)
			}
		}
	}
	if len(linux) > 0 {
		if err := r.writeImage(linux); err != nil {
			return fmt.Errorf("write the image: %w", err)
		}
	}
	if err := os.WriteFile(r.file("NOTICE", ".txt"), []byte(r.licences.notice()), 0o644); err != nil {
		return err
	}
	manual, err := os.MkdirTemp("", program)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(manual) }() // an error leaves files in a folder for temporary files
	if len(linux) > 0 {
		if err := r.writeManual(ctx, manual); err != nil {
			return err
		}
	}
	archives := map[platform]string{}
	for _, p := range r.platforms {
		if p.os == "linux" {
			if err := r.writePackages(p, programs[p], manual); err != nil {
				return fmt.Errorf("write the packages for %s: %w", p.arch, err)
			}
			image, err := r.packDemoImage(ctx, p, programs[p])
			if err != nil {
				return err
			}
			programs[p] = append(programs[p], image)
		}
		if archives[p], err = r.archive(p, programs[p]); err != nil {
			return fmt.Errorf("write the archive of %s/%s: %w", p.os, p.arch, err)
		}
	}
	if err := r.writeKrew(archives); err != nil {
		return fmt.Errorf("write the manifest for krew: %w", err)
	}
	if err := r.writeChart(); err != nil {
		return fmt.Errorf("write the chart: %w", err)
	}
	if err := r.writeSums(); err != nil || r.key == "" {
		return err
	}
	return r.sign(r.key)
}

// file returns the path of a file of the release.
func (r *release) file(name, suffix string) string {
	return filepath.Join(r.out, name+"_"+r.version+suffix)
}
