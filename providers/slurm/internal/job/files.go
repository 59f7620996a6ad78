// SPDX-License-Identifier: Apache-2.0

package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// The files of a pod, in its directory on the shared file system.
const (
	BundleFile = "bundle.json" // the job's input, with secrets: for the user of the job alone
	StatusFile = "status.json" // how the pod is, by the job
	StopFile   = "stop.json"   // the order to stop
	ClaimFile  = "claim"       // the number of the job that runs the pod
	// LogDir has the logs of containers, as NAMESPACE_NAME_UID/CONTAINER/RUN.log in the format of the CRI.
	LogDir = "logs"
	// OutputFile has the output of the job itself.
	OutputFile = "job.log"
)

// ErrDamaged means that a file is readable but has the wrong content.
var ErrDamaged = errors.New("the file is damaged")

// ReadJSON reads a file.
func ReadJSON(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("read %s: %w: %w", filepath.Base(path), ErrDamaged, err)
	}
	return nil
}

// WriteJSON writes a file for its user alone. The file is complete or unchanged, even after a crash of the file
// server.
func WriteJSON(path string, v any) error {
	return writeJSON(path, v, func(f *os.File) error {
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
		return os.Rename(f.Name(), path)
	})
}

// ShowJSON is WriteJSON for waiting readers: they see the file before it is sure to survive a crash. It is when
// ShowJSON returns.
func ShowJSON(path string, v any) error {
	return writeJSON(path, v, func(f *os.File) error {
		if err := os.Rename(f.Name(), path); err != nil {
			return errors.Join(err, f.Close())
		}
		return errors.Join(f.Sync(), f.Close())
	})
}

func writeJSON(path string, v any, finish func(*os.File) error) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	// Processes on several machines may have the same number.
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil {
		err = finish(f)
	} else {
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		_ = os.Remove(f.Name()) // fails if the file has its final name already
	}
	return err
}
