// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli/configfile"
)

// acceptNone is the value of --accept-unenforced that refuses every pod with features that the provider does not
// have.
const acceptNone = "none"

// checkAccepted validates --accept-unenforced.
func (o *options) checkAccepted() (errs []error) {
	acceptable := featureNames(capability.Acceptable())
	for _, name := range o.AcceptUnenforced {
		switch {
		case name == acceptNone && len(o.AcceptUnenforced) == 1, slices.Contains(acceptable, name):
		case name == acceptNone:
			errs = append(errs, errors.New("--accept-unenforced none: contradicts the features beside it"))
		case slices.Contains(featureNames(capability.Features()), name):
			errs = append(errs, fmt.Errorf("--accept-unenforced %s: a pod that asks for it cannot run without it: want some of %s", name, strings.Join(acceptable, ", ")))
		default:
			hint := ""
			if near := configfile.Nearest(name, append(acceptable, acceptNone)); near != "" {
				hint = "; did you mean " + near + "?"
			}
			errs = append(errs, fmt.Errorf("--accept-unenforced %q: there is no such feature%s", name, hint))
		}
	}
	return errs
}

// acceptedFeatures returns the features of --accept-unenforced; nil if it is not set.
func (o *options) acceptedFeatures() []capability.Feature {
	if len(o.AcceptUnenforced) == 0 {
		return nil
	}
	all := []capability.Feature{}
	for _, name := range o.AcceptUnenforced {
		if name != acceptNone {
			all = append(all, capability.Feature(name))
		}
	}
	return all
}

// accept returns a declaration in which the operator's accepted features replace the provider's default.
func (o *options) accept(declared capability.Declaration) capability.Declaration {
	if features := o.acceptedFeatures(); features != nil {
		return declared.Accept(features...)
	}
	return declared
}

// annotateUnenforced adds an annotation to the node that lists the features that pods may request without getting them.
func annotateUnenforced(n *corev1.Node, declared capability.Declaration) {
	names := featureNames(declared.Accepted())
	if len(names) == 0 {
		return
	}
	if n.Annotations == nil {
		n.Annotations = map[string]string{}
	}
	n.Annotations[capability.UnenforcedAnnotation] = strings.Join(names, ",")
}

func featureNames(of []capability.Feature) []string {
	names := make([]string, len(of))
	for i, f := range of {
		names[i] = string(f)
	}
	return names
}

// acceptableNames returns the values of --accept-unenforced.
func acceptableNames() []string { return append(featureNames(capability.Acceptable()), acceptNone) }
