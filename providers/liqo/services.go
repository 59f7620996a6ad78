// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// annotationSkip is the annotation of objects that Liqo does not reflect. Any value other than false has this
// effect.
const annotationSkip = "liqo.io/skip-reflection"

// selectReflected returns a function that selects the Services to copy to the remote cluster, or nil if none are
// copied.
func (c Config) selectReflected() func(*corev1.Service) bool {
	if !c.Services {
		return nil
	}
	return func(s *corev1.Service) bool {
		value, skips := s.Annotations[annotationSkip]
		return !skips || strings.EqualFold(value, "false")
	}
}
