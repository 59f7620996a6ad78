// SPDX-License-Identifier: Apache-2.0

package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The files of a pod, in its directory on the shared file system.
const (
	BundleFile = "bundle.json" // what the job needs, with secrets: for the user of the job alone
	StatusFile = "status.json" // how the pod is, by the job
	StopFile   = "stop.json"   // the order to stop
	ClaimFile  = "claim"       // the number of the job that runs the pod
	// LogDir has the logs of containers, as NAMESPACE_NAME_UID/CONTAINER/RUN.log in the format of the CRI.
	LogDir = "logs"
	// OutputFile has what the job itself says.
	OutputFile = "job.log"
)

// Bundle is a pod with all that it needs.
type Bundle struct {
	Pod *corev1.Pod
	// Containers have their environments resolved, but for addresses.
	Containers map[string]*corev1.Container
	ConfigMaps map[string]*corev1.ConfigMap
	Secrets    map[string]*corev1.Secret
	Tokens     map[string]Token
	Node       *corev1.Node
	DNSDomain  string
	// Runtime is RuntimePodman or RuntimeUnpack for containers of images; "": they are programs of the job's node.
	Runtime string
	// Logins are those of the pod at registries.
	Logins []Login
}

// The runtimes whose containers have the files of images.
const (
	RuntimePodman = "podman" // podman of the job's node pulls and keeps the images
	RuntimeUnpack = "unpack" // the job pulls them itself
)

// Login is how to log in at a registry.
type Login struct{ Registry, Username, Password, IdentityToken, RegistryToken string }

// Token is a token of a service account.
type Token struct {
	Token                string
	ExpiresAt, RefreshAt time.Time
}

// TokenKey names the token of a source.
func TokenKey(s *corev1.ServiceAccountTokenProjection) string {
	var seconds int64
	if s.ExpirationSeconds != nil {
		seconds = *s.ExpirationSeconds
	}
	return fmt.Sprintf("%s/%d", s.Audience, seconds)
}

// Status is what a job says of its pod.
type Status struct {
	Pod corev1.PodStatus
	// Job is the number of the job, Host its node.
	Job, Host string
	// Socket is where the job takes streams, on its node.
	Socket string
	// Ended is that nothing of the pod runs any more, and nothing will.
	Ended bool
	// Stopped is that it was told to.
	Stopped bool
	// Cause is the signal that ended the pod before its time.
	Cause string
}

// Stop is the order to stop.
type Stop struct {
	GraceSeconds int64
	// Until is when the job is cancelled, by the clock of the node that says so.
	Until time.Time
}

// ErrDamaged is that a file can be read and has something else in it.
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

// WriteJSON writes a file for its user alone: whole, or as it was, also after a crash of the file server.
func WriteJSON(path string, v any) error {
	return writeJSON(path, v, func(f *os.File) error {
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
		return os.Rename(f.Name(), path)
	})
}

// ShowJSON is WriteJSON for readers that wait: they have the file before it is sure to outlive a crash, which it is when ShowJSON returns.
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
	// Writers on several machines may have the same number of a process.
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
		_ = os.Remove(f.Name()) // it may have its name already
	}
	return err
}
