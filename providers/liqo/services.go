// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// annotationSkip is that of objects which Liqo does not reflect, whatever its value is but false.
const annotationSkip = "liqo.io/skip-reflection"

// reflected says which Services are in the remote cluster too, nil if none are.
func (c Config) reflected() func(*corev1.Service) bool {
	if !c.Services {
		return nil
	}
	return func(s *corev1.Service) bool {
		value, skips := s.Annotations[annotationSkip]
		return !skips || strings.EqualFold(value, "false")
	}
}
