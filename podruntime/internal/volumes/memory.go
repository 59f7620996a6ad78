// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// memoryDir finds or makes the directory for content in memory if this process cannot mount, or returns "". The name depends on root, so each process
// on a machine has its own directory.
func memoryDir(configured, root string) (string, error) {
	candidates := []string{os.Getenv("XDG_RUNTIME_DIR"), "/dev/shm"}
	if configured != "" {
		if !inMemory(configured) {
			return "", fmt.Errorf("%s is not on a file system in memory: name another directory", configured)
		}
		candidates = []string{configured}
	}
	sum := sha256.Sum256([]byte(root))
	for _, c := range candidates {
		if c == "" || !inMemory(c) {
			continue
		}
		dir := filepath.Join(c, "virtual-kubelet-"+hex.EncodeToString(sum[:8]))
		err := ownDirectory(dir)
		if err == nil || configured != "" {
			return dir, err
		}
	}
	return "", nil
}

// ownDirectory makes the directory, or checks that it belongs to this user: everybody can write to /dev/shm, and another user's directory or link
// with that name would expose secrets.
func ownDirectory(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir() || info.Mode().Perm()&0o077 != 0 || !isOurs(info):
		return fmt.Errorf("%s is not a directory of this user alone: remove it", dir)
	}
	return nil
}
