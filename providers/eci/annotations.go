// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/sizing"
)

const (
	annotationPrefix        = "k8s.aliyun.com/eci-"
	annotationRAMRole       = annotationPrefix + "ram-role-name"
	annotationSecurityGroup = annotationPrefix + "security-group"
)

// setters are the known annotations. Each setter returns a description of the wanted value if the value is
// wrong.
var setters = map[string]func(c Config, out *createRequest, value string) (want string){
	annotationPrefix + "use-specs": func(_ Config, out *createRequest, value string) string {
		out.InstanceType, out.CPU, out.Memory = value, 0, 0
		return ""
	},
	annotationPrefix + "vswitch": func(c Config, out *createRequest, value string) string {
		for id := range strings.SplitSeq(value, ",") {
			if !slices.Contains(c.VSwitchIDs, id) {
				return "some of the node's switches: " + strings.Join(c.VSwitchIDs, ", ")
			}
		}
		out.VSwitchID = value
		return ""
	},
	annotationPrefix + "schedule-strategy": oneOf(func(out *createRequest) *string { return &out.ScheduleStrategy }, "VSwitchOrdered", "VSwitchRandom"),
	annotationPrefix + "spot-strategy":     oneOf(func(out *createRequest) *string { return &out.SpotStrategy }, "NoSpot", "SpotAsPriceGo", "SpotWithPriceLimit"),
	annotationPrefix + "spot-price-limit": func(_ Config, out *createRequest, value string) string {
		limit, err := strconv.ParseFloat(value, 64)
		_, decimals, _ := strings.Cut(value, ".")
		if err != nil || !(limit > 0) || len(decimals) > 3 {
			return "a price for an hour with three decimals at most, such as 0.25"
		}
		out.SpotPriceLimit = limit
		return ""
	},
	annotationPrefix + "image-snapshot-id": func(_ Config, out *createRequest, value string) string {
		out.ImageSnapshotID = value
		return ""
	},
	annotationPrefix + "image-cache": func(_ Config, out *createRequest, value string) string {
		match, err := strconv.ParseBool(value)
		if err != nil {
			return "true or false"
		}
		out.AutoMatchImageCache = &match
		return ""
	},
	annotationRAMRole: func(c Config, out *createRequest, value string) string {
		if !slices.Contains(c.RAMRoles, value) {
			return "one of ramRoles of this node"
		}
		out.RAMRoleName = value
		return ""
	},
	annotationSecurityGroup: func(c Config, out *createRequest, value string) string {
		if !slices.Contains(c.SecurityGroupIDs, value) {
			return "one of securityGroupIDs of this node"
		}
		out.SecurityGroupID = value
		return ""
	},
	annotationPrefix + "extra-ephemeral-storage": func(_ Config, out *createRequest, value string) string {
		q, err := resource.ParseQuantity(value)
		if err != nil || q.Sign() <= 0 {
			return "an amount, such as 50Gi"
		}
		out.EphemeralStorage = max(out.EphemeralStorage, (q.Value()+sizing.Gi-1)/sizing.Gi)
		return ""
	},
	annotationPrefix + "with-eip": func(_ Config, out *createRequest, value string) string {
		make, err := strconv.ParseBool(value)
		if err != nil {
			return "true or false"
		}
		out.AutoCreateEIP = make
		return ""
	},
	annotationPrefix + "eip-bandwidth": func(_ Config, out *createRequest, value string) string {
		n, err := strconv.ParseInt(value, 10, 32)
		if err != nil || n <= 0 {
			return "a number of Mbit/s"
		}
		out.EIPBandwidth = n
		return ""
	},
}

func oneOf(of func(*createRequest) *string, known ...string) func(Config, *createRequest, string) string {
	return func(_ Config, out *createRequest, value string) string {
		if !slices.Contains(known, value) {
			return strings.Join(known, " or ")
		}
		*of(out) = value
		return ""
	}
}

// known returns the names of all annotations that a configuration can allow.
func known() []string { return slices.Sorted(maps.Keys(setters)) }

// annotate applies the annotations of a pod that the configuration allows. It refuses other annotations with this prefix: a pod that
// asks for a lower price or another place must not run without it.
func (c Config) annotate(pod *corev1.Pod, out *createRequest) error {
	for _, name := range slices.Sorted(maps.Keys(pod.Annotations)) {
		if !strings.HasPrefix(name, annotationPrefix) {
			continue
		}
		if !slices.Contains(c.Annotations, name) {
			return errdefs.InvalidInputf("metadata.annotations[%s]: the configuration of this node does not let pods set it", name)
		}
		if want := setters[name](c, out, pod.Annotations[name]); want != "" {
			return errdefs.InvalidInputf("metadata.annotations[%s]: %q: want %s", name, pod.Annotations[name], want)
		}
	}
	switch {
	case out.SpotStrategy == "SpotWithPriceLimit" && out.SpotPriceLimit == 0:
		return errdefs.InvalidInputf("metadata.annotations[%sspot-strategy]: SpotWithPriceLimit: want the annotation %sspot-price-limit too", annotationPrefix, annotationPrefix)
	case out.EIPBandwidth != 0 && !out.AutoCreateEIP:
		return errdefs.InvalidInputf("metadata.annotations[%seip-bandwidth]: ECI takes it with %swith-eip: \"true\" alone", annotationPrefix, annotationPrefix)
	}
	return nil
}
