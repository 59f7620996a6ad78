// SPDX-License-Identifier: Apache-2.0

package podblobs

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
)

const (
	// ProgramFile is the program of a pod, in its working directory.
	ProgramFile = "virtual-kubelet"
	// PackageFile is the name of the Package, both in the working directory and as a blob.
	PackageFile = "pod.json"
)

// Package is the contents of PackageFile: a pod, and the access to its node's blobs.
type Package struct {
	ContainerURL, Prefix string
	UID                  types.UID
	Identity             string        // the resource ID of the identity of the machine
	Every                time.Duration // interval of checks of the bundle and of the logs
	Bundle               podjob.Bundle
}

// podPrefix returns the prefix of the names of a pod's blobs, except for its status. prefix is the prefix of the node.
func podPrefix(prefix string, uid types.UID) string { return podsPrefix(prefix) + string(uid) + "/" }

// podsPrefix returns the prefix of the blobs of all pods.
func podsPrefix(prefix string) string { return prefix + "/pods/" }

// BundleName is the blob with the Package of a pod. Its metadata have the order to stop.
func BundleName(prefix string, uid types.UID) string { return podPrefix(prefix, uid) + PackageFile }

// claimName is the blob with the Claim of the pod's run.
func claimName(prefix string, uid types.UID) string { return podPrefix(prefix, uid) + "claim" }

// Claim identifies the run of a pod, and has the SSH address of the pod's machine.
type Claim struct {
	Nonce   string
	Program string // the path of this program
	HostKey string // the public key of the SSH server; "" for a machine without one
}

// statusPrefix returns the prefix of the blobs with statuses. Their names end with UIDs. They have a prefix of
// their own, so that one list has all of them.
func statusPrefix(prefix string) string { return prefix + "/status/" }

// StatusName is the blob with the status of a pod.
func StatusName(prefix string, uid types.UID) string { return statusPrefix(prefix) + string(uid) }

// logPrefix returns the prefix of the blobs with the logs of a container. The names continue with RUN/SEGMENT.
func logPrefix(prefix string, uid types.UID, container string) string {
	return podPrefix(prefix, uid) + "logs/" + container + "/"
}

func segmentName(log, run string, segment int) string {
	return fmt.Sprintf("%s%s/%06d", log, run, segment)
}

// Keys of metadata.
const (
	metaStatus = "status"
	metaGrace  = "grace"
	metaUntil  = "until"
	// maxMeta is the largest size of a status in metadata. The metadata of a blob have at most 8 KiB.
	maxMeta = 7 << 10
)

// Written returns the blob of a status, and its metadata.
func Written(s podjob.Status) (data []byte, meta map[string]string, err error) {
	data, err = json.Marshal(s)
	return data, packStatus(data), err
}

// packStatus returns a status as metadata, so that a list contains it, or nil if it is too long.
func packStatus(status []byte) map[string]string {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(status) // writes to a buffer never fail
	_ = z.Close()
	text := base64.StdEncoding.EncodeToString(out.Bytes())
	if len(text) > maxMeta {
		return nil
	}
	return map[string]string{metaStatus: text}
}

// statusOf returns the status in the metadata of a blob. False means that the status is only in the contents of the blob, in JSON.
func statusOf(meta map[string]string) (s podjob.Status, ok bool) {
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

// stopMeta is an order to stop as metadata of the bundle.
func stopMeta(s podjob.Stop) map[string]string {
	return map[string]string{metaGrace: strconv.FormatInt(s.GraceSeconds, 10), metaUntil: s.Until.UTC().Format(time.RFC3339)}
}

// StopOf returns the order to stop in the metadata of a bundle; or nil.
func StopOf(meta map[string]string) *podjob.Stop {
	grace, err := strconv.ParseInt(meta[metaGrace], 10, 64)
	if err != nil {
		return nil
	}
	until, _ := time.Parse(time.RFC3339, meta[metaUntil]) // optional: the grace period is sufficient
	return &podjob.Stop{GraceSeconds: grace, Until: until}
}
