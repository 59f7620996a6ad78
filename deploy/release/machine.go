// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // the format deb
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // the format rpm
)

// The folders of a package for machines. Programs find each other in the folder of the program.
const (
	programFolder  = "/usr/lib/" + program
	documentFolder = "/usr/share/doc/" + program
	manualFolder   = "/usr/share/man/man1"
	configFile     = "/etc/" + program + "/config.yaml"
	unitFile       = "/usr/lib/systemd/system/" + program + ".service"
)

// The scripts of a package. dpkg calls them with words, rpm with the number of versions that are installed then. An upgrade restarts a running
// daemon, which ends no pod unless it drains its node on exit. A unit that cannot be started or stopped does not fail the package. Without systemd, as
// in an image, the scripts leave it alone. A purge removes the certificates that the node requested, but no
// other data: pods may still run there, with volumes.
const (
	afterInstall = `[ ! -d /run/systemd/system ] || { systemctl daemon-reload && systemctl try-restart ` + program + `.service || true; }
`
	beforeRemove = `case $1 in remove | 0) [ ! -d /run/systemd/system ] || systemctl disable --now ` + program + `.service || true ;; esac
`
	afterRemove = `[ ! -d /run/systemd/system ] || systemctl daemon-reload || true
[ "$1" != purge ] || { rm -rf /var/lib/` + program + `/certificates; rmdir --ignore-fail-on-non-empty /var/lib/` + program + ` 2>/dev/null || true; }
`
)

// writeManual writes the man pages of the program into a folder.
func (r *release) writeManual(ctx context.Context, into string) error {
	into, err := filepath.Abs(into)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-trimpath", "-vet=off", "-run=^TestManualHasEveryCommand$", ".", "-manual="+into)
	cmd.Dir = filepath.Join(r.root, "cmd", program)
	cmd.Env = append(environment(os.Environ()), "CGO_ENABLED=0", "GOWORK=off")
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("write the manual: %w: %s", err, bytes.TrimSpace(said))
	}
	return nil
}

// writePackages writes the packages for Debian and for Fedora of the programs of a platform: with the unit of systemd, a sample
// configuration, the licences and the manual, which is in the folder manual.
func (r *release) writePackages(p platform, programs []built, manual string) error {
	temporary, err := os.MkdirTemp("", program)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temporary) }() // an error leaves files in a folder for temporary files
	scripts := map[string]string{"install": afterInstall, "remove": beforeRemove, "removed": afterRemove}
	for name, text := range scripts {
		scripts[name] = filepath.Join(temporary, name)
		if err := os.WriteFile(scripts[name], []byte("#!/bin/sh\nset -e\n"+text), 0o600); err != nil {
			return err
		}
	}
	for _, format := range []string{"deb", "rpm"} {
		contents, err := r.machineContents(programs, manual, temporary)
		if err != nil {
			return err
		}
		info := nfpm.WithDefaults(&nfpm.Info{
			Name: program, Arch: p.arch, Platform: p.os, Version: r.chartVersion(), Release: "1", Section: "admin", Priority: "optional",
			Maintainer: "The contributors of Virtual Kubelet", Homepage: homepage, License: licence, MTime: r.created, DisableGlobbing: true,
			Description: "Run a virtual node of Kubernetes\nA virtual node has the API of Kubernetes on top and any backend below: this machine, a cloud,\na batch scheduler or another cluster.",
			Overridables: nfpm.Overridables{
				Contents: contents,
				Scripts:  nfpm.Scripts{PostInstall: scripts["install"], PreRemove: scripts["remove"], PostRemove: scripts["removed"]},
				Deb:      nfpm.Deb{Compression: "zstd"},
				RPM:      nfpm.RPM{Compression: "zstd", BuildHost: "localhost", Group: "System Environment/Daemons", Summary: "Run a virtual node of Kubernetes"},
			},
		})
		packager, err := nfpm.Get(format)
		if err != nil {
			return err
		}
		var packed bytes.Buffer
		if err := packager.Package(info, &packed); err != nil {
			return fmt.Errorf("write the package %s: %w", format, err)
		}
		if err := os.WriteFile(filepath.Join(r.out, packager.ConventionalFileName(info)), packed.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// machineContents returns the files of a package, some of which it makes in the folder temporary.
func (r *release) machineContents(programs []built, manual, temporary string) (files.Contents, error) {
	var list files.Contents
	add := func(kind, from, to string, mode fs.FileMode) {
		list = append(list, &files.Content{Source: from, Destination: to, Type: kind, FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: r.created}})
	}
	for _, b := range programs {
		if !b.node() {
			continue
		}
		add(files.TypeFile, b.path, path.Join(programFolder, b.name), 0o755)
	}
	add(files.TypeSymlink, "../lib/"+program+"/"+program, "/usr/bin/"+program, 0)
	add(files.TypeDir, "", path.Dir(configFile), 0o755)
	add(files.TypeConfigNoReplace, filepath.Join(r.root, "deploy", "systemd", "config.yaml"), configFile, 0o600)
	add(files.TypeFile, filepath.Join(r.root, "LICENSE"), path.Join(documentFolder, "copyright"), 0o644)
	add(files.TypeFile, r.file("NOTICE", ".txt"), path.Join(documentFolder, "NOTICE"), 0o644)

	unit, err := os.ReadFile(filepath.Join(r.root, "deploy", "systemd", program+".service"))
	if err != nil {
		return nil, err
	}
	made := filepath.Join(temporary, "unit")
	if err := os.WriteFile(made, bytes.ReplaceAll(unit, []byte("/usr/local/bin/"), []byte("/usr/bin/")), 0o600); err != nil {
		return nil, err
	}
	add(files.TypeFile, made, unitFile, 0o644)

	pages, err := filepath.Glob(filepath.Join(manual, "*.1"))
	if err != nil {
		return nil, err
	}
	if len(pages) == 0 {
		return nil, fmt.Errorf("the folder %s has no man pages", manual)
	}
	for _, page := range pages {
		packed, err := packPage(page)
		if err != nil {
			return nil, err
		}
		made := filepath.Join(temporary, filepath.Base(page)+".gz")
		if err := os.WriteFile(made, packed, 0o600); err != nil {
			return nil, err
		}
		add(files.TypeFile, made, path.Join(manualFolder, filepath.Base(made)), 0o644)
	}
	return list, nil
}

// packPage packs a man page as packages have them.
func packPage(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(text); err != nil {
		return nil, err
	}
	err = z.Close()
	return packed.Bytes(), err
}
