// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/jsonfile"
)

// record is the stored data of a pod, enough to start its containers again.
type record struct {
	Pod        *corev1.Pod
	ConfigMaps []corev1.ConfigMap
	Secrets    []corev1.Secret
	// Accepted is true if the provider has the pod.
	Accepted bool
	// Deleted is the deleted pod with its grace period. It is nil if the pod was not deleted.
	Deleted *corev1.Pod
}

// imagePrefix is the prefix of registry images in pods for interLink's plugins. No image reference has this
// prefix.
const imagePrefix = "docker://"

// newRecord returns the record for a pod from a server. It refuses invalid pods.
func newRecord(in wire.Retrieved) (record, error) {
	if in.Pod == nil || in.Pod.Name == "" || in.Pod.Namespace == "" {
		return record{}, errdefs.InvalidInput("create: the body has no pod with a name and a namespace")
	}
	if uid := string(in.Pod.UID); len(validation.IsDNS1123Subdomain(uid)) > 0 || len(uid) > 200 { // the UID is the name of a file
		return record{}, errdefs.InvalidInputf("create: pod %s/%s: the UID %.60q is none", in.Pod.Namespace, in.Pod.Name, uid)
	}
	if err := named(in); err != nil {
		return record{}, fmt.Errorf("create: pod %.60q: %w", in.Pod.Namespace+"/"+in.Pod.Name, err)
	}
	r := record{Pod: in.Pod.DeepCopy()}
	r.Pod.Status = corev1.PodStatus{}
	for _, list := range [][]corev1.Container{r.Pod.Spec.InitContainers, r.Pod.Spec.Containers} {
		for i := range list {
			list[i].Image = strings.TrimPrefix(list[i].Image, imagePrefix)
		}
	}
	projected := map[string]corev1.ConfigMap{}
	for _, c := range in.Containers {
		for _, m := range c.ConfigMaps {
			if !slices.ContainsFunc(r.ConfigMaps, func(o corev1.ConfigMap) bool { return o.Name == m.Name }) {
				r.ConfigMaps = append(r.ConfigMaps, m)
			}
		}
		for _, s := range c.Secrets {
			if !slices.ContainsFunc(r.Secrets, func(o corev1.Secret) bool { return o.Name == s.Name }) {
				r.Secrets = append(r.Secrets, s)
			}
		}
		for _, m := range c.Projected {
			projected[m.Name] = m
		}
	}
	for i := range r.Pod.Spec.Volumes {
		v := &r.Pod.Spec.Volumes[i]
		if v.Projected == nil {
			continue
		}
		source, secret, err := files(r.Pod, v, projected[v.Name])
		if err != nil {
			return record{}, fmt.Errorf("create: pod %s/%s: volume %s: %w", r.Pod.Namespace, r.Pod.Name, v.Name, err)
		}
		v.VolumeSource = corev1.VolumeSource{Secret: source}
		r.Secrets = append(r.Secrets, secret)
	}
	return r, nil
}

// files turns the files of a projected volume into a Secret volume, because every provider can write Secret
// volumes.
func files(pod *corev1.Pod, v *corev1.Volume, m corev1.ConfigMap) (*corev1.SecretVolumeSource, corev1.Secret, error) {
	name := fmt.Sprintf("projected.%s.%s", v.Name, pod.UID)
	source := &corev1.SecretVolumeSource{SecretName: name, DefaultMode: v.Projected.DefaultMode}
	secret := corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{}}
	var modes map[string]int32
	if text := m.Annotations[wire.AnnotationModes]; text != "" {
		if err := json.Unmarshal([]byte(text), &modes); err != nil {
			return nil, secret, errdefs.InvalidInputf("the modes of its files cannot be read")
		}
	}
	paths := slices.AppendSeq(slices.Collect(maps.Keys(m.Data)), maps.Keys(m.BinaryData))
	slices.Sort(paths)
	for i, p := range paths {
		if !inside(p) {
			return nil, secret, errdefs.InvalidInputf("the path %.120q leads out of it", p)
		}
		item := corev1.KeyToPath{Key: fmt.Sprintf("file-%d", i), Path: p}
		if mode, ok := modes[p]; ok {
			mode &= 0o777
			item.Mode = &mode
		}
		source.Items = append(source.Items, item)
		secret.Data[item.Key] = []byte(m.Data[p])
		if data, ok := m.BinaryData[p]; ok {
			secret.Data[item.Key] = data
		}
	}
	return source, secret, nil
}

// store is the directory with the records. The records have secrets, so no other user may read them.
type store string

func openStore(dir string) (store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("state of the plugin: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return "", fmt.Errorf("state of the plugin: %w", err)
	}
	return store(dir), nil
}

func (s store) file(uid types.UID) string { return filepath.Join(string(s), string(uid)+".json") }

// write replaces the record of a pod. After an error the old record stays.
func (s store) write(r record) error {
	if err := jsonfile.Write(s.file(r.Pod.UID), r); err != nil {
		return fmt.Errorf("record of pod %s/%s: %w", r.Pod.Namespace, r.Pod.Name, err)
	}
	return nil
}

func (s store) remove(uid types.UID) error {
	if err := os.Remove(s.file(uid)); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("record of the pod with the UID %s: %w", uid, err)
	}
	return nil
}

// read returns all records. It logs an unreadable record and leaves its file: a newer version may have written
// it.
func (s store) read(ctx context.Context) (all []record, err error) {
	entries, err := os.ReadDir(string(s))
	if err != nil {
		return nil, fmt.Errorf("state of the plugin: %w", err)
	}
	for _, e := range entries {
		name := filepath.Join(string(s), e.Name())
		if strings.HasPrefix(e.Name(), ".") { // an unfinished record
			if err := os.Remove(name); err != nil {
				return nil, fmt.Errorf("state of the plugin: %w", err)
			}
			continue
		}
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		var r record
		err := jsonfile.Read(name, &r)
		if err != nil && !errors.Is(err, jsonfile.ErrDamaged) {
			return nil, fmt.Errorf("state of the plugin: %w", err)
		}
		if err != nil || r.Pod == nil { // the error would quote the record
			log.G(ctx).WithField("file", name).Error("The record of a pod cannot be read and is left as it is")
			continue
		}
		all = append(all, r)
	}
	return all, nil
}
