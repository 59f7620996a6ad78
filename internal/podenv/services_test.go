// SPDX-License-Identifier: Apache-2.0

package podenv

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func TestServiceVariables(t *testing.T) {
	api := service("default", "kubernetes", "10.0.0.1", corev1.ServicePort{Name: "https", Port: 443, Protocol: corev1.ProtocolTCP})
	web := service("shop", "web-front", "fd00::9",
		corev1.ServicePort{Name: "http", Port: 80},
		corev1.ServicePort{Name: "dns-udp", Port: 53, Protocol: corev1.ProtocolUDP})
	own := service("shop", "kubernetes", "10.9.9.9", corev1.ServicePort{Port: 6443})
	apiVars := `KUBERNETES_PORT=tcp://10.0.0.1:443
KUBERNETES_PORT_443_TCP=tcp://10.0.0.1:443
KUBERNETES_PORT_443_TCP_ADDR=10.0.0.1
KUBERNETES_PORT_443_TCP_PORT=443
KUBERNETES_PORT_443_TCP_PROTO=tcp
KUBERNETES_SERVICE_HOST=10.0.0.1
KUBERNETES_SERVICE_PORT=443
KUBERNETES_SERVICE_PORT_HTTPS=443
`
	webVars := `WEB_FRONT_PORT=tcp://[fd00::9]:80
WEB_FRONT_PORT_53_UDP=udp://[fd00::9]:53
WEB_FRONT_PORT_53_UDP_ADDR=fd00::9
WEB_FRONT_PORT_53_UDP_PORT=53
WEB_FRONT_PORT_53_UDP_PROTO=udp
WEB_FRONT_PORT_80_TCP=tcp://[fd00::9]:80
WEB_FRONT_PORT_80_TCP_ADDR=fd00::9
WEB_FRONT_PORT_80_TCP_PORT=80
WEB_FRONT_PORT_80_TCP_PROTO=tcp
WEB_FRONT_SERVICE_HOST=fd00::9
WEB_FRONT_SERVICE_PORT=80
WEB_FRONT_SERVICE_PORT_DNS_UDP=53
WEB_FRONT_SERVICE_PORT_HTTP=80
`
	ownVars := `KUBERNETES_PORT=tcp://10.9.9.9:6443
KUBERNETES_PORT_6443_TCP=tcp://10.9.9.9:6443
KUBERNETES_PORT_6443_TCP_ADDR=10.9.9.9
KUBERNETES_PORT_6443_TCP_PORT=6443
KUBERNETES_PORT_6443_TCP_PROTO=tcp
KUBERNETES_SERVICE_HOST=10.9.9.9
KUBERNETES_SERVICE_PORT=6443
`
	elsewhere := service("other", "hidden", "10.0.0.7", corev1.ServicePort{Port: 1})
	headless := service("shop", "headless", corev1.ClusterIPNone, corev1.ServicePort{Port: 1})
	external := service("shop", "external", "")
	headlessAPI := service("shop", "kubernetes", corev1.ClusterIPNone, corev1.ServicePort{Port: 1})
	portless := service("shop", "portless", "10.0.0.8")
	for _, tt := range []struct {
		name      string
		services  []*corev1.Service
		namespace string
		links     *bool
		want      string
	}{
		{name: "links by default", services: []*corev1.Service{api, web, elsewhere}, want: apiVars + webVars},
		{name: "links wanted", services: []*corev1.Service{api, web}, links: ptr.To(true), want: apiVars + webVars},
		{name: "links not wanted", services: []*corev1.Service{api, web, own}, links: ptr.To(false), want: apiVars},
		{name: "the pod's own namespace wins", services: []*corev1.Service{api, own}, want: ownVars},
		{name: "headless and external services have none", services: []*corev1.Service{api, headless, external, headlessAPI}, want: apiVars},
		{name: "a service without ports has a host", services: []*corev1.Service{portless}, want: "PORTLESS_SERVICE_HOST=10.0.0.8\n"},
		{name: "pod in the default namespace", services: []*corev1.Service{api, web}, namespace: "default", want: apiVars},
		{name: "pod in the default namespace without links", services: []*corev1.Service{api}, namespace: "default", links: ptr.To(false), want: apiVars},
		{name: "no services", want: ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pod := podWith(corev1.Container{})
			pod.Spec.EnableServiceLinks = tt.links
			if tt.namespace != "" {
				pod.Namespace = tt.namespace
			}
			if err := Resolve(t.Context(), Config{Services: services(t, tt.services...)}, pod); err != nil {
				t.Fatal(err)
			}
			got := lines(pod.Spec.Containers[0].Env)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
			if names := strings.Split(got, "\n"); !slices.IsSorted(names[:len(names)-1]) {
				t.Errorf("not sorted: %q", names)
			}
		})
	}
}
