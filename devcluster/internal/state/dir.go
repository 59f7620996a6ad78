// SPDX-License-Identifier: Apache-2.0

// Package state holds the files of a development cluster, and lets two processes agree on which of them runs it.
//
// Each cluster has one directory, named after it, below a base directory. A cluster runs exactly while a process
// holds the lock in its directory. The kernel drops the lock when that process ends, however it ends, so no
// leftover file makes a dead cluster look alive. Note: the lock belongs to the process, and closing any
// other descriptor of the same file would drop it, so only this package opens it.
package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/virtual-kubelet/virtual-kubelet/devcluster/internal/pki"
)

// HomeVariable names the environment variable with the base directory.
const HomeVariable = "DEVCLUSTER_HOME"

// namePattern is a DNS label: it is safe as a directory's name and as a kubeconfig context.
var namePattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// Base returns the absolute base directory: flag if it is not empty, else $DEVCLUSTER_HOME, else a directory in
// the user's cache directory.
func Base(flag string) (string, error) {
	dir := flag
	if dir == "" {
		dir = os.Getenv(HomeVariable)
	}
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("find a directory for clusters (set --dir or $%s): %w", HomeVariable, err)
		}
		dir = filepath.Join(cache, "virtual-kubelet", "devcluster")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("make %s absolute: %w", dir, err)
	}
	return abs, nil
}

// Dir is one cluster's directory.
type Dir struct {
	// Name is the cluster's name.
	Name string
	path string
}

// At returns the directory of the named cluster below base. It creates nothing.
func At(base, name string) (Dir, error) {
	if !namePattern.MatchString(name) {
		return Dir{}, fmt.Errorf("cluster name %q: use lower-case letters, digits and dashes, at most 63", name)
	}
	return Dir{Name: name, path: filepath.Join(base, name)}, nil
}

// List returns the directories of all clusters below base, by name.
func List(base string) ([]Dir, error) {
	entries, err := os.ReadDir(base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	var dirs []Dir
	for _, e := range entries {
		d, err := At(base, e.Name())
		if err != nil || !d.Exists() {
			continue // a file of another program
		}
		dirs = append(dirs, d)
	}
	return dirs, nil
}

// Exists reports whether a cluster of this name was ever started and not deleted since.
func (d Dir) Exists() bool {
	_, err := os.Stat(d.lockFile())
	return err == nil
}

// Delete removes everything of the cluster. Only the holder of its lock may call it.
func (d Dir) Delete() error {
	if err := os.RemoveAll(d.path); err != nil {
		return fmt.Errorf("delete cluster %s: %w", d.Name, err)
	}
	return nil
}

// Path returns the directory itself.
func (d Dir) Path() string { return d.path }

// PKI returns the directory of certificates.
func (d Dir) PKI() pki.Dir { return pki.Dir(filepath.Join(d.path, "pki")) }

// Etcd returns etcd's data directory.
func (d Dir) Etcd() string { return filepath.Join(d.path, "etcd") }

// Kubeconfig returns the path of the administrator's kubeconfig.
func (d Dir) Kubeconfig() string { return filepath.Join(d.path, "kubeconfig") }

// ComponentKubeconfig returns the path of a control plane component's kubeconfig.
func (d Dir) ComponentKubeconfig(user string) string {
	return filepath.Join(d.path, user+".kubeconfig")
}

// Nodes returns the directory that holds a directory of credentials for each node.
func (d Dir) Nodes() string { return filepath.Join(d.path, "nodes") }

// Log returns the path of the log that all components write.
func (d Dir) Log() string { return filepath.Join(d.path, "log") }

// SchedulerConfig returns the path of kube-scheduler's configuration file.
func (d Dir) SchedulerConfig() string { return filepath.Join(d.path, "scheduler.yaml") }

func (d Dir) lockFile() string   { return filepath.Join(d.path, "lock") }
func (d Dir) recordFile() string { return filepath.Join(d.path, "cluster.json") }
