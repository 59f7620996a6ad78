// SPDX-License-Identifier: Apache-2.0

package podenv

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Kinds of objects with variables, as in the reasons of events.
const (
	configMap = "ConfigMap"
	secret    = "Secret"
)

type sourceKey struct{ kind, name string }

// source is the part of a ConfigMap or Secret with values for variables.
type source struct {
	keys  func() []string
	value func(key string) (string, bool)
}

func configMapSource(o *corev1.ConfigMap) *source {
	return &source{
		keys:  func() []string { return slices.Sorted(maps.Keys(o.Data)) },
		value: func(key string) (string, bool) { v, ok := o.Data[key]; return v, ok },
	}
}

func secretSource(o *corev1.Secret) *source {
	return &source{
		keys:  func() []string { return slices.Sorted(maps.Keys(o.Data)) },
		value: func(key string) (string, bool) { v, ok := o.Data[key]; return string(v), ok },
	}
}

// envFrom sets a variable for each key of a whole object, in the order of the keys.
func (r *resolver) envFrom(ctx context.Context, env *environment, container string, from *corev1.EnvFromSource) error {
	var key sourceKey
	var optional *bool
	switch {
	case from.ConfigMapRef != nil:
		key, optional = sourceKey{configMap, from.ConfigMapRef.Name}, from.ConfigMapRef.Optional
	case from.SecretRef != nil:
		key, optional = sourceKey{secret, from.SecretRef.Name}, from.SecretRef.Optional
	default:
		return nil
	}
	src, err := r.readSource(ctx, container, key, isTrue(optional))
	if err != nil || src == nil {
		return err
	}
	var invalid []string
	for _, k := range src.keys() {
		name := from.Prefix + k
		if len(validation.IsRelaxedEnvVarName(name)) > 0 {
			invalid = append(invalid, fmt.Sprintf("%q", name))
			continue
		}
		value, _ := src.value(k)
		env.set(corev1.EnvVar{Name: name, Value: value})
	}
	if len(invalid) > 0 {
		r.recordWarning("InvalidEnvironmentVariableNames", fmt.Sprintf("container %s does not get these variables of %s: %s: a name consists of printable ASCII characters other than '='",
			container, r.describeSource(key), strings.Join(invalid, ", ")))
	}
	return nil
}

// keyValue returns the value of one key of an object.
func (r *resolver) keyValue(ctx context.Context, container string, key sourceKey, dataKey string, optional *bool) (string, answer, error) {
	src, err := r.readSource(ctx, container, key, isTrue(optional))
	if err != nil || src == nil {
		return "", absent, err
	}
	value, ok := src.value(dataKey)
	if ok {
		return value, known, nil
	}
	return "", absent, r.recordMissing(container, key.kind+"Key", fmt.Sprintf("key %q of %s", dataKey, r.describeSource(key)), isTrue(optional))
}

// readSource reads an object. It returns nil without an error for an optional object
// that does not exist.
func (r *resolver) readSource(ctx context.Context, container string, key sourceKey, optional bool) (*source, error) {
	src, seen := r.sources[key]
	if !seen {
		var err error
		if src, err = r.read(ctx, key); err != nil {
			// Only the API server may report that an object is absent, because starting a container without existing variables would be worse than a
			// delay.
			if !errors.Is(ctx.Err(), context.Canceled) { // otherwise the node stops, and this is no failure
				r.recordWarning("FailedToRead"+necessityWord(optional)+key.kind, fmt.Sprintf("container %s waits for %s: %v", container, r.describeSource(key), err))
			}
			return nil, fmt.Errorf("resolve environment of container %s: read %s: %w", container, r.describeSource(key), err)
		}
		r.sources[key] = src
	}
	if src == nil {
		return nil, r.recordMissing(container, key.kind, r.describeSource(key), optional)
	}
	return src, nil
}

// read reads an object. It returns nil without an error if the object does not exist.
func (r *resolver) read(ctx context.Context, key sourceKey) (*source, error) {
	if r.cfg.Objects == nil {
		return nil, errors.New("this node does not read objects")
	}
	var src *source
	var err error
	switch key.kind {
	case configMap:
		var o *corev1.ConfigMap
		if o, err = r.cfg.Objects.ConfigMap(ctx, r.pod.Namespace, key.name); err == nil {
			src = configMapSource(o)
		}
	case secret:
		var o *corev1.Secret
		if o, err = r.cfg.Objects.Secret(ctx, r.pod.Namespace, key.name); err == nil {
			src = secretSource(o)
		}
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return src, err
}

// recordMissing records a missing object or key. It returns an error if the object is mandatory.
func (r *resolver) recordMissing(container, kind, what string, optional bool) error {
	reason := necessityWord(optional) + kind + "NotFound"
	if optional {
		r.recordWarning(reason, fmt.Sprintf("container %s starts without the optional %s, which does not exist", container, what))
		return nil
	}
	message := what + " does not exist; create it, or mark the reference optional"
	r.recordWarning(reason, fmt.Sprintf("container %s waits: %s", container, message))
	return &NotReadyError{Container: container, Reason: reason, Message: message}
}

func (r *resolver) describeSource(key sourceKey) string {
	return key.kind + " " + r.pod.Namespace + "/" + key.name
}

func (r *resolver) recordWarning(reason, message string) {
	if r.cfg.Recorder != nil {
		r.cfg.Recorder.Event(r.pod, corev1.EventTypeWarning, reason, message)
	}
}

func necessityWord(optional bool) string {
	if optional {
		return "Optional"
	}
	return "Mandatory"
}

func isTrue(b *bool) bool { return b != nil && *b }
