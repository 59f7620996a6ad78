// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Directories of a pod.
const (
	volumesDir  = "volumes"         // one for each volume, by name
	readyDir    = "ready"           // a file for each complete emptyDir
	claimsDir   = "claims"          // a file for each volume from a PersistentVolume, with its description
	subPathsDir = "volume-subpaths" // <volume>/<container>/<index>: the mounted parts with subPath
)

// Volumes are the volumes of all pods of a node. It is safe for concurrent use; calls about the same pod are serialized.
type Volumes struct {
	cfg     Config
	objects Objects
	tokens  Tokens
	bundles Bundles
	certs   Certificates
	claims  Claims

	pods   string // Root/pods, without links
	memory string // directory of volumes in memory; "" if each is mounted, or if there is no such directory
	mounts bool   // this process can mount file systems
	locks  locks
}

// New checks the abilities of the machine, and prepares the directories.
func New(cfg Config) (*Volumes, error) {
	root, err := filepath.Abs(cfg.Root)
	if err != nil || cfg.Root == "" {
		return nil, errors.Join(errors.New("volumes: a root directory is required"), err)
	}
	if err := os.MkdirAll(filepath.Join(root, "pods"), 0o750); err != nil {
		return nil, fmt.Errorf("volumes: %w", err)
	}
	// Mount points are compared with the kernel's table, which has no links.
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return nil, fmt.Errorf("volumes: %w", err)
	}
	if cfg.Provision != "" {
		if err := os.MkdirAll(cfg.Provision, 0o700); err != nil {
			return nil, fmt.Errorf("directory for PersistentVolumes: %w", err)
		}
		cfg.LocalVolumes = append(slices.Clone(cfg.LocalVolumes), cfg.Provision)
	}
	v := &Volumes{cfg: cfg, pods: filepath.Join(root, "pods")}
	v.mounts = !cfg.NoMounts && canMount(root)
	if !v.mounts {
		if v.memory, err = memoryDir(cfg.Memory, root); err != nil {
			return nil, fmt.Errorf("volumes in memory: %w", err)
		}
	}
	return v, nil
}

// UseObjects sets the source of ConfigMaps and Secrets. It is called once, before Setup.
func (v *Volumes) UseObjects(o Objects) { v.objects = o }

// UseTokens sets the source of tokens. It is called once, before Setup.
func (v *Volumes) UseTokens(t Tokens) { v.tokens = t }

// UseBundles sets the source of ClusterTrustBundles. It is called once, before Setup.
func (v *Volumes) UseBundles(b Bundles) { v.bundles = b }

// UseCertificates sets the source of keys with certificates. It is called once, before Setup.
func (v *Volumes) UseCertificates(c Certificates) { v.certs = c }

// UseClaims sets the finder of PersistentVolumes. Call it once, before Setup.
func (v *Volumes) UseClaims(c Claims) { v.claims = c }

// Medium describes the medium of volumes in memory on this machine, for a log.
func (v *Volumes) Medium() string {
	switch {
	case v.mounts:
		return "each volume in memory is a file system of its own, with its size limit"
	case v.memory != "":
		return "nothing can be mounted: volumes in memory, secrets and tokens are in " + v.memory + ", and size limits are only measured"
	default:
		return "nothing can be mounted and this machine has no file system in memory: volumes in memory, secrets and tokens are on its disk"
	}
}

// Dir makes, if necessary, the directory for other files of the pod, and returns its path. Remove removes it
// with its content.
func (v *Volumes) Dir(uid types.UID) (string, error) {
	if !isPlainName(string(uid)) {
		return "", fmt.Errorf("directory of pod: %q cannot be a UID", uid)
	}
	dir := filepath.Join(v.pods, string(uid))
	if err := os.Mkdir(dir, 0o750); err != nil && !errors.Is(err, os.ErrExist) {
		return "", fmt.Errorf("directory of pod: %w", err)
	}
	return dir, nil
}

// volumeDir returns the directory of a volume.
func (v *Volumes) volumeDir(uid types.UID, name string, memory bool) string {
	if memory && v.memory != "" {
		return filepath.Join(v.memory, string(uid), name)
	}
	return filepath.Join(v.pods, string(uid), volumesDir, name)
}

// isPlainName reports whether a name is a single directory entry on every system. The API server allows only such names, but a removal must not
// depend on that.
func isPlainName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\\:\x00") && len(name) <= 253
}
