// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Remove removes everything of the pod from the machine. No container of the pod may be running. Remove may be called again after an error, and for
// an unknown pod.
//
// The content in memory goes first, because it may be secret. The directory of the pod goes last, so that Pods lists the pod until everything is
// gone.
func (v *Volumes) Remove(uid types.UID) error {
	if !isPlainName(string(uid)) {
		return fmt.Errorf("remove volumes: %q cannot be a UID", uid)
	}
	defer v.locks.lock(uid)()
	parents := []string{v.pods}
	if v.memory != "" {
		parents = []string{v.memory, v.pods}
	}
	for _, parent := range parents {
		if err := v.removeBelow(parent, string(uid)); err != nil {
			return fmt.Errorf("remove volumes of pod %s: %w", uid, err)
		}
	}
	return nil
}

func (v *Volumes) removeBelow(parent, name string) error {
	info, err := os.Lstat(filepath.Join(parent, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.IsDir() { // this process makes no links here; RemoveAll removes a link itself, not its target
		if err := detachBelow(filepath.Join(parent, name)); err != nil {
			return err
		}
	}
	return removeTree(parent, name)
}

// Pods returns the UIDs of pods with files on the machine, including pods of an earlier process.
func (v *Volumes) Pods() ([]types.UID, error) {
	var uids []types.UID
	for _, dir := range []string{v.pods, v.memory} {
		if dir == "" {
			continue
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, fmt.Errorf("pods on disk: %w", err)
		}
		for _, e := range entries {
			uids = append(uids, types.UID(e.Name()))
		}
	}
	slices.Sort(uids)
	return slices.Compact(uids), nil
}
