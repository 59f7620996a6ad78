// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/node"

	corev1 "k8s.io/api/core/v1"
)

// redactedEvents removes the secrets of pods from the events of a provider: messages of a probe, a hook or a runtime may contain secrets.
type redactedEvents struct {
	record.EventRecorder
	pods **node.PodController // nil while the provider is being created
}

// Event records an event.
func (r redactedEvents) Event(object runtime.Object, eventtype, reason, message string) {
	r.EventRecorder.Event(object, eventtype, reason, r.text(object, message))
}

// Eventf records an event with a formatted message.
func (r redactedEvents) Eventf(object runtime.Object, eventtype, reason, messageFmt string, args ...any) {
	r.Event(object, eventtype, reason, fmt.Sprintf(messageFmt, args...))
}

// AnnotatedEventf records an event with annotations.
func (r redactedEvents) AnnotatedEventf(object runtime.Object, annotations map[string]string, eventtype, reason, messageFmt string, args ...any) {
	r.EventRecorder.AnnotatedEventf(object, annotations, eventtype, reason, "%s", r.text(object, fmt.Sprintf(messageFmt, args...)))
}

// text returns a message without secrets. For an object with an unknown name, it removes the secrets of all
// pods.
func (r redactedEvents) text(object runtime.Object, message string) string {
	pods := *r.pods
	if pods == nil {
		return message // no pod was resolved yet, so there are no secrets
	}
	namespace, name := "", ""
	if ref, ok := object.(*corev1.ObjectReference); ok {
		namespace, name = ref.Namespace, ref.Name
	} else if m, err := meta.Accessor(object); err == nil {
		namespace, name = m.GetNamespace(), m.GetName()
	}
	return pods.RedactError(namespace, name, errors.New(message)).Error()
}
