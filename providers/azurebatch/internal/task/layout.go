// SPDX-License-Identifier: Apache-2.0

package task

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/enter"
)

const (
	// Host is the name by which tasks start this program: see podjob.Main.
	Host = "azurebatch"
	// CommandLine is that of every task. It is executed without a shell.
	CommandLine = "./" + ProgramFile + " " + enter.Marker + " " + enter.ModeRun + " " + Host
	// ProgramFile is the program of a task, in its working directory.
	ProgramFile = "virtual-kubelet"
	// PackageFile is the Package of a pod, there and as a blob.
	PackageFile = "pod.json"
	// ExitClaimed is the exit code of a task that did nothing, because an earlier run of it took the pod.
	ExitClaimed = 75
)

// Package is the contents of PackageFile: a pod, and how to talk with its node.
type Package struct {
	ContainerURL, Prefix string
	UID                  types.UID
	Identity             string        // the resource ID of the pool's identity
	Every                time.Duration // between two looks at the bundle, and at the logs
	Bundle               podjob.Bundle
}

// PodPrefix begins the names of the blobs of a pod, but for its status. Prefix is that of the node.
func PodPrefix(prefix string, uid types.UID) string { return PodsPrefix(prefix) + string(uid) + "/" }

// PodsPrefix begins those of all pods.
func PodsPrefix(prefix string) string { return prefix + "/pods/" }

// BundleName is the blob with the Package of a pod. Its metadata have the order to stop.
func BundleName(prefix string, uid types.UID) string { return PodPrefix(prefix, uid) + PackageFile }

// ClaimName is the blob with the Claim of the run of the task that has the pod.
func ClaimName(prefix string, uid types.UID) string { return PodPrefix(prefix, uid) + "claim" }

// Claim is how the run of a task that has the pod can be told from others, and how its machine is reached by SSH.
type Claim struct {
	Nonce   string
	Program string // the path of this program
	HostKey string // the public key of the SSH server; "" for a machine without one
}

// StatusPrefix begins the names of the blobs with statuses, which end with UIDs. They are apart, so that one list has all of them.
func StatusPrefix(prefix string) string { return prefix + "/status/" }

// StatusName is the blob with the status of a pod.
func StatusName(prefix string, uid types.UID) string { return StatusPrefix(prefix) + string(uid) }

// LogPrefix begins the names of the blobs with the logs of a container, as RUN/SEGMENT.
func LogPrefix(prefix string, uid types.UID, container string) string {
	return PodPrefix(prefix, uid) + "logs/" + container + "/"
}

func segmentName(logPrefix, run string, segment int) string {
	return fmt.Sprintf("%s%s/%06d", logPrefix, run, segment)
}

// Names of metadata.
const (
	metaStatus = "status"
	metaGrace  = "grace"
	metaUntil  = "until"
	// maxMeta is how much a status may take of the 8 KiB that the metadata of a blob have.
	maxMeta = 7 << 10
)

// packed is a status as metadata, so that a list has it; none if it is too long.
func packed(status []byte) map[string]string {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(status) // a buffer takes all
	_ = z.Close()
	text := base64.StdEncoding.EncodeToString(out.Bytes())
	if len(text) > maxMeta {
		return nil
	}
	return map[string]string{metaStatus: text}
}

// StatusOf returns the status that the metadata of a blob have. False: they have none, and the blob itself is the status in JSON.
func StatusOf(meta map[string]string) (s podjob.Status, ok bool) {
	data, err := base64.StdEncoding.DecodeString(meta[metaStatus])
	if err != nil || len(data) == 0 {
		return s, false
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return s, false
	}
	text, err := io.ReadAll(z)
	return s, err == nil && json.Unmarshal(text, &s) == nil
}

// StopMeta is an order to stop as metadata of the bundle.
func StopMeta(s podjob.Stop) map[string]string {
	return map[string]string{metaGrace: strconv.FormatInt(s.GraceSeconds, 10), metaUntil: s.Until.UTC().Format(time.RFC3339)}
}

// stopOf is the reverse of StopMeta; nil for none.
func stopOf(meta map[string]string) *podjob.Stop {
	grace, err := strconv.ParseInt(meta[metaGrace], 10, 64)
	if err != nil {
		return nil
	}
	until, _ := time.Parse(time.RFC3339, meta[metaUntil]) // it says nothing that the grace does not
	return &podjob.Stop{GraceSeconds: grace, Until: until}
}
