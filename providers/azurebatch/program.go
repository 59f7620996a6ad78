// SPDX-License-Identifier: Apache-2.0

package azurebatch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// upload puts the program of tasks into the storage, unless it is there, and returns the name of its blob, which has its hash.
func (d *driver) upload(ctx context.Context) (string, error) {
	d.uploading.Lock()
	defer d.uploading.Unlock()
	d.mu.Lock()
	name := d.program
	d.mu.Unlock()
	if name != "" {
		return name, nil
	}
	f, err := os.Open(cmp.Or(d.config.Program, "/proc/self/exe"))
	if err != nil {
		return "", fmt.Errorf("the program of tasks: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, f)
	if err != nil {
		return "", fmt.Errorf("the program of tasks: %w", err)
	}
	name = "bin/virtual-kubelet-" + hex.EncodeToString(sum.Sum(nil)[:16])
	has, err := d.blobs.Head(ctx, name)
	if err != nil && !errdefs.IsNotFound(err) {
		return "", err
	}
	if err != nil || has.Size != size {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return "", err
		}
		if err := d.blobs.Upload(ctx, name, f, size); err != nil {
			return "", err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.program = name
	return name, nil
}
