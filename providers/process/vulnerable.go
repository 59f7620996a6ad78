// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"fmt"
	"strings"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/oci"
)

// VulnerabilitiesAnnotation is the node annotation with the unfixed vulnerabilities of the node's runtime, or
// none, or unknown.
const VulnerabilitiesAnnotation = "process.virtual-kubelet.io/runtime-vulnerabilities"

// refuseVulnerable returns an error for a runtime that is unknown or has unfixed vulnerabilities. It ignores
// minor vulnerabilities, which are only reported.
func refuseVulnerable(program, version string, open []oci.Vulnerability, known bool) error {
	if !known {
		return fmt.Errorf("%s says %q, and nothing is known of vulnerabilities in that; use runc, crun or isolation: gvisor", program, version)
	}
	var severe []oci.Vulnerability
	for _, v := range open {
		if !v.Minor {
			severe = append(severe, v)
		}
	}
	if len(severe) == 0 {
		return nil
	}
	return fmt.Errorf("%s is %s, in which %s are open; %s", program, version, vulnerabilityIDs(severe), remedyFor(severe))
}

// remedyFor returns advice on which version to install instead.
func remedyFor(open []oci.Vulnerability) string {
	last := open[len(open)-1] // the newest: older ones were fixed before
	return fmt.Sprintf("install %s or newer, or a package that is patched, or use isolation: gvisor", strings.Join(last.Fixed, " or "))
}

func vulnerabilityIDs(list []oci.Vulnerability) string {
	var ids []string
	for _, v := range list {
		ids = append(ids, v.ID)
	}
	return strings.Join(ids, ", ")
}

// openVulnerabilities returns the value of VulnerabilitiesAnnotation.
func (o *ociRuntime) openVulnerabilities() string {
	switch {
	case !o.known:
		return "unknown"
	case len(o.open) == 0:
		return "none"
	}
	return vulnerabilityIDs(o.open)
}

// shownVersion returns the isolation and the version of its runtime, for the node's status.
func (r *Runtime) shownVersion() string {
	if r.oci == nil {
		return r.Isolation()
	}
	_, number, ok := strings.Cut(r.oci.version, " version ")
	if !ok {
		return r.Isolation()
	}
	return r.Isolation() + "-" + number
}

// Advise returns the runtime's version text and its open vulnerabilities.
func (p *provider) Advise(context.Context) (versions []string, advice []cli.Advice) {
	o := p.runtime.oci
	if o == nil {
		return nil, nil
	}
	versions = []string{fmt.Sprintf("%s: %s", o.Program, o.version)}
	if len(o.open) > 0 {
		advice = append(advice, cli.Advice{Problem: fmt.Sprintf("%s is %s, in which %s are open", o.Program, o.version, vulnerabilityIDs(o.open)), Fix: remedyFor(o.open)})
	}
	return versions, advice
}
